"""One trial as a table: its states, and which event may follow which. States are data.

May not: know of other trials (`trial` does), write events, read a clock, or learn an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from labctl.core.event_bodies import body_of
from labctl.core.events import EndReason, Event, InterventionKind, Kind
from labctl.core.outcome import Outcome, outcome_from
from labctl.errors import StateError
from labctl.messages.judgements import PreferenceStated
from labctl.plain import count


class State(StrEnum):
    """Where a trial stands."""

    PLANNED = "planned"
    STAGING = "staging"
    COMMITTED = "committed"
    ARMED = "armed"
    RUNNING = "running"
    SCORING = "scoring"
    SCORED = "scored"
    NOT_RUN = "not_run"


class Verb(StrEnum):
    """What a person, or the run process for them, asks for."""

    STAGE = "stage"
    SKIP = "skip"
    COMMIT = "commit"
    RELEASE = "release"
    REVEAL = "reveal"
    START = "start"
    VOID = "void"
    END = "end"
    SCORE = "score"
    CORRECT = "correct"


PREFERRED = ("first", "second", "neither")
FINISHED = frozenset({State.SCORED, State.NOT_RUN})
LIVE = frozenset({State.STAGING, State.COMMITTED, State.ARMED, State.RUNNING})

# kind of event -> the states it may come from, and the state it leads to. A void leads back to the plan until somebody
# orders staging. (Journals of before committed or released straight after a void; they still fold.)
TRANSITIONS: Mapping[str, tuple[frozenset[State], State]] = {
    Kind.TRIAL_STAGING: (frozenset({State.PLANNED}), State.STAGING),
    Kind.TRIAL_SKIPPED: (frozenset({State.PLANNED}), State.NOT_RUN),
    Kind.SCENE_COMMITTED: (frozenset({State.STAGING}), State.COMMITTED),
    Kind.TRIAL_RELEASED: (frozenset({State.STAGING, State.COMMITTED}), State.PLANNED),
    Kind.ARM_REVEALED: (frozenset({State.COMMITTED}), State.ARMED),
    Kind.EPISODE_STARTED: (frozenset({State.ARMED}), State.RUNNING),
    Kind.EPISODE_ENDED: (frozenset({State.RUNNING}), State.SCORING),
    Kind.OUTCOME_RECORDED: (frozenset({State.SCORING}), State.SCORED),
    Kind.EPISODE_VOIDED: (frozenset({State.ARMED, State.SCORING}), State.PLANNED),
}
RUN_LEFT = "run_left"  # reason of a void: its run was left before go
_STAGED_BY_A_VOID = frozenset({Kind.SCENE_COMMITTED, Kind.TRIAL_RELEASED})
# Entries about the current episode that change nothing of what may be done: the states that they may come in, and why.
_NOTED: Mapping[str, tuple[frozenset[State], str]] = {
    **dict.fromkeys(
        (Kind.OPERATION_RECORDED, Kind.ITEM_COUNTED, Kind.STAGE_REACHED),
        (frozenset({State.RUNNING, State.SCORING}), "operations happen in an episode that is not yet scored"),
    ),
    **dict.fromkeys(
        (Kind.OPERATIONS_REVIEWED, Kind.OUTCOME_CONFIRMED, Kind.OUTCOME_JUDGED, Kind.WITNESS_STATED),
        (frozenset({State.SCORED}), "a review comes after the score"),
    ),
    Kind.ARM_GUESSED: (frozenset({State.SCORING, State.SCORED}), "a guess comes after the episode"),
    Kind.START_WITHHELD: (frozenset({State.ARMED}), "only an armed episode is waited for"),
}


@dataclass(frozen=True, slots=True)
class Void:
    """Why an episode does not count, and whether that was after go."""

    reason: str
    after_go: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """A randomised slot, `place` in messages ("trial 2 of 48"). `episode` is the current attempt, None before a reveal
    and after a void; `episodes` are all of them.

    `backing` are the seqs of the entries that may stand behind a void of the current episode after go, `watched` the
    people whose session it was when it ended: who came later confirms no void of it.
    `left` counts those of its `voids` that the protocol's `max_voids` does not: its run was left before it had begun,
    or they were alike and a person put right what was wrong. `last_void` is the last of them.
    `touches` counts the interventions of the current episode, `touching` are the numbers of those that go on, `unsaid`
    of those that are over and of which nobody has said yet what they were, `driven` of those that a hand device began:
    what they were is known. `switches` is the number that the next switch of its instruction has at least.
    `compared` is the episode that ran before it and with which it is compared, once that is asked; `preference` is what
    an assessor said of the two.
    `said` are the entries on how its episode went, in order and in words (`trial.SAID`).
    `version` is the seq of the last event that changed what may be done with it: a command from a screen that showed
    an older one is stale. Operation events and gaps do not count, or an operator could not end an episode in which
    things happen. `ended`, `go_ns` and `end_ns` belong to the current episode.
    """

    id: str
    block: int
    position: int
    condition: str
    place: str
    state: State = State.PLANNED
    episode: str | None = None
    episodes: tuple[str, ...] = ()
    voids: int = 0
    left: int = 0
    last_void: Void | None = None
    outcome: Outcome | None = None
    ended: EndReason | None = None
    go_ns: int | None = None
    end_ns: int | None = None
    sealed_recording: bool = False
    version: int = 0
    max_voids: int = field(kw_only=True)
    touches: int = 0
    touching: tuple[int, ...] = ()
    unsaid: tuple[int, ...] = ()
    driven: tuple[int, ...] = ()
    switches: int = 0
    backing: tuple[int, ...] = ()
    watched: frozenset[str] = frozenset()
    compared: str = ""
    preference: PreferenceStated | None = None
    said: tuple[str, ...] = ()

    @property
    def exhausted(self) -> bool:
        """It was voided so often that it may only be skipped."""
        return self.voids - self.left >= self.max_voids

    @property
    def needs_second(self) -> bool:
        """A void of its episode takes a second person: it is after go, and no machine's report stands behind it."""
        return self.state == State.SCORING and self.go_ns is not None and not self.backing

    @property
    def next_void_is_last(self) -> bool:
        """After one more void that counts it may only be skipped."""
        return self.voids - self.left + 1 >= self.max_voids

    @property
    def after_void(self) -> str:
        """What is to be done with it after a void, in words."""
        return "that was the last void the protocol allows: skip it" if self.exhausted else "stage it again"


# What cannot be done when an entry of a kind may not follow, in words for whoever ordered it.
CANNOT: Mapping[Kind, str] = {
    Kind.CAMPAIGN_OPENED: "a campaign cannot be opened here",
    Kind.SESSION_OPENED: "the session cannot be opened",
    Kind.SESSION_CHANGED: "the session cannot be changed",
    Kind.SESSION_CLOSED: "the session cannot be closed",
    Kind.RUN_STARTED: "the run cannot be started",
    Kind.RUN_STOPPED: "the run cannot be ended",
    Kind.ARMS_ASKED: "the arms cannot be asked whether they answer",
    Kind.TRIAL_STAGING: "the trial cannot be staged",
    Kind.SCENE_COMMITTED: "the scene cannot be committed",
    Kind.REFERENCE_SET: "a scene's reference cannot be set",
    Kind.TRIAL_RELEASED: "the trial cannot be given back",
    Kind.TRIAL_SKIPPED: "the trial cannot be skipped",
    Kind.ARM_REVEALED: "no arm can be handed to the controller",
    Kind.START_WITHHELD: "the start cannot be taken back",
    Kind.EPISODE_STARTED: "the episode cannot be started",
    Kind.GO: "the clock cannot be started",
    Kind.OPERATION_RECORDED: "no operation can be recorded",
    Kind.ITEM_COUNTED: "no item can be counted",
    Kind.STAGE_REACHED: "no stage can be reached",
    Kind.INTERVENTION_BEGAN: "no intervention can begin",
    Kind.INTERVENTION_ENDED: "no intervention can end",
    Kind.INSTRUCTION_SWITCHED: "the instruction cannot be switched",
    Kind.EPISODE_ENDED: "the episode cannot be ended",
    Kind.GAP: "no gap can be noted",
    Kind.RECORDING_SEALED: "the recording cannot be sealed",
    Kind.OUTCOME_RECORDED: "the episode cannot be scored",
    Kind.OUTCOME_CORRECTED: "the outcome cannot be corrected",
    Kind.OPERATIONS_REVIEWED: "the episode cannot be reviewed",
    Kind.OUTCOME_CONFIRMED: "the outcome cannot be confirmed",
    Kind.OUTCOME_JUDGED: "the episode cannot be judged a second time",
    Kind.WITNESS_STATED: "no witness can be heard",
    Kind.PREFERENCE_ASKED: "no preference can be asked for",
    Kind.PREFERENCE_STATED: "no preference can be stated",
    Kind.EPISODE_VOIDED: "the episode cannot be voided",
    Kind.HOLD_RAISED: "no hold can be raised",
    Kind.HOLD_CLEARED: "the hold cannot be cleared",
    Kind.CELL_FAULTED: "the cell cannot be called faulted",
    Kind.FAULT_ACKNOWLEDGED: "the fault cannot be acknowledged",
    Kind.DEVIATION: "no deviation can be noted",
    Kind.NOTE: "no note can be written",
    Kind.PRACTICE_RECORDED: "no practice can be recorded",
    Kind.ARM_GUESSED: "no guess can be recorded",
    Kind.LOOK_TAKEN: "no look can be taken",
    Kind.MEDIA_STORED: "no upload can be noted",
    Kind.MEDIA_TRIMMED: "no file can be removed here",
    Kind.CAMPAIGN_CLOSED: "the campaign cannot be closed",
    Kind.CAMPAIGN_REVIEWED: "the review cannot be finished",
    Kind.CAMPAIGN_FROZEN: "the campaign cannot be frozen",
    Kind.CAMPAIGN_UNBLINDED: "the campaign cannot be unblinded",
}


def cannot(kind: str) -> str:
    """What cannot be done now, of an entry's kind. A kind of a later version is called by its name."""
    return CANNOT[Kind(kind)] if kind in set(Kind) else f"an entry {kind} cannot be written"


def apply(trial: Trial, event: Event) -> Trial:
    """The trial after an event about it.

    Raises StateError for an event that may not follow, and InputError for an outcome that contradicts itself.
    """
    if event.kind in TRANSITIONS:
        return _transition(trial, event)
    if event.kind in _NOTED:
        states, why = _NOTED[event.kind]
        _need(trial, event, trial.state in states, why)
        _need_current(trial, event)
        if event.kind == Kind.OUTCOME_JUDGED:
            outcome_from(event.body["outcome"])  # raises for one that contradicts itself
        return trial
    if event.kind in _CHANGES:
        return _CHANGES[event.kind](trial, event)
    raise StateError(f"{cannot(event.kind)}: such an entry is not about a trial")


def _transition(trial: Trial, event: Event) -> Trial:
    allowed_from, to = TRANSITIONS[event.kind]
    again = trial.voids > 0 and trial.state == State.PLANNED and event.kind in _STAGED_BY_A_VOID
    may = trial.state in allowed_from or again
    _need(trial, event, may, f"it must be {' or '.join(sorted(allowed_from))}")
    changes: dict[str, Any] = {"version": event.seq}
    match event.kind:
        case Kind.TRIAL_STAGING:
            often = f"it was voided {count(trial.voids, 'time')} and may only be skipped"
            _need(trial, event, not trial.exhausted, often)
        case Kind.TRIAL_SKIPPED | Kind.TRIAL_RELEASED:
            _need(trial, event, bool(event.body.get("reason")), "it needs a reason")
        case Kind.ARM_REVEALED:
            new = bool(event.episode) and event.episode not in trial.episodes
            _need(trial, event, new, "it needs a new episode id")
            changes |= {"episode": event.episode, "episodes": (*trial.episodes, event.episode)}
            changes |= {"backing": (), "watched": frozenset()}
            changes |= {"touches": 0, "touching": (), "unsaid": (), "driven": (), "switches": 0}
        case Kind.EPISODE_STARTED:
            _need_current(trial, event)
        case Kind.EPISODE_ENDED:
            changes |= _ended(trial, event)
        case Kind.OUTCOME_RECORDED:
            _need_current(trial, event)
            _need(trial, event, trial.sealed_recording, "its recording is not sealed yet")
            changes |= {"outcome": outcome_from(event.body["outcome"]), "touching": (), "unsaid": ()}
        case Kind.EPISODE_VOIDED:
            _check_void(trial, event)
            left = trial.go_ns is None and event.body.get("reason") == RUN_LEFT
            void = Void(str(event.body.get("reason")), bool(event.body.get("after_go")))
            changes |= {"voids": trial.voids + 1, "left": trial.left + left, "last_void": void}
            changes |= {"episode": None, "ended": None, "go_ns": None, "end_ns": None}
            changes |= {"sealed_recording": False, "touching": (), "unsaid": ()}
        case _:
            pass  # nothing but its state changes
    return replace(trial, state=to, **changes)


def _ended(trial: Trial, event: Event) -> dict[str, Any]:
    _need_current(trial, event)
    reason, end_ns = event.body.get("reason"), event.body.get("end_ns")
    _need(trial, event, reason in list(EndReason), f"unknown end reason {reason!r}; known: {', '.join(EndReason)}")
    in_order = isinstance(end_ns, int) and (trial.go_ns is None or trial.go_ns <= end_ns)
    _need(trial, event, in_order, "it needs end_ns, a time not before go")
    return {"ended": EndReason(reason), "end_ns": end_ns}


def _check_void(trial: Trial, event: Event) -> None:
    _need_current(trial, event)
    after_go = trial.go_ns is not None
    _need(trial, event, bool(event.body.get("reason")), "it needs a reason")
    _need(trial, event, event.body.get("after_go") == after_go, f"after_go must be {after_go}, as the journal has it")
    second = event.body.get("confirmed_by")
    _need(trial, event, second is None or second != event.who, "the second person must be another one")
    evidence = event.body.get("evidence")
    known = evidence is None or (isinstance(evidence, int) and 0 < evidence < event.seq)
    _need(trial, event, known, "evidence is the number of an earlier entry")
    backed = evidence is not None or second is not None or not after_go
    _need(trial, event, backed, "after go it needs a machine event or a second person behind it")


def _go(trial: Trial, event: Event) -> Trial:
    _need(trial, event, trial.state == State.RUNNING and trial.go_ns is None, "an episode goes once, while it runs")
    _need_current(trial, event)
    return replace(trial, go_ns=event.body["go_ns"])


def _gap(trial: Trial, event: Event) -> Trial:
    _need(trial, event, event.episode in trial.episodes, "a gap belongs to one of the trial's episodes")
    return trial


def _touch(trial: Trial, event: Event) -> Trial:
    """One that still goes on when the motion ends, ends with it; what it was may be said until the score. Without a
    note it is over and nobody has said what it was.
    """
    _need_current(trial, event)
    number, kind = event.body.get("number"), event.body.get("kind")
    _need(trial, event, kind in list(InterventionKind), f"unknown kind {kind!r}; known: {', '.join(InterventionKind)}")
    if event.kind == Kind.INTERVENTION_BEGAN:
        begins = trial.state == State.RUNNING and number == trial.touches
        _need(trial, event, begins, f"the next intervention is number {trial.touches}, while the episode runs")
        driven = (*trial.driven, number) if event.body.get("by") == "device" else trial.driven
        return replace(trial, touches=trial.touches + 1, touching=(*trial.touching, number), driven=driven)
    ends = trial.state in (State.RUNNING, State.SCORING) and number in trial.touching
    later = trial.state == State.SCORING and number in trial.unsaid
    _need(trial, event, ends or later, f"no intervention {number} goes on in an episode that is not yet scored")
    assert number is not None  # it is one of the trial's own
    asked = "note" not in event.body and number not in trial.driven
    unsaid: set[int] = {*trial.unsaid, number} if asked else {*trial.unsaid} - {number}
    touching = tuple(n for n in trial.touching if n != number)
    return replace(trial, touching=touching, unsaid=tuple(sorted(unsaid)))


def _switch(trial: Trial, event: Event) -> Trial:
    """A controller took a switch while the episode ran. It changes nothing that may be done."""
    _need_current(trial, event)
    number, t_ns = event.body.get("number"), event.body.get("t_ns")
    runs = trial.state == State.RUNNING and trial.go_ns is not None and isinstance(t_ns, int) and t_ns >= trial.go_ns
    _need(trial, event, runs, "an instruction is switched after go, while the episode runs")
    in_order = isinstance(number, int) and number >= trial.switches
    _need(trial, event, in_order, f"the next switch is number {trial.switches} or a later one")
    return replace(trial, switches=event.body["number"] + 1)


def _seal(trial: Trial, event: Event) -> Trial:
    """A voided episode's recording may be sealed later on, to keep it; that changes nothing else."""
    if event.episode in trial.episodes and event.episode != trial.episode:
        return trial
    _need_current(trial, event)
    can = trial.state == State.SCORING and not trial.sealed_recording
    _need(trial, event, can, "a recording is sealed once, after the episode ended")
    return replace(trial, sealed_recording=True, version=event.seq)


def _correct(trial: Trial, event: Event) -> Trial:
    _need_current(trial, event)
    _need(trial, event, trial.state == State.SCORED, "only a scored trial has an outcome to correct")
    assert trial.outcome is not None
    stands = {"tags": [], **event.body["old"]} == trial.outcome.body()  # before there were tags, outcomes had none
    _need(trial, event, stands, "the old outcome it names is not the one that stands; look again")
    _need(trial, event, bool(event.body.get("why")), "a correction needs a why")
    return replace(trial, outcome=outcome_from(event.body["new"]), version=event.seq)


def _prefer(trial: Trial, event: Event) -> Trial:
    """What is asked, or said, of two episodes stands with the later one; nothing that may be done changes by it."""
    _need_current(trial, event)
    first, second = event.body.get("first"), event.body.get("second")
    asks = event.kind == Kind.PREFERENCE_ASKED
    _need(trial, event, trial.state == State.SCORED, "a preference comes after the score")
    fits = second == trial.episode and (not trial.compared if asks else first == trial.compared)
    _need(trial, event, fits, f"{first} and {second} are not the two that are compared in its block")
    if asks:
        return replace(trial, compared=str(first))
    stated = body_of(event, PreferenceStated)
    _need(trial, event, stated["preferred"] in PREFERRED, f"what is preferred is one of {', '.join(PREFERRED)}")
    _need(trial, event, bool(stated["why"]), "it needs a why")
    return replace(trial, preference=stated)


_CHANGES: Mapping[str, Callable[[Trial, Event], Trial]] = {
    Kind.GO: _go,
    Kind.INTERVENTION_BEGAN: _touch,
    Kind.INTERVENTION_ENDED: _touch,
    Kind.INSTRUCTION_SWITCHED: _switch,
    Kind.GAP: _gap,
    Kind.RECORDING_SEALED: _seal,
    Kind.OUTCOME_CORRECTED: _correct,
    Kind.PREFERENCE_ASKED: _prefer,
    Kind.PREFERENCE_STATED: _prefer,
}


def _need_current(trial: Trial, event: Event) -> None:
    current = event.episode is not None and event.episode == trial.episode
    _need(trial, event, current, f"the current episode is {trial.episode}")


def _need(trial: Trial, event: Event, fits: bool, why: str) -> None:
    if not fits:
        raise StateError(f"{cannot(event.kind)}: {trial.place} is {trial.state}; {why}")
