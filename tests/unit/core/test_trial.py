"""Claims about the trial table, the campaign's phases and what people may do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.runs.handwritten_journal import (
    HOLD,
    OPENED,
    OUTCOME,
    PATHS,
    SCHEDULE,
    STANDING,
    TO_ARMED,
    TO_SCORING,
    Book,
)

from labctl.core.events import EndReason, Event, Kind
from labctl.core.session import Role
from labctl.core.trial import Phase, State, Verb, advance, allowed, fold, next_trial
from labctl.core.trial_table import TRANSITIONS
from labctl.errors import BrokenRecord, InputError, StateError


def test_a_trial_walks_from_planned_to_scored_and_a_correction_appends():
    book = Book(*PATHS[State.SCORED])
    trial = book.trial()
    assert (trial.state, trial.episode, trial.episodes) == (State.SCORED, "e-1", ("e-1",))
    assert (trial.go_ns, trial.end_ns, trial.ended) == (100, 200, EndReason.ALL_DONE)
    assert trial.outcome is not None and trial.outcome.moved == 3
    book.on(Kind.OUTCOME_CORRECTED)
    corrected = book.trial()
    assert corrected.outcome is not None and corrected.outcome.moved == 4 and corrected.state == State.SCORED
    assert corrected.version > trial.version


# design.md section 4, as a table of its own: kind -> {state it may come from: state it leads to}.
TABLE = {
    Kind.TRIAL_STAGING: {State.PLANNED: State.STAGING},
    Kind.TRIAL_SKIPPED: {State.PLANNED: State.NOT_RUN},
    Kind.SCENE_COMMITTED: {State.STAGING: State.COMMITTED},
    Kind.TRIAL_RELEASED: {State.STAGING: State.PLANNED, State.COMMITTED: State.PLANNED},
    Kind.ARM_REVEALED: {State.COMMITTED: State.ARMED},
    Kind.EPISODE_STARTED: {State.ARMED: State.RUNNING},
    Kind.EPISODE_ENDED: {State.RUNNING: State.SCORING},
    Kind.OUTCOME_RECORDED: {State.SCORING: State.SCORED},
    Kind.EPISODE_VOIDED: {State.ARMED: State.PLANNED, State.SCORING: State.PLANNED},
}


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("kind", TABLE)
def test_every_event_is_accepted_from_its_states_and_refused_from_all_others(state, kind):
    book = Book(*PATHS[state])
    assert book.trial().state == state
    before = book.state
    changes = {"after_go": True} if kind == Kind.EPISODE_VOIDED and state == State.SCORING else {}
    if state in TABLE[kind]:
        book.on(kind, **changes)
        assert book.trial().state == TABLE[kind][state]
    else:
        with pytest.raises(StateError, match=rf"trial 1 of [0-9]+ is {state}"):
            book.on(kind, **changes)
        assert book.state is before


def test_no_path_leads_to_armed_but_through_a_commit_nor_back_to_planned_but_through_a_void():
    edges = [(origin, to, kind) for kind, (origins, to) in TRANSITIONS.items() for origin in origins if to is not None]

    def reachable(start: State, without: Kind) -> set[State]:
        found, todo = {start}, [start]
        while todo:
            here = todo.pop()
            new = {to for origin, to, kind in edges if origin == here and kind != without} - found
            found |= new
            todo += new
        return found

    assert State.ARMED in reachable(State.PLANNED, without=Kind.EPISODE_VOIDED)
    assert State.ARMED not in reachable(State.PLANNED, without=Kind.SCENE_COMMITTED)
    assert State.PLANNED not in reachable(State.ARMED, without=Kind.EPISODE_VOIDED)


def test_a_void_before_go_keeps_the_trial_and_the_next_reveal_opens_a_new_episode():
    book = Book(*TO_ARMED)
    book.on(Kind.EPISODE_VOIDED)
    assert (book.trial().state, book.trial().episode, book.trial().voids) == (State.PLANNED, None, 1)
    book.on(Kind.TRIAL_STAGING)
    book.on(Kind.SCENE_COMMITTED)
    with pytest.raises(StateError, match="belongs to a trial already"):
        book.on(Kind.ARM_REVEALED, episode="e-1")
    book.on(Kind.ARM_REVEALED, episode="e-9")
    assert book.trial().episodes == ("e-1", "e-9") and book.trial().episode == "e-9"


@pytest.mark.parametrize("next_", [Kind.SCENE_COMMITTED, Kind.TRIAL_RELEASED])
def test_a_journal_that_goes_on_straight_after_a_void_still_folds(next_):
    """Until November 2026 a void led to staging, without an order."""
    book = Book(*TO_ARMED)
    book.on(Kind.EPISODE_VOIDED)
    book.on(next_)
    assert book.trial().state == TABLE[next_][State.STAGING]


def test_a_void_forgets_the_clock_and_the_seal_of_the_episode_it_voids():
    book = Book(*PATHS[State.SCORING])
    book.on(Kind.EPISODE_VOIDED, after_go=True)
    trial = book.trial()
    assert (trial.go_ns, trial.end_ns, trial.ended, trial.sealed_recording) == (None, None, None, False)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"evidence": None}, "a machine event or a second person"),
        ({"evidence": 99}, "an earlier entry"),
        ({"evidence": None, "confirmed_by": "p-1"}, "another one"),
        ({"reason": "it looked bad"}, "the protocol allows only: process_lost, arm_lost, hardware_fault"),
        ({"reason": ""}, "the protocol allows only"),
        ({"after_go": False}, "after_go must be True"),
        ({"episode": "e-other"}, "the current episode is e-1"),
    ],
)
def test_a_void_after_go_needs_a_listed_reason_and_a_machine_event_or_a_second_person(changes, says):
    book = Book(*PATHS[State.SCORING])
    with pytest.raises(StateError, match=says):
        book.on(Kind.EPISODE_VOIDED, **{"after_go": True, **changes})


def test_a_void_after_go_stands_on_a_second_person():
    book = Book(*PATHS[State.SCORING])
    book.on(Kind.EPISODE_VOIDED, after_go=True, evidence=None, confirmed_by="p-2")
    assert book.trial().voids == 1


def test_a_void_written_by_recovery_leads_to_planned_since_the_scene_is_gone():
    book = Book(*TO_ARMED)
    book.on(Kind.EPISODE_VOIDED, by_recovery=True)
    assert book.trial().state == State.PLANNED


def test_after_the_last_void_a_trial_may_only_be_skipped():
    book = Book(*TO_ARMED)
    book.on(Kind.EPISODE_VOIDED)
    for kind in (Kind.SCENE_COMMITTED, Kind.ARM_REVEALED, Kind.EPISODE_VOIDED):
        book.on(kind)
    assert book.trial().exhausted and book.trial().state == State.PLANNED
    with pytest.raises(StateError, match="may only be skipped"):
        book.on(Kind.TRIAL_STAGING)
    assert allowed(book.state, book.trial(), [], Role.OPERATOR) == (Verb.SKIP,)
    book.on(Kind.TRIAL_SKIPPED)
    assert book.trial().state == State.NOT_RUN and next_trial(book.state) == book.trial("t-1")


def test_nothing_is_scored_before_its_recording_is_sealed():
    book = Book(*TO_SCORING)
    assert Verb.SCORE not in allowed(book.state, book.trial(), [], Role.ASSESSOR)
    with pytest.raises(StateError, match="not sealed"):
        book.on(Kind.OUTCOME_RECORDED)
    book.on(Kind.RECORDING_SEALED)
    assert Verb.SCORE in allowed(book.state, book.trial(), [], Role.ASSESSOR)


@pytest.mark.parametrize("state", [State.ARMED, State.RUNNING, State.SCORING, State.SCORED])
def test_a_recording_is_sealed_once_and_only_after_the_end(state):
    book = Book(*PATHS[state])
    with pytest.raises(StateError, match="sealed once, after the episode ended"):
        book.on(Kind.RECORDING_SEALED)


def test_the_recording_of_a_voided_episode_may_be_sealed_and_changes_nothing():
    book = Book(*TO_ARMED)
    book.on(Kind.EPISODE_VOIDED)
    before = book.trial()
    book.on(Kind.RECORDING_SEALED, episode="e-1")
    assert book.trial() == before


@pytest.mark.parametrize(
    ("kind", "path", "changes", "error"),
    [
        (Kind.TRIAL_RELEASED, TO_ARMED[:1], {"reason": ""}, StateError),
        (Kind.TRIAL_SKIPPED, (), {"reason": ""}, StateError),
        (Kind.ARM_REVEALED, TO_ARMED[:2], {"episode": None}, StateError),
        (Kind.EPISODE_STARTED, TO_ARMED, {"episode": "e-other"}, StateError),
        (Kind.GO, (*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO), {}, StateError),
        (Kind.GO, TO_ARMED, {}, StateError),
        (Kind.EPISODE_ENDED, TO_SCORING[:-1], {"end_ns": 99}, StateError),
        (Kind.EPISODE_ENDED, TO_SCORING[:-1], {"end_ns": None}, StateError),
        (Kind.EPISODE_ENDED, TO_SCORING[:-1], {"reason": "bored"}, StateError),
        (Kind.OPERATION_RECORDED, PATHS[State.SCORED], {}, StateError),
        (Kind.OUTCOME_RECORDED, PATHS[State.SCORING], {"outcome": {**OUTCOME, "moved": 4}}, InputError),
        (Kind.OUTCOME_CORRECTED, PATHS[State.SCORING], {}, StateError),
        (Kind.OUTCOME_CORRECTED, PATHS[State.SCORED], {"old": {**STANDING, "moved": 0}}, StateError),
        (Kind.OUTCOME_CORRECTED, PATHS[State.SCORED], {"why": ""}, StateError),
        (Kind.OUTCOME_CORRECTED, PATHS[State.SCORED], {"new": {**OUTCOME, "lost": 4}}, InputError),
    ],
)
def test_an_event_whose_body_does_not_fit_is_refused(kind, path, changes, error):
    book = Book(*path)
    with pytest.raises(error):
        book.on(kind, **changes)


def test_operations_and_gaps_do_not_make_a_screen_stale():
    book = Book(*PATHS[State.RUNNING], Kind.GO)
    shown = book.trial().version
    book.on(Kind.OPERATION_RECORDED)
    book.add(Kind.GAP, "t-0", "e-1", stream="arm/state")
    assert book.trial().version == shown
    book.on(Kind.EPISODE_ENDED)
    assert book.trial().version > shown


def test_trials_are_staged_in_the_order_of_the_schedule():
    book = Book()
    with pytest.raises(StateError, match=r"trial 1 of [0-9]+ comes before trial 2 of"):
        book.on(Kind.TRIAL_STAGING, trial="t-1")
    assert allowed(book.state, book.trial("t-1"), [], Role.OPERATOR) == ()
    assert allowed(book.state, book.trial("t-0"), [], Role.OPERATOR) == (Verb.STAGE,)


def test_the_next_trial_passes_over_those_skipped_out_of_turn():
    book = Book()
    book.on(Kind.TRIAL_SKIPPED, trial="t-1")
    assert next_trial(book.state) == book.trial("t-0")
    book.on(Kind.TRIAL_SKIPPED, trial="t-0")
    assert next_trial(book.state) == book.trial("t-2")
    book.on(Kind.TRIAL_SKIPPED, trial="t-2")
    book.on(Kind.TRIAL_SKIPPED, trial="t-3")
    assert next_trial(book.state) is None


ALLOWED = {
    State.PLANNED: {Verb.STAGE: "operator setter"},
    State.STAGING: {Verb.COMMIT: "operator setter", Verb.RELEASE: "operator setter"},
    State.COMMITTED: {Verb.REVEAL: "operator setter", Verb.RELEASE: "operator setter"},
    State.ARMED: {Verb.START: "operator setter", Verb.VOID: "operator setter"},
    State.RUNNING: {Verb.END: "operator setter"},
    State.SCORING: {Verb.SCORE: "operator assessor", Verb.VOID: "operator setter"},
    State.SCORED: {Verb.CORRECT: "operator assessor"},
    State.NOT_RUN: {},
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("state", State)
def test_each_role_may_do_what_the_table_says_and_nothing_else(state, role):
    book = Book(*PATHS[state])
    expected = {verb for verb, roles in ALLOWED[state].items() if str(role) in roles.split()}
    assert set(allowed(book.state, book.trial(), [], role)) == expected


@pytest.mark.parametrize("how", ["live", "journalled", "faulted"])
@pytest.mark.parametrize("state", State)
def test_a_hold_or_a_faulted_cell_leaves_only_what_ends_gives_back_or_judges(state, how):
    book = Book(*PATHS[state])
    free = set(allowed(book.state, book.trial(), [], Role.OPERATOR))
    if how == "journalled":
        book.add(Kind.HOLD_RAISED, code="arm_lost", text="look at the robot")
    if how == "faulted":
        book.add(Kind.CELL_FAULTED, reason="clean-up failed")
    held = set(allowed(book.state, book.trial(), [HOLD] if how == "live" else [], Role.OPERATOR))
    assert held == free - {Verb.STAGE, Verb.COMMIT, Verb.REVEAL, Verb.START}


def test_a_hold_and_a_fault_stand_until_a_person_clears_them():
    book = Book()
    book.add(Kind.HOLD_RAISED, code="arm_lost", text="look at the robot")
    book.add(Kind.CELL_FAULTED, reason="clean-up failed")
    assert book.state.holds == {"arm_lost": "look at the robot"} and book.state.faulted == "clean-up failed"
    with pytest.raises(StateError, match="no hold 'other' stands"):
        book.add(Kind.HOLD_CLEARED, code="other", acknowledged_by="p-1")
    book.add(Kind.HOLD_CLEARED, code="arm_lost", acknowledged_by="p-1")
    with pytest.raises(StateError, match="a named person"):
        book.add(Kind.FAULT_ACKNOWLEDGED, who="", reason="checked")
    book.add(Kind.FAULT_ACKNOWLEDGED, reason="checked")
    assert book.state.holds == {} and book.state.faulted is None
    with pytest.raises(StateError, match="not faulted"):
        book.add(Kind.FAULT_ACKNOWLEDGED, reason="again")


def test_a_session_is_open_until_it_is_closed():
    book = Book()
    people = [{"id": "p-1", "roles": ["operator"]}]
    with pytest.raises(StateError, match="the open session is None"):
        book.add(Kind.SESSION_CLOSED, session="s-1", handover="")
    book.add(Kind.SESSION_OPENED, session="s-1", people=people, checks={"e-stop": True})
    assert book.state.session is not None and book.state.session.people[0].roles == (Role.OPERATOR,)
    with pytest.raises(StateError, match="session s-1 is still open"):
        book.add(Kind.SESSION_OPENED, session="s-2", people=people)
    book.add(Kind.SESSION_CLOSED, session="s-1", handover="towels are wet")
    assert book.state.session is None


@pytest.mark.parametrize("state", [State.STAGING, State.COMMITTED, State.ARMED, State.RUNNING])
@pytest.mark.parametrize("kind", [Kind.CAMPAIGN_CLOSED, Kind.CAMPAIGN_UNBLINDED])
def test_a_campaign_is_not_closed_or_unblinded_over_a_trial_that_is_under_way(state, kind):
    book = Book(*PATHS[state])
    with pytest.raises(StateError, match=rf"trial 1 of [0-9]+ is {state}; finish or void it first"):
        book.add(kind, reason="enough", early=True)


def test_a_closed_campaign_is_scored_and_corrected_but_nothing_begins():
    book = Book(*PATHS[State.SCORING])
    book.add(Kind.CAMPAIGN_CLOSED, reason="enough")
    assert allowed(book.state, book.trial(), [], Role.OPERATOR) == (Verb.SCORE,)
    assert allowed(book.state, book.trial("t-1"), [], Role.OPERATOR) == ()
    with pytest.raises(StateError, match="the campaign is closed"):
        book.on(Kind.EPISODE_VOIDED, after_go=True)
    with pytest.raises(StateError, match=r"trial 1 of [0-9]+ is scoring"):
        book.add(Kind.CAMPAIGN_FROZEN, reviewed=False)
    book.on(Kind.OUTCOME_RECORDED)
    with pytest.raises(StateError, match="the campaign is closed"):
        book.on(Kind.TRIAL_STAGING, trial="t-1")
    book.on(Kind.TRIAL_SKIPPED, trial="t-1")
    assert allowed(book.state, book.trial(), [], Role.ASSESSOR) == (Verb.CORRECT,)


def test_a_campaign_goes_from_open_to_unblinded_and_then_nothing_may_change():
    book = Book(*PATHS[State.SCORED])
    phases = [book.state.phase]
    for kind, body in (
        (Kind.CAMPAIGN_CLOSED, {}),
        (Kind.CAMPAIGN_REVIEWED, {"by": "p-2"}),
        (Kind.CAMPAIGN_FROZEN, {"reviewed": True}),
        (Kind.CAMPAIGN_UNBLINDED, {"early": False}),
    ):
        book.add(kind, **body)
        phases.append(book.state.phase)
        if book.state.phase != Phase.CLOSED:
            assert allowed(book.state, book.trial(), [], Role.OPERATOR) == ()
            with pytest.raises(StateError, match="the campaign is"):
                book.on(Kind.OUTCOME_CORRECTED)
    assert phases == [Phase.OPEN, Phase.CLOSED, Phase.REVIEWED, Phase.FROZEN, Phase.UNBLINDED]
    assert not book.state.unblinded_early


@pytest.mark.parametrize("body", [{"early": True}, {"early": True, "reason": ""}, {"early": False, "reason": "x"}, {}])
def test_early_unblinding_says_so_and_why(body):
    book = Book()
    with pytest.raises(StateError, match=r"early must be True|needs a reason"):
        book.add(Kind.CAMPAIGN_UNBLINDED, **body)
    book.add(Kind.CAMPAIGN_UNBLINDED, early=True, reason="a policy was dangerous")
    assert book.state.unblinded_early and book.state.phase == Phase.UNBLINDED


@pytest.mark.parametrize("kind", [k for k in Kind if k != Kind.CAMPAIGN_OPENED])
def test_before_it_is_opened_a_campaign_takes_no_event(kind):
    with pytest.raises(StateError, match="it is opened first, and once"):
        fold([Event(1, kind, 0, "boot", "", "p-1", "t-0", "e-0", {})])


def test_a_campaign_is_opened_once_and_with_distinct_trials():
    with pytest.raises(StateError, match="it is opened first, and once"):
        Book().add(Kind.CAMPAIGN_OPENED, **OPENED)
    with pytest.raises(StateError, match="twice in the schedule"):
        fold([Event(1, Kind.CAMPAIGN_OPENED, 0, "boot", "", "p-1", body={**OPENED, "schedule": [SCHEDULE[0]] * 2})])


def test_an_event_about_an_unknown_trial_is_refused():
    with pytest.raises(StateError, match="there is no trial 't-99'"):
        Book().on(Kind.TRIAL_STAGING, trial="t-99")


def test_folding_is_advancing_and_leaves_earlier_states_alone():
    book = Book()
    start = book.state
    for kind in PATHS[State.SCORED]:
        book.on(kind)
    assert fold(book.events) == book.state
    assert start.trials["t-0"].state == State.PLANNED
    assert (book.state.last_seq, book.state.head) == (len(book.events), f"h{len(book.events)}")


def test_events_out_of_order_are_a_broken_record():
    book = Book(Kind.TRIAL_STAGING)
    with pytest.raises(BrokenRecord, match="out of order"):
        advance(book.state, replace(book.events[-1], kind=Kind.DEVIATION))
