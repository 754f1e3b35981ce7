"""What a report says of a campaign from its traces: how fast each arm was answered, how its motion lease was renewed,
what it got of the motion that it asked for, what the robot's controller said, what sensors measured, stress measures.

May not: be asked before unblinding, read a recording that is lost, or keep states and actions of more than one episode.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from labctl.analysis.report.lab_facts import AnswerTimes, Lab, SensorColumn
from labctl.config.protocol_schema import Protocol
from labctl.core.events import Event
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.trial import Trial
from labctl.reporting.historical import printed
from labctl.reporting.measures import Stressed, stress_of, stressed
from labctl.reporting.policy_software import policy_software, start_ups
from labctl.reporting.times.answer_times import answer_times, questions_of
from labctl.reporting.times.lease_times import lease_lines, renewals_of
from labctl.reporting.times.motion_lines import Moved, Said, device_lines, device_said, motion_lines, moved_in
from labctl.reporting.times.sensor_times import curves_of, sensor_columns
from labctl.store.campaign import Campaign
from labctl.store.opened_body import format_facts
from labctl.store.read_once import ReadOnce, Samples

if TYPE_CHECKING:
    import numpy as np

    from labctl.analysis.table import Row

SOFTWARE, LEASE = "software of policies", "motion lease"
MOTION, CONTROLLER = "motion achieved over commanded", "robot's controller"


def add_measured(
    lab: Lab,
    samples: Samples,
    campaign: Campaign,
    protocol: Protocol,
    record: Record,
    lost: Collection[str],
    rows: Sequence[Row],
    *,
    boot: int,
    seed: int,
    early: Early,
) -> Callable[[], None]:
    """Make room in `lab` for what is read from traces, and put what a file of earlier results says there. What is given
    back fills that room, and takes as long as clips do. boot, seed: of the report's intervals; early: what need not be
    read from `samples`.
    """
    provenance = lab.setdefault("provenance", {})
    lab["answer_times"], lab["sensors"] = [], []
    provenance.update(dict.fromkeys((SOFTWARE, LEASE, MOTION, CONTROLLER)))
    provenance.update(format_facts(record.state.opened))
    then = printed(campaign.folder, record.state.opened, protocol.analysis, rows, boot=boot, seed=seed)
    if then is not None:
        lab["historical"] = then
        provenance["historical reference"] = f"{then['source']}; sha256 {then['sha256']}"

    def fill() -> None:
        scored, every = _scored(record), _arms(record)
        went = {episode: arm for episode, arm in every.items() if episode not in lost}
        kept = {
            episode: early.of(episode) or _kept(samples, record, scored.get(episode), episode, arm)
            for episode, arm in went.items()
        }
        lab["sensors"] = sensor_columns(kept[episode].curves for episode in record.episodes if episode in kept)
        human = {arm.name for arm in protocol.arm if arm.kind == "human"}
        arms = [arm.name for arm in protocol.arm]
        stress = [found for episode in scored if episode in kept and (found := kept[episode].stress) is not None]
        lab["stress"] = stress_of(campaign, stress, record, arms, rows, human)
        answers, measured = _timing(kept, went, arms, record)
        lab["answer_times"] = answers
        for entry in answers:
            entry["by_hand"] = entry["arm"] in human
        provenance.update(measured)

    return fill


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a report keeps of an episode's traces. Of the samples themselves: what a controller said of itself, as the
    medians of a campaign need it, and nothing of states and actions.
    """

    questions: np.ndarray | None
    renewals: np.ndarray | None
    moved: Mapping[str, Moved] | None
    said: Said
    curves: Sequence[SensorColumn]
    stress: Stressed | None


class Early:
    """What a report keeps of its episodes, taken while they are verified, when their samples are unpacked anyhow."""

    def __init__(self) -> None:
        import labctl.analysis.episodes.stress  # noqa: F401  # here, not by several threads at once

        self._lock = Lock()
        self._folded: tuple[Sequence[Event], Record] | None = None
        self._known: tuple[dict[str, str], dict[str, Trial]] | None = None
        self._kept: dict[str, _Kept] = {}

    def record(self, events: Sequence[Event]) -> Record:
        """The record of these events, which is folded once."""
        with self._lock:
            if self._folded is None or self._folded[0] is not events:
                self._folded, self._known = (events, record_of(events)), None
            return self._folded[1]

    def seen(self, events: Sequence[Event], episode: str, samples: Samples) -> None:
        """As `recordings.Seen`."""
        with suppress(Exception):  # it is read again, and said, once the whole record is known to hold
            record = self.record(events)
            arms, scored = self._known = self._known or (_arms(record), _scored(record))
            self._kept[episode] = _kept(ReadOnce(samples), record, scored.get(episode), episode, arms[episode])

    def of(self, episode: str) -> _Kept | None:
        """What was kept of an episode; None where it is to be read."""
        return self._kept.get(episode)


def _scored(record: Record) -> dict[str, Trial]:
    """The trials of the episodes that count."""
    return {episode.id: trial for trial, episode in record.scored}


def _arms(record: Record) -> dict[str, str]:
    """The arm of every episode, scored or not."""
    of = record.arms
    return {episode: of[trial.id] for trial in record.state.trials.values() for episode in trial.episodes}


def _kept(samples: Samples, record: Record, scored: Trial | None, episode: str, arm: str) -> _Kept:
    """Everything that a report reads of one episode, so that each stream is read once. scored: its trial, where it is
    the episode that counts.
    """
    own = record.episodes[episode]
    return _Kept(
        questions_of(samples, episode),
        renewals_of(samples, episode),
        moved_in(samples, episode),
        device_said(samples, episode),
        curves_of(samples, own, arm),
        None if scored is None else stressed(samples, record, scored, own),
    )


def _timing(
    kept: Mapping[str, _Kept], went: Mapping[str, str], arms: Sequence[str], record: Record
) -> tuple[list[AnswerTimes], dict[str, dict[str, str] | None]]:
    """How fast each arm started and was answered, and by what they are about: how its motion lease was renewed, what it
    got of the motion that it asked for, what the robot's controller said; over every episode, scored or not, whose
    recording is there.
    """
    answers = answer_times({name: one.questions for name, one in kept.items()}, went, arms, start_ups(record))
    lines = {SOFTWARE: policy_software(record, arms)}
    lines[LEASE] = lease_lines({name: one.renewals for name, one in kept.items()}, went, arms)
    lines[MOTION] = motion_lines({name: one.moved for name, one in kept.items()}, went, arms)
    lines[CONTROLLER] = device_lines(one.said for one in kept.values())
    return answers, {about: found or None for about, found in lines.items()}
