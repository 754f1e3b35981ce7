"""A campaign to read: verified, blind until it is unblinded, its tables, and the traces and pictures of an episode.

May not: write, or show what the campaign's phase hides: everything goes through `exports.selection`, as exports do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labctl.analysis.table import Value
from labctl.api import frames
from labctl.api.frames import Foreign
from labctl.api.notebook import Shown, page
from labctl.api.tables import EpisodesTable, OperationsTable, from_frame
from labctl.clock import SECOND
from labctl.core.trial import Phase
from labctl.errors import InputError, StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import Chosen, Selection, select
from labctl.exports.writing import episode_rows
from labctl.extras import wanted_for
from labctl.plain import count
from labctl.store.lab_folder import campaign_folder
from labctl.store.verifying.verified import JOURNAL_ALONE, verified


@dataclass(frozen=True)
class Trace:
    """A recorded stream: `t_s` (n,) since go, `t_ns` (n,) on the host's clock, `values` (n, columns)."""

    stream: str
    columns: tuple[str, ...]
    unit: str
    t_s: np.ndarray = field(repr=False, compare=False)
    t_ns: np.ndarray = field(repr=False, compare=False)
    values: np.ndarray = field(repr=False, compare=False)

    def to_frame(self, library: str | None = None) -> Foreign:
        """One row a sample: t_s and a column for each of `columns`."""
        rows = [
            dict(zip(("t_s", *self.columns), (t, *row), strict=True))
            for t, row in zip(self.t_s.tolist(), self.values.tolist(), strict=True)
        ]
        return frames.frame_of(rows, library)

    def __len__(self) -> int:
        return len(self.t_s)


@dataclass(frozen=True)
class Frame:
    """A camera's picture: when its light fell, s since go, and (height, width, 3) uint8 RGB."""

    t_s: float
    image: np.ndarray = field(repr=False, compare=False)


@dataclass(frozen=True)
class Episode:
    """A scored episode. arm: None before unblinding; outcome: success or failure; seconds: from go to its end, 0 where
    it was ended before go.
    """

    id: str
    trial: str
    block: int
    condition: str
    object: str
    arm: str | None
    outcome: str
    seconds: float
    _campaign: Campaign = field(repr=False, compare=False)

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the recorded streams that may be shown."""
        with self._campaign._recording(self.id) as found:
            return tuple(spec.name for spec in found.specs)

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras that filmed it."""
        with self._campaign._recording(self.id) as found:
            return tuple(found.pictures)

    def trace(self, stream: str) -> Trace:
        """A stream's samples. Raises InputError that lists the streams, BrokenRecord for a sample that was changed."""
        with self._campaign._recording(self.id) as found:
            specs = {spec.name: spec for spec in found.specs}
            if stream not in specs:
                raise InputError(f"episode {self.id} shows no stream {stream!r}; there are: {', '.join(specs)}")
            t_ns, values = found.read(stream)
            return Trace(stream, specs[stream].columns, specs[stream].unit, (t_ns - found.go_ns) / SECOND, t_ns, values)

    def frames(self, camera: str) -> Iterator[Frame]:
        """A camera's pictures in order. Raises InputError that lists the cameras, BrokenRecord for a changed file."""
        from labctl.store.video import read_frames

        with self._campaign._recording(self.id) as found:
            if camera not in found.pictures:
                raise InputError(f"episode {self.id} has no camera {camera!r}; there are: {', '.join(found.pictures)}")
            video = found.pictures[camera]
            taken = dict(zip(video.pts_us.tolist(), ((video.taken_ns - found.go_ns) / SECOND).tolist(), strict=True))
        with wanted_for("pictures of a video"):
            for place, image in read_frames(video.path):
                if place in taken:
                    yield Frame(taken[place], image)


class Campaign:
    """A campaign's scored episodes as they were when it was opened; `episodes`, and the two tables of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with verified(folder, JOURNAL_ALONE) as held:
            self._selection: Selection = select(held.campaign)
            self.phase = str(held.campaign.state.phase)
            self.head = str(self._selection.about["head"])
            self._of_episodes: Sequence[Mapping[str, Value]] = episode_rows(self._selection, held.campaign)
        self.name = folder.name
        self.episodes = tuple(_episode(chosen, self) for chosen in self._selection.episodes)
        self._sound: set[str] = set()

    @property
    def blind(self) -> bool:
        """Whether its arms are sealed."""
        return self._selection.masked

    @property
    def rows(self) -> Sequence[Mapping[str, Value]]:
        """The rows of the operations table; before unblinding they have no `arm`."""
        return self._selection.rows

    def operations(self) -> OperationsTable:
        """The operations table. Raises StateError before unblinding; `rows` has what may be seen then."""
        self._unblinded()
        made = from_frame([dict(row) for row in self.rows], source=self.name)
        assert isinstance(made, OperationsTable), made
        return made

    def episodes_table(self) -> EpisodesTable:
        """The episodes table. Raises StateError before unblinding."""
        self._unblinded()
        made = from_frame([dict(row) for row in self._of_episodes], source=self.name)
        assert isinstance(made, EpisodesTable), made
        return made

    def episode(self, id: str) -> Episode:
        """An episode by its id. Raises InputError that lists those there are."""
        for episode in self.episodes:
            if episode.id == id:
                return episode
        raise InputError(f"{self.name} has no scored episode {id!r}; it has: {', '.join(e.id for e in self.episodes)}")

    def to_frame(self, library: str | None = None) -> Foreign:
        """One row an episode, with what is recorded of it, before unblinding without its arm: a data frame."""
        return frames.frame_of(self._of_episodes, library)

    def __repr__(self) -> str:
        sealed = ", arms sealed" if self.blind else ""
        return f"Campaign({self.name}: {self.phase}, {count(len(self.episodes), 'scored episode')}{sealed})"

    def _repr_html_(self) -> str:
        names = ("episode", "block", "object", "arm", "outcome", "seconds")
        rows = [(e.id, str(e.block), e.object, e.arm or "sealed", e.outcome, f"{e.seconds:.1f}") for e in self.episodes]
        return page(repr(self), Shown(names, rows))

    def _unblinded(self) -> None:
        if self.blind:
            raise StateError(
                f"campaign {self.name} is {self.phase} and its arms are sealed; it is analysed once it is "
                f"{Phase.UNBLINDED}; `rows` and `episodes` show what may be seen before"
            )

    @contextmanager
    def _recording(self, episode: str) -> Iterator[Recording]:
        """An episode's recording, verified the first time that it is asked for."""
        chosen = next(one for one in self._selection.episodes if one.episode == episode)
        with verified(self.folder, JOURNAL_ALONE) as held:
            if episode not in self._sound:
                held.with_recordings([episode])
                self._sound.add(episode)
            with Recordings(held.campaign, self._selection) as recordings:
                yield recordings.of(chosen)


def campaign(path: str | os.PathLike[str], *, lab: str | os.PathLike[str] | None = None) -> Campaign:
    """A campaign to read, by the path of its folder or by its name in a lab. Its journal and what was frozen are
    verified now, an episode's recording when it is asked for.

    Raises InputError where there is none, BrokenRecord where it does not hold, StateError without a scored episode.
    """
    return Campaign(campaign_folder(os.fspath(path), None if lab is None else Path(lab)))


def _episode(chosen: Chosen, campaign: Campaign) -> Episode:
    trial = chosen.trial
    return Episode(
        chosen.episode,
        trial.id,
        trial.block,
        trial.condition,
        chosen.object,
        chosen.arm,
        chosen.outcome,
        (trial.end_ns - trial.go_ns) / SECOND if trial.go_ns is not None and trial.end_ns is not None else 0.0,
        campaign,
    )
