"""Recorded observations that a submitted policy is asked about: of an unblinded campaign or a published folder.

May not: read a campaign whose arms are sealed (what it saw is not for people outside), or one that does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.checks.offline_frames import Path as Way
from labctl.checks.offline_frames import keyframe_times, observations, path_of
from labctl.core.task import task_of
from labctl.core.trial import Phase
from labctl.devices import Observation, Pace
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import select
from labctl.store.campaign import Campaign
from labctl.store.database_backend import PUBLISHED
from labctl.store.verifying.verified import JOURNAL_ALONE, refuse_unless_it_holds, verified

MOST_EPISODES = 8


class Unusable(InputError):
    """Nothing can be asked with these observations, of whichever policy: none is judged by it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A campaign that was verified, of a lab or (published) in a folder of somebody else's. name: the campaign's."""

    folder: Path
    name: str
    published: bool = False


def source_of(folder: Path) -> Source:
    """A published folder, or a campaign of a lab, verified with its recordings.

    Raises BrokenRecord for what does not hold, InputError for what is neither, StateError for sealed arms.
    """
    if (folder / PUBLISHED).is_file():
        from labctl.publishing.check import refuse_unless_it_holds as holds

        record = holds(folder).admitted.record
        return Source(record, record.name, published=True)
    with verified(folder, JOURNAL_ALONE) as shown:
        check_open(shown.campaign)
    refuse_unless_it_holds(folder)
    return Source(folder, folder.name)


def check_open(campaign: Campaign) -> None:
    """Raises StateError for a campaign whose arms are sealed."""
    if campaign.state.phase != Phase.UNBLINDED:
        raise StateError(
            f"campaign {campaign.folder.name} is {campaign.state.phase}; what a running campaign sees is shown to "
            "nobody outside: take one that is unblinded, or a published folder"
        )


class Seen:
    """The observations of a campaign: as many as are asked for, evenly over its first recorded episodes."""

    def __init__(self, campaign: Campaign, wanted: int) -> None:
        check_open(campaign)
        self._campaign = campaign
        self._recordings = Recordings(campaign, select(campaign))
        self._wanted = wanted
        self.episodes: list[str] = []

    def read(self, pace: Pace) -> Iterator[Observation]:
        """Each in its own episode's words. Raises Unusable where none has what the policy reads."""
        usable = self._usable(pace)
        each, more = divmod(self._wanted, len(usable))
        for number, (recording, way) in enumerate(usable):
            times = keyframe_times(recording.go_ns, recording.end_ns, max(1, each + (number < more)))
            instruction = task_of(self._campaign.opened, recording.chosen.trial.condition).instruction
            found = observations(recording, way, times, instruction=instruction, pace=pace)
            yield from (one for one in found if one is not None)

    def _usable(self, pace: Pace) -> list[tuple[Recording, Way]]:
        found: list[tuple[Recording, Way]] = []
        lacking = ""
        for chosen in self._recordings.selection.episodes:
            try:
                recording = self._recordings.of(chosen, pictured=bool(pace.cameras))
                way = path_of(recording)
            except (StateError, BrokenRecord) as error:  # it was verified: what is gone of it was withheld
                lacking = str(error)
                continue
            missing = [name for name in pace.cameras if name not in recording.pictures]
            if missing or not len(way.t_ns):
                lacking = f"its recordings have no pictures of {', '.join(missing)}, which the card reads"
                continue
            found.append((recording, way))
            self.episodes.append(chosen.episode)
            if len(found) == min(MOST_EPISODES, self._wanted):
                break
        if not found:
            raise Unusable(f"campaign {self._campaign.folder.name} has no observation to ask about: {lacking}")
        return found
