"""What a campaign's journal makes of its state (`campaign_state`), and what a person may do next. Pure.

May not: write events, read a clock, ask devices, or learn an arm. The order of one trial's events is in `trial_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from labctl.config.reasons import MACHINE_VOID_REASONS, SENSOR_LIMIT, SENSOR_LOST
from labctl.core.campaign_state import (
    AFTER_BLOCK,
    AFTER_TRIAL,
    TO_UNBLINDED,
    CampaignState,
    Phase,
    crashes_count,
    next_trial,
    standing,
    tally,
)
from labctl.core.evening_bodies import SessionOpened
from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import ARMS_UNREADY, STOP_BY_HAND, VOIDS_ALIKE, EndReason, Event, Kind
from labctl.core.interlock import Hold
from labctl.core.rollout import VOIDABLE, void_reason
from labctl.core.session import Role, Session, joined, session_from
from labctl.core.trial_table import FINISHED, LIVE, RUN_LEFT, State, Trial, Verb, apply, cannot
from labctl.errors import BrokenRecord, StateError

__all__ = [
    "AFTER_BLOCK",
    "AFTER_TRIAL",
    "FINISHED",
    "LIVE",
    "RUN_LEFT",
    "TO_UNBLINDED",
    "VERBS",
    "CampaignState",
    "Phase",
    "State",
    "Trial",
    "Verb",
    "advance",
    "allowed",
    "apply",
    "fold",
    "next_trial",
    "standing",
    "tally",
]


# The verbs of each state and who may ask for them.
_SETUP = frozenset({Role.OPERATOR, Role.SETTER})
_JUDGE = frozenset({Role.OPERATOR, Role.ASSESSOR})
VERBS: Mapping[State, Mapping[Verb, frozenset[Role]]] = {
    State.PLANNED: {Verb.STAGE: _SETUP, Verb.SKIP: _SETUP},
    State.STAGING: {Verb.COMMIT: _SETUP, Verb.RELEASE: _SETUP},
    State.COMMITTED: {Verb.REVEAL: _SETUP, Verb.RELEASE: _SETUP},
    State.ARMED: {Verb.START: _SETUP, Verb.VOID: _SETUP},
    State.RUNNING: {Verb.END: _SETUP},
    State.SCORING: {Verb.SCORE: _JUDGE, Verb.VOID: _SETUP},
    State.SCORED: {Verb.CORRECT: _JUDGE},
    State.NOT_RUN: {},
}
_TOWARDS_MOTION = frozenset({Verb.STAGE, Verb.COMMIT, Verb.REVEAL, Verb.START})
_AFTER_CLOSING = frozenset({Verb.SCORE, Verb.CORRECT})
_PHASES: Mapping[str, tuple[frozenset[Phase], Phase]] = {
    Kind.CAMPAIGN_CLOSED: (frozenset({Phase.OPEN}), Phase.CLOSED),
    Kind.CAMPAIGN_REVIEWED: (frozenset({Phase.CLOSED}), Phase.REVIEWED),
    Kind.CAMPAIGN_FROZEN: (frozenset({Phase.CLOSED, Phase.REVIEWED}), Phase.FROZEN),
    Kind.CAMPAIGN_UNBLINDED: (frozenset({Phase.OPEN, Phase.CLOSED, Phase.REVIEWED, Phase.FROZEN}), Phase.UNBLINDED),
}
# What says how an episode went, in words.
CORRECTED, JUDGED = "its outcome was corrected", "a second assessor judged it"
REVIEWS = ("its outcome was confirmed", "its operations were reviewed")
SAID: Mapping[str, str] = {
    Kind.OUTCOME_RECORDED: "it was scored",
    Kind.OUTCOME_CORRECTED: CORRECTED,
    Kind.OUTCOME_JUDGED: JUDGED,
    Kind.OUTCOME_CONFIRMED: REVIEWS[0],
    Kind.OPERATIONS_REVIEWED: REVIEWS[1],
}
# Reasons for a void that no person gives.
REPEATABLE = frozenset({*MACHINE_VOID_REASONS, SENSOR_LOST, SENSOR_LIMIT, "not_ready"})
# What may still be written about a trial once no new one may begin.
_WHEN_CLOSED = frozenset(
    {Kind.TRIAL_SKIPPED, Kind.OPERATION_RECORDED, Kind.ITEM_COUNTED, Kind.STAGE_REACHED, Kind.INTERVENTION_ENDED}
    | {Kind.ARM_GUESSED, Kind.GAP, Kind.RECORDING_SEALED, Kind.OUTCOME_RECORDED, Kind.OUTCOME_CORRECTED}
    | {Kind.OPERATIONS_REVIEWED, Kind.PREFERENCE_ASKED, Kind.PREFERENCE_STATED}
    | {Kind.OUTCOME_CONFIRMED, Kind.OUTCOME_JUDGED, Kind.WITNESS_STATED}
)


def fold(events: Iterable[Event]) -> CampaignState:
    """The state after all events of a journal, in order.

    Of CampaignOpened's body it reads `schedule` (the public slots: trial, block, position, condition), `max_voids` and
    `void_reasons`; the rest is kept in `opened`. Raises as `advance` does.
    """
    trials, episodes = dict[str, Trial](), set[str]()
    state = CampaignState(trials=trials, episodes=episodes)
    for event in events:
        state = _step(state, trials, episodes, event)
    return state


def advance(state: CampaignState, event: Event) -> CampaignState:
    """The state after one more event; the given state is left as it was.

    Raises StateError for an event that may not follow, BrokenRecord for one out of order, InputError for a
    contradictory outcome.
    """
    return _step(state, dict(state.trials), set(state.episodes), event)


def allowed(state: CampaignState, trial: Trial, holds: Sequence[Hold], role: Role) -> tuple[Verb, ...]:
    """The verbs that may be asked for now, in the order of `Verb`; a screen draws exactly these.

    `holds` are the live ones; journalled holds and a faulted cell come with the state. Anything that leads towards
    motion goes away while one stands; what ends, gives back or judges remains.
    """
    if state.phase not in (Phase.OPEN, Phase.CLOSED):
        return ()
    verbs = {verb for verb, roles in VERBS[trial.state].items() if role in roles}
    if not trial.sealed_recording:
        verbs.discard(Verb.SCORE)
    if trial.state == State.PLANNED:
        turn = next_trial(state)
        its_turn = turn is not None and turn.id == trial.id
        verbs &= ({Verb.SKIP} if trial.exhausted else {Verb.STAGE}) if its_turn else set()
    if state.phase == Phase.CLOSED:
        verbs &= _AFTER_CLOSING
    if holds or standing(state, trial) or state.faulted is not None:
        verbs -= _TOWARDS_MOTION
    return tuple(verb for verb in Verb if verb in verbs)


def _step(state: CampaignState, trials: dict[str, Trial], episodes: set[str], event: Event) -> CampaignState:
    """One event. Writes into `trials` and `episodes`, which are the new state's; writes nothing when it raises."""
    if event.seq <= state.last_seq:
        raise BrokenRecord(f"entry {event.seq} comes after entry {state.last_seq}; the journal is out of order")
    if (state.phase == Phase.DRAFT) != (event.kind == Kind.CAMPAIGN_OPENED):
        raise StateError(f"{cannot(event.kind)}: the campaign is {state.phase}; it is opened first, and once")
    if event.kind == Kind.CAMPAIGN_OPENED:
        trials.update(_planned(event))
        state = replace(state, phase=Phase.OPEN, opened=body_of(event, CampaignOpened), order=tuple(trials))
    elif event.kind in _PHASES:
        state = _phase(state, event)
    elif event.kind == Kind.RUN_STARTED or (event.kind == Kind.HOLD_CLEARED and event.body["code"] == VOIDS_ALIKE):
        state = _put_right(state, trials, event)
    elif event.kind == Kind.SESSION_CLOSED:
        state = _session_closed(state, trials, event)
    elif event.kind in _CAMPAIGN_WIDE:
        state = _CAMPAIGN_WIDE[event.kind](state, event)
    elif event.kind not in _NOTED:
        before = state.trials.get(event.trial or "")
        _about_a_trial(state, trials, event)
        if event.kind == Kind.ARM_REVEALED and event.episode is not None:
            episodes.add(event.episode)
        finished, alike = _finished(state, trials), _alike(state.alike, event, before.ended if before else None)
        if (finished, alike) != (state.finished, state.alike):
            state = replace(state, finished=finished, alike=alike)
    return replace(state, trials=trials, episodes=episodes, last_seq=event.seq, head=event.hash)


def _phase(state: CampaignState, event: Event) -> CampaignState:
    allowed_from, to = _PHASES[event.kind]
    known = " or ".join(sorted(allowed_from))
    _need(event, state.phase in allowed_from, f"the campaign is {state.phase}; it must be {known}")
    unfinished = LIVE if event.kind == Kind.CAMPAIGN_CLOSED else LIVE | {State.SCORING}
    for trial in state.trials.values():
        _need(event, trial.state not in unfinished, f"{trial.place} is {trial.state}; finish or void it first")
    if event.kind != Kind.CAMPAIGN_UNBLINDED:
        return replace(state, phase=to)
    early = state.phase != Phase.FROZEN
    _need(event, bool(event.body.get("early")) == early, f"the campaign is {state.phase}, so early must be {early}")
    _need(event, not early or bool(event.body.get("reason")), "unblinding before the campaign is frozen needs a reason")
    return replace(state, phase=to, unblinded_early=early)


def _planned(event: Event) -> dict[str, Trial]:
    trials = {
        slot["trial"]: Trial(
            slot["trial"],
            slot["block"],
            slot["position"],
            slot["condition"],
            f"trial {number} of {len(event.body['schedule'])}",
            version=event.seq,
            max_voids=event.body["max_voids"],
        )
        for number, slot in enumerate(event.body["schedule"], 1)
    }
    _need(event, len(trials) == len(event.body["schedule"]), "a trial id appears twice in the schedule")
    return trials


def _alike(before: tuple[str, int], event: Event, ended: EndReason | None) -> tuple[str, int]:
    """`CampaignState.alike` after an event about a trial. ended: why its episode had ended, if it had. One that ended
    before go is void by itself, for whatever ended it.
    """
    if event.kind == Kind.OUTCOME_RECORDED:
        return "", 0
    if event.kind != Kind.EPISODE_VOIDED:
        return before
    reason = str(event.body.get("reason"))
    itself = ended is not None and not event.body.get("after_go") and reason == void_reason(ended) != RUN_LEFT
    if reason not in REPEATABLE and not itself:
        return before
    return reason, before[1] + 1 if before[0] == reason else 1


def _put_right(state: CampaignState, trials: dict[str, Trial], event: Event) -> CampaignState:
    """A person acknowledged voids that were alike, or started the run again: `max_voids` of the trial at hand does not
    count them, so that no arm is lost for what was wrong with the cell.
    """
    stands, turn = VOIDS_ALIKE in state.holds, next_trial(state)
    _need(event, stands or event.kind == Kind.RUN_STARTED, f"no hold {VOIDS_ALIKE!r} stands")
    if stands and turn is not None:
        spared = min(state.alike[1], turn.voids - turn.left)
        trials[turn.id] = replace(turn, left=turn.left + spared, version=event.seq)
    over = (VOIDS_ALIKE, ARMS_UNREADY) if event.kind == Kind.RUN_STARTED else (VOIDS_ALIKE,)
    return replace(state, holds=_without(state, *over), alike=("", 0))


def _without(state: CampaignState, *codes: str) -> Mapping[str, str]:
    return {name: text for name, text in state.holds.items() if name not in codes}


def _finished(state: CampaignState, trials: Mapping[str, Trial]) -> int:
    """How many trials at the head of the order are finished; none ever comes back, so counting goes on from before."""
    count = state.finished
    while count < len(state.order) and trials[state.order[count]].state in FINISHED:
        count += 1
    return count


def _about_a_trial(state: CampaignState, trials: dict[str, Trial], event: Event) -> None:
    trial = state.trials.get(event.trial or "")
    if trial is None:
        raise StateError(f"{cannot(event.kind)}: there is no trial {event.trial!r} in this campaign")
    by_recovery = event.kind == Kind.EPISODE_VOIDED and bool(event.body.get("by_recovery"))
    open_to = state.phase == Phase.OPEN or (state.phase == Phase.CLOSED and (event.kind in _WHEN_CLOSED or by_recovery))
    _need(event, open_to, f"the campaign is {state.phase}")
    if event.kind == Kind.ARM_REVEALED:
        _need(event, event.episode not in state.episodes, f"episode {event.episode} belongs to a trial already")
    if event.kind == Kind.EPISODE_VOIDED and event.body.get("after_go"):
        listed = state.opened["void_reasons"]
        _need(event, event.body.get("reason") in listed, f"after go the protocol allows only: {', '.join(listed)}")
        own = event.body.get("reason") == EndReason.CONTROLLER_LOST and crashes_count(state.opened)
        _need(event, not own, "by the protocol a controller's own crash after go counts, so it is scored")
    if event.kind == Kind.PREFERENCE_ASKED:
        counts = any(t.episode == event.body.get("first") and t.block == trial.block for t in _scored(state))
        _need(event, counts, "the first of the two is no episode of its block that counts")
    changed = apply(trial, event)
    turn = next_trial(state)
    if event.kind == Kind.TRIAL_STAGING and turn is not None and turn.id != trial.id:
        raise StateError(f"{cannot(event.kind)}: {turn.place} comes before {trial.place}")
    if event.kind == Kind.EPISODE_ENDED and state.session is not None:
        changed = replace(changed, watched=state.session.ids)
    if _backs_a_void(event, state):
        changed = replace(changed, backing=(*changed.backing, event.seq))
    if event.kind in SAID:
        changed = replace(changed, said=(*changed.said, SAID[event.kind]))
    trials[trial.id] = changed


def _scored(state: CampaignState) -> list[Trial]:
    return [trial for trial in state.trials.values() if trial.state == State.SCORED]


def _backs_a_void(event: Event, state: CampaignState) -> bool:
    """Whether an entry of an episode can stand behind its void after go: a machine ended it. A stop by hand is a
    person's decision, whatever the robot made of it, and an arm's own crash that counts is no void. A gap backs
    nothing: nearly every episode lacks a frame somewhere.
    """
    if event.kind != Kind.EPISODE_ENDED:
        return False
    reason = EndReason(event.body["reason"])
    if reason == EndReason.CONTROLLER_LOST and crashes_count(state.opened):
        return False
    return reason in VOIDABLE or (reason == EndReason.SAFETY_STOP and STOP_BY_HAND not in state.holds)


def _session_opened(state: CampaignState, event: Event) -> CampaignState:
    open_id = state.session.id if state.session else None
    _need(event, open_id is None, f"session {open_id} is still open; close it with a handover note first")
    session = session_from(body_of(event, SessionOpened))
    return replace(state, session=session, people=joined(state.people, session))


def _open_session(state: CampaignState, event: Event) -> Session:
    """The session that is open, which the entry has to name."""
    open_id = state.session.id if state.session else None
    _need(event, open_id == event.body["session"], f"the open session is {open_id}")
    assert state.session is not None
    return state.session


def _session_changed(state: CampaignState, event: Event) -> CampaignState:
    session = _open_session(state, event)
    session = replace(session, people=session_from(body_of(event, SessionOpened)).people)
    return replace(state, session=session, people=joined(state.people, session))


def _session_closed(state: CampaignState, trials: dict[str, Trial], event: Event) -> CampaignState:
    session, turn = _open_session(state, event), next_trial(state)
    if turn is not None and turn.state == State.RUNNING:
        trials[turn.id] = replace(turn, watched=session.ids)
    return replace(state, session=None)


def _hold_raised(state: CampaignState, event: Event) -> CampaignState:
    code, text = event.body["code"], event.body["text"]
    return replace(state, holds={**state.holds, code: text}, raised={**state.raised, code: event.seq})


def _hold_cleared(state: CampaignState, event: Event) -> CampaignState:
    code = event.body["code"]
    _need(event, code in state.holds, f"no hold {code!r} stands")
    return replace(state, holds=_without(state, code))


def _faulted(state: CampaignState, event: Event) -> CampaignState:
    return replace(state, faulted=event.body["reason"])


def _acknowledged(state: CampaignState, event: Event) -> CampaignState:
    _need(event, state.faulted is not None, "the cell is not faulted")
    _need(event, bool(event.who), "a named person acknowledges a fault")
    return replace(state, faulted=None)


# What concerns no trial, and changes nothing here.
_NOTED = frozenset(
    {Kind.RUN_STOPPED, Kind.ARMS_ASKED, Kind.DEVIATION, Kind.NOTE, Kind.PRACTICE_RECORDED, Kind.REFERENCE_SET}
    | {Kind.LOOK_TAKEN, Kind.MEDIA_STORED, Kind.MEDIA_TRIMMED}
)
_CAMPAIGN_WIDE: Mapping[str, Callable[[CampaignState, Event], CampaignState]] = {
    Kind.SESSION_OPENED: _session_opened,
    Kind.SESSION_CHANGED: _session_changed,
    Kind.HOLD_RAISED: _hold_raised,
    Kind.HOLD_CLEARED: _hold_cleared,
    Kind.CELL_FAULTED: _faulted,
    Kind.FAULT_ACKNOWLEDGED: _acknowledged,
}


def _need(event: Event, fits: bool, why: str) -> None:
    if not fits:
        raise StateError(f"{cannot(event.kind)}: {why}")
