"""What a campaign's journal records, as values: its episodes, sessions, photos, practice and what departed from plan.

May not: decide what may follow (`trial` does), estimate anything, or hide an arm: who shows one consults the phase.
Report, review, status, viewing and exports read this and no event; `record_fold` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from labctl.clock import SECOND, Anchor
from labctl.core import evening_bodies
from labctl.core import event_bodies as bodies
from labctl.core.event_bodies import InstructionSwitched, OperationRecorded, RecordingSealed
from labctl.core.events import EndReason, Event, InterventionKind
from labctl.core.interventions import Intervention
from labctl.core.outcome import Outcome
from labctl.core.session import Session
from labctl.core.trial import CampaignState, State, Trial
from labctl.core.trial_table import Void
from labctl.messages.body_parts import (
    Clock,
    Detected,
    Hands,
    LookTaken,
    MatchEntry,
    OutcomeBody,
    Photo,
    Pins,
    StreamEntry,
    VideoEntry,
)
from labctl.messages.judgements import WitnessStated


@dataclass(frozen=True, slots=True)
class Scene:
    """A committed scene: the entry's number, its photos by camera, and what comparing each with its reference gave."""

    seq: int
    trial: str
    at: Anchor
    photos: Mapping[str, Photo]
    matches: Mapping[str, MatchEntry]


@dataclass(frozen=True, slots=True)
class HandStop:
    """A person's stop that ended an episode. cause: as `config.values.StopCause`, None as long as nobody has said it
    and in journals from before anybody was asked.
    """

    cause: str | None = None
    why: str = ""
    acknowledged_by: str = ""


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a trial, from the reveal of its arm. Times are host ns; an `Anchor` is when an entry was written.

    operators: of the session open at its start; ended_by: the person who ended it, where one did; counts: the
    operator's tally (moved so far, t_ns) in order; reached_ns: when each stage was seen reached, as it happened;
    reviewed: the operations as an assessor left them; confirmed_by: who went over its outcome since it was last
    corrected; stands: the outcome as last recorded; judged: (who, what a second assessor said of it); judged_against:
    what stood when the first of these did; witnessed: (what a model said of it, what stood then) in order; knows: who
    said or confirmed something of its outcome; scored_by: who counted last; hands: what it took of people at consoles;
    guesses: (who, which arm they took it for) in order; events: its own entries, as journalled.
    """

    id: str
    trial: str
    revealed: Anchor
    staged: Anchor | None = None
    scene: Scene | None = None
    session: str | None = None
    operators: tuple[str, ...] = ()
    started: Anchor | None = None
    start: bodies.EpisodeStarted | None = None
    go_ns: int | None = None
    ended: Anchor | None = None
    end_ns: int | None = None
    end_reason: str | None = None
    ended_by: str | None = None
    stop: HandStop | None = None
    operations: tuple[OperationRecorded, ...] = ()
    counts: tuple[tuple[int, int], ...] = ()
    reached_ns: tuple[int, ...] = ()
    reviewed: tuple[OperationRecorded, ...] | None = None
    interventions: tuple[Intervention, ...] = ()
    switches: tuple[InstructionSwitched, ...] = ()
    gaps: tuple[bodies.GapBody, ...] = ()
    sealed: RecordingSealed | None = None
    scored: Anchor | None = None
    scored_by: str | None = None
    confirmed_by: str | None = None
    judged: tuple[tuple[str, Outcome], ...] = ()
    stands: OutcomeBody | None = None
    judged_against: OutcomeBody | None = None
    witnessed: tuple[tuple[WitnessStated, OutcomeBody | None], ...] = ()
    knows: frozenset[str] = frozenset()
    hands: Hands | None = None
    void: Void | None = None
    guesses: tuple[tuple[str, str | None], ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def streams(self) -> Mapping[str, StreamEntry]:
        """How much its sealed recording holds of each stream that a blind role may see."""
        return self.sealed["streams"] if self.sealed else {}

    @property
    def videos(self) -> Mapping[str, VideoEntry]:
        """The videos of its sealed recording, by camera."""
        return self.sealed["videos"] if self.sealed else {}

    @property
    def clocks(self) -> Mapping[str, Clock]:
        """How the devices' clocks ran, by stream."""
        return self.sealed.get("clocks", {}) if self.sealed else {}

    @property
    def detected(self) -> list[OperationRecorded] | None:
        """The operations that the detector found; None where it could not look."""
        found = self.sealed.get("detected") if self.sealed else None
        if found is None or self.go_ns is None or self.end_ns is None:
            return None if found is None else []
        return as_operations(found, self.go_ns, self.end_ns)

    @property
    def duration_s(self) -> float | None:
        """From go to the end; None when it never got to go."""
        return None if self.go_ns is None or self.end_ns is None else (self.end_ns - self.go_ns) / SECOND

    @property
    def stops(self) -> list[OperationRecorded]:
        """The safety stops among what devices reported."""
        return [op for op in self.operations if op["result"] == "safety_stop"]

    @property
    def counted(self) -> int | None:
        """The operator's tally at the end; None when no item was counted."""
        return self.counts[-1][0] if self.counts else None

    @property
    def taken_over(self) -> bool:
        """Whether a person drove the robot in the controller's place: its traces are not the controller's alone."""
        return any(touch.kind == InterventionKind.TAKE_OVER for touch in self.interventions)


@dataclass(frozen=True, slots=True)
class Practice:
    """A practice episode, and the trials that had gone before with this person as an operator."""

    body: evening_bodies.PracticeRecorded
    drove: frozenset[str]


@dataclass(frozen=True, slots=True)
class Spent:
    """A stretch of a run's time between two entries.

    doing: reset (nobody ordered the next trial yet), staging (until its scene was committed), arming (until go),
    running (until its end) or scoring; held: codes of the holds that stood; trial: the one it was for, of a reset the
    one that was staged next, None after the last; began: when.
    """

    doing: str
    held: tuple[str, ...]
    trial: str | None
    operators: tuple[str, ...]
    seconds: float
    began: Anchor


@dataclass(frozen=True, slots=True)
class Record:
    """A campaign. `episodes` are in the order of their reveal, `deviations` a line each, in order; `looks` those
    taken before its end; `pins` of the last run.
    """

    state: CampaignState = field(default_factory=CampaignState)
    episodes: Mapping[str, Episode] = field(default_factory=dict[str, Episode])
    scenes: tuple[Scene, ...] = ()
    sessions: Mapping[str, Session] = field(default_factory=dict[str, Session])
    practice: tuple[Practice, ...] = ()
    pins: Pins | None = None
    deviations: tuple[str, ...] = ()
    looks: tuple[LookTaken, ...] = ()
    spent: tuple[Spent, ...] = ()
    opened_wall: str | None = None
    closed_wall: str | None = None
    closed_by: str = ""
    closing: bodies.CampaignClosed | None = None
    reviewed: bool = False
    frozen: bool = False
    frozen_wall: str | None = None
    frozen_by: str = ""
    unblinding: bodies.CampaignUnblinded | None = None
    _arms: Mapping[str, str] | None = field(default=None, init=False, repr=False, compare=False)  # once it was asked

    @property
    def arms(self) -> Mapping[str, str]:
        """The arm of every trial; empty before unblinding."""
        if self._arms is None:
            schedule = self.unblinding["schedule"] if self.unblinding else ()
            object.__setattr__(self, "_arms", {slot["trial"]: slot["arm"] for slot in schedule})
        return self._arms or {}

    @property
    def stops_count(self) -> list[str] | None:
        """The causes of which a stop by hand counts against the arm; None: each does, whatever was said of it."""
        listed = self.state.opened.get("stops_count")
        return None if listed is None else list(listed)

    def spares(self, episode: Episode) -> bool:
        """Whether a stop ended this episode that does not count against its arm: it counts as ended by the operator."""
        listed, stop = self.stops_count, episode.stop
        return listed is not None and stop is not None and stop.cause is not None and stop.cause not in listed

    def ended(self, trial: Trial, episode: Episode) -> EndReason | None:
        """Why a scored episode ended, as it counts."""
        return EndReason.OPERATOR if self.spares(episode) else trial.ended

    @property
    def estimand(self) -> dict[str, str]:
        """What counts as what (`estimand_of`)."""
        return estimand_of(self.state.opened)

    @property
    def scored(self) -> list[tuple[Trial, Episode]]:
        """Every scored trial with the episode that counts, in schedule order."""
        trials = self.state.trials.values()
        found = [(t, self.episodes[t.episode]) for t in trials if t.state == State.SCORED and t.episode is not None]
        return [_within_budget(trial, episode) for trial, episode in found]


def estimand_of(opened: bodies.CampaignOpened) -> dict[str, str]:
    """What counts as what, as `[estimand]` of a protocol had it. Campaigns from before it could be declared count what
    they did: a crash is void, or censored where `process_lost` had it scored.
    """
    crash = "ended" if opened.get("process_lost") == "score" else "void"
    before = {"help": "as_it_went", "voids": "left_out", "early_ends": "by_reason", "crash": crash}
    return {**before, **(opened.get("estimand") or {})}


_LATE_S, _LATE_SHARE = 1.0, 0.01  # beyond these no table of operations is read


def _within_budget(trial: Trial, episode: Episode) -> tuple[Trial, Episode]:
    """Ended with its budget at the latest. Before 2026-11-27 an end that a run heard after it had stood still was
    journalled as it came, however long after the budget, and no report could be made.
    """
    budget_s = episode.start.get("budget_s") if episode.start else None
    if budget_s is None or trial.go_ns is None or episode.duration_s is None:
        return trial, episode
    if episode.duration_s <= budget_s * (1 + _LATE_SHARE) + _LATE_S:
        return trial, episode
    end_ns, reason = trial.go_ns + round(budget_s * SECOND), EndReason.BUDGET
    return (
        replace(trial, ended=reason, end_ns=end_ns),
        replace(episode, end_reason=str(reason), end_ns=end_ns, ended_by=None),
    )


def as_operations(candidates: Sequence[Detected], go_ns: int, end_ns: int) -> list[OperationRecorded]:
    """Bodies as of OperationRecorded for what was placed or lost between go and end; what was put back or is unknown
    is none.
    """
    found: list[OperationRecorded] = []
    for one in candidates:
        result = one["result"]
        if result in ("success", "lost") and go_ns <= one["t_ns"] <= end_ns:
            cause = "dropped" if result == "lost" else None
            found.append({"op_index": len(found), "result": result, "t_ns": one["t_ns"], "cause": cause})
            if (robot := one.get("robot")) is not None:
                found[-1]["robot"] = robot
    return found
