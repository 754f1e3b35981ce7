"""Claims about recovery, on journals that a machine writes and cuts anywhere."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.short_journal import SECOND, TO_ARMED, Book, book_after, prefix

from labctl.core.events import EndReason, Event, Kind
from labctl.core.recovery import reconcile
from labctl.core.rollout import void_reason
from labctl.core.session import Role
from labctl.core.trial import LIVE, State, Verb, advance, allowed, next_trial
from labctl.errors import StateError

ARMS = ("human", "policy-a")
VERB_KIND = {
    Verb.STAGE: Kind.TRIAL_STAGING,
    Verb.SKIP: Kind.TRIAL_SKIPPED,
    Verb.COMMIT: Kind.SCENE_COMMITTED,
    Verb.RELEASE: Kind.TRIAL_RELEASED,
    Verb.REVEAL: Kind.ARM_REVEALED,
    Verb.START: Kind.EPISODE_STARTED,
    Verb.VOID: Kind.EPISODE_VOIDED,
    Verb.END: Kind.EPISODE_ENDED,
    Verb.SCORE: Kind.OUTCOME_RECORDED,
    Verb.CORRECT: Kind.OUTCOME_CORRECTED,
}


@pytest.mark.parametrize("kinds", [TO_ARMED[:1], TO_ARMED[:2]])
def test_a_trial_that_was_being_staged_is_planned_again(kinds):
    book = book_after(*kinds)
    assert [item.kind for item in book.settle()] == [Kind.TRIAL_RELEASED]
    assert book.state.trials["t-0"].state == State.PLANNED and book.state.trials["t-0"].voids == 0


def test_an_armed_trial_is_voided_and_its_next_turn_comes_first():
    book = book_after(*TO_ARMED)
    (item,) = book.settle()
    assert item.kind == Kind.EPISODE_VOIDED and item.episode == "e-1"
    assert item.body["after_go"] is False and item.body["by_recovery"] is True
    assert next_trial(book.state) == book.state.trials["t-0"]
    assert book.state.trials["t-0"].state == State.PLANNED


def test_an_episode_lost_before_go_is_void_under_either_rule():
    for rule_ in ("void", "score"):
        book = book_after(*TO_ARMED, Kind.EPISODE_STARTED)
        kinds = [item.kind for item in book.settle(rule_)]
        assert kinds == [Kind.EPISODE_ENDED, Kind.EPISODE_VOIDED]
        assert book.state.trials["t-0"].voids == 1


@pytest.mark.parametrize(("rule_", "state"), [("void", State.PLANNED), ("score", State.SCORING)])
def test_an_episode_lost_after_go_is_voided_or_left_to_be_scored_by_the_rule(rule_, state):
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    said = book.settle(rule_)
    assert book.state.trials["t-0"].state == state
    if rule_ == "void":
        end = next(event for event in book.events if event.kind == Kind.EPISODE_ENDED)
        assert said[-1].body["evidence"] == end.seq and said[-1].body["after_go"] is True
    else:
        assert book.state.trials["t-0"].ended == EndReason.PROCESS_LOST
        assert Verb.SCORE in allowed(book.state, book.state.trials["t-0"], [], Role.ASSESSOR)


def test_an_episode_that_ended_by_itself_is_left_to_be_scored():
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO, Kind.EPISODE_ENDED, Kind.RECORDING_SEALED)
    assert book.settle() == [] and book.state.trials["t-0"].state == State.SCORING


def test_a_lost_episode_waits_for_its_seal_before_it_is_voided():
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    (ended,) = reconcile(book.events, rule="void", last_sample_ns={})
    book.add(ended.kind, ended.trial, ended.episode, ended.body)
    assert reconcile(book.events, rule="void", last_sample_ns={}) == []


@pytest.mark.parametrize(
    ("last", "end_ns"),
    [
        ({}, 8 * SECOND),
        ({"e-1": 7 * SECOND}, 8 * SECOND),
        ({"e-1": 9 * SECOND}, 9 * SECOND),
        ({"e-2": 99 * SECOND}, 8 * SECOND),
    ],
)
def test_a_lost_episode_ends_with_the_last_thing_that_happened_in_it(last, end_ns):
    """Go is at 5 s (device time), an operation at 6 s; the book's events are a second apart, started at 5 s."""
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    book.add(Kind.OPERATION_RECORDED, "t-0", "e-1", {"op_index": 0, "result": "success", "t_ns": 8 * SECOND})
    assert reconcile(book.events, rule="void", last_sample_ns=last)[0].body["end_ns"] == end_ns


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Kind.STAGE_REACHED, {"reached": 1}),
        (Kind.ITEM_COUNTED, {"moved": 1}),
        (Kind.INTERVENTION_BEGAN, {"number": 0, "kind": "other", "by": "console"}),
        (Kind.INSTRUCTION_SWITCHED, {"number": 0, "name": "other", "instruction": "Stop.", "planned_ns": 8 * SECOND}),
    ],
)
def test_a_lost_episode_ends_no_earlier_than_anything_that_was_seen_in_it(kind, body):
    """A stage that was reached in the last second, of which no sample was kept, was refused by the score form."""
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    book.add(kind, "t-0", "e-1", {**body, "t_ns": 9 * SECOND})
    assert reconcile(book.events, rule="score", last_sample_ns={})[0].body["end_ns"] == 9 * SECOND


def test_a_lost_episode_ends_no_earlier_than_a_hand_was_out_of_it():
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    touch = {"number": 0, "kind": "other"}
    book.add(Kind.INTERVENTION_BEGAN, "t-0", "e-1", {**touch, "by": "console", "t_ns": 8 * SECOND})
    book.add(Kind.INTERVENTION_ENDED, "t-0", "e-1", {**touch, "t_ns": 11 * SECOND})
    assert reconcile(book.events, rule="score", last_sample_ns={})[0].body["end_ns"] == 11 * SECOND


@pytest.mark.parametrize(
    "reason", [reason for reason in EndReason if reason not in (EndReason.ALL_DONE, EndReason.BUDGET)]
)
@pytest.mark.parametrize("rule_", ["void", "score"])
def test_whatever_ended_an_episode_before_go_it_is_void_once_it_is_sealed(rule_, reason):
    """The run was over between its end and its seal."""
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED)
    book.add(Kind.EPISODE_ENDED, "t-0", "e-1", {"reason": str(reason), "end_ns": len(book.events) * SECOND})
    (void,) = book.settle(rule_)
    assert (void.kind, void.body["reason"], void.body["after_go"]) == (Kind.EPISODE_VOIDED, void_reason(reason), False)
    assert "it had not begun" in void.text and book.state.trials["t-0"].state == State.PLANNED


def test_an_episode_that_was_scored_before_ends_before_go_were_void_stays_scored():
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED)
    book.add(Kind.EPISODE_ENDED, "t-0", "e-1", {"reason": "operator", "end_ns": len(book.events) * SECOND})
    book.on(Kind.RECORDING_SEALED)
    outcome = {"items_staged": 2, "moved": 2, "lost": 0, "remaining": 0, "end_reason": "operator"}
    book.add(Kind.OUTCOME_RECORDED, "t-0", "e-1", {"outcome": outcome})
    assert book.settle() == [] and book.state.trials["t-0"].outcome.moved == 2


def test_a_lost_episode_ends_with_its_budget_at_the_latest():
    """What records goes on for a moment after the run process is gone; nothing moves beyond the budget."""
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    go_ns = book.state.trials["t-0"].go_ns
    (ended,) = reconcile(book.events, rule="score", last_sample_ns={"e-1": go_ns + 63 * SECOND})
    assert ended.body["end_ns"] == go_ns + 60 * SECOND and "60.0 s after go" in ended.text


def test_downtime_is_never_trial_time():
    book = book_after(*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)
    before = reconcile(book.events, rule="void", last_sample_ns={})
    for _ in range(60):
        book.add(Kind.RUN_STARTED)
    book.add(Kind.GAP, "t-0", "e-1", {"stream": "arm/state", "why": "process lost"})
    assert reconcile(book.events, rule="void", last_sample_ns={})[0].body == before[0].body


def test_what_was_concluded_is_said_without_an_arm():
    for kinds in (TO_ARMED[:1], TO_ARMED, (*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)):
        for item in book_after(*kinds).settle():
            assert item.text.startswith("trial 1 of ") and item.trial not in item.text, "in the words of the screen"
            assert not any(arm in item.text for arm in ARMS)


def test_the_last_void_of_recovery_says_that_the_trial_is_to_be_skipped():
    book = book_after(*TO_ARMED)
    book.settle()
    for kind in TO_ARMED:
        book.on(kind)
    (item,) = book.settle()
    assert "skip it" in item.text
    assert allowed(book.state, book.state.trials["t-0"], [], Role.OPERATOR) == (Verb.SKIP,)


@pytest.mark.parametrize("dies", ["armed", "after go", "with its process"])
def test_a_policy_that_always_dies_ends_as_not_run_and_never_in_an_endless_void(dies):
    book = Book(trials=2, max_voids=3)
    steps = 0
    while (trial := next_trial(book.state)) is not None:
        steps += 1
        assert steps < 100
        verbs = allowed(book.state, trial, [], Role.OPERATOR)
        if trial.state == State.ARMED and dies == "armed":
            book.on(Kind.EPISODE_VOIDED, trial.id)
        elif trial.state == State.RUNNING:
            book.on(Kind.GO, trial.id)
            if dies == "with its process":
                book.settle()
            else:
                book.on(Kind.EPISODE_ENDED, trial.id)
                book.on(Kind.RECORDING_SEALED, trial.id)
                book.on(Kind.EPISODE_VOIDED, trial.id)
        else:
            book.on(VERB_KIND[next(verb for verb in verbs if verb != Verb.RELEASE)], trial.id)
    assert [trial.state for trial in book.state.trials.values()] == [State.NOT_RUN] * 2
    assert [trial.voids for trial in book.state.trials.values()] == [3, 3]
    assert [len(trial.episodes) for trial in book.state.trials.values()] == [3, 3]


NAMES = st.sampled_from(["t-0", "t-1", "t-2"])
TRIAL_KINDS = sorted({*VERB_KIND.values(), Kind.GO, Kind.OPERATION_RECORDED, Kind.RECORDING_SEALED, Kind.GAP})
GOOD_PATH = {
    State.PLANNED: (Kind.TRIAL_STAGING, Kind.TRIAL_SKIPPED),  # the second is refused unless the first is
    State.STAGING: (Kind.SCENE_COMMITTED,),
    State.COMMITTED: (Kind.ARM_REVEALED,),
    State.ARMED: (Kind.EPISODE_STARTED,),
    State.RUNNING: (Kind.GO, Kind.OPERATION_RECORDED, Kind.EPISODE_ENDED),
    State.SCORING: (Kind.RECORDING_SEALED, Kind.OUTCOME_RECORDED),
}


class CampaignMachine(RuleBasedStateMachine):
    """Legal and illegal events in any order; every claim is checked on what was accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book()
        self.committed = dict.fromkeys(self.book.state.trials, False)

    def attempt(self, event: Event) -> bool:
        before = self.book.state
        try:
            self.book.add(event.kind, event.trial, event.episode, event.body)
        except StateError:
            assert self.book.state is before
            return False
        if event.trial is not None:
            self.remember(event.kind, event.trial)
        return True

    def remember(self, kind: str, name: str) -> None:
        if kind == Kind.ARM_REVEALED:
            assert self.committed[name], "armed without a commit"
        if kind == Kind.SCENE_COMMITTED:
            self.committed[name] = True
        elif kind in (Kind.TRIAL_RELEASED, Kind.EPISODE_VOIDED, Kind.ARM_REVEALED):
            self.committed[name] = False

    @rule(kind=st.sampled_from(TRIAL_KINDS), name=NAMES)
    def try_anything(self, kind: str, name: str) -> None:
        self.attempt(self.book.fitting(kind, name))

    @rule(steps=st.integers(1, 9))
    def walk_on(self, steps: int) -> None:
        """Some steps along the good path, as most trials go."""
        for _ in range(steps):
            trial = next_trial(self.book.state)
            if trial is not None and trial.state in GOOD_PATH:
                for kind in GOOD_PATH[trial.state]:
                    self.attempt(self.book.fitting(kind, trial.id))

    @rule(choice=st.integers(0, 9), role=st.sampled_from(list(Role)))
    def do_what_is_allowed(self, choice: int, role: Role) -> None:
        trial = next_trial(self.book.state)
        verbs = allowed(self.book.state, trial, [], role) if trial is not None else ()
        if trial is not None and verbs:
            assert self.attempt(self.book.fitting(VERB_KIND[verbs[choice % len(verbs)]], trial.id))

    @rule()
    def record(self) -> None:
        trial = next_trial(self.book.state)
        if trial is not None:
            for kind in (Kind.GO, Kind.RECORDING_SEALED):
                self.attempt(self.book.fitting(kind, trial.id))

    @rule(raised=st.booleans())
    def hold(self, raised: bool) -> None:
        self.attempt(
            self.book.make(Kind.HOLD_RAISED if raised else Kind.HOLD_CLEARED, None, None, {"code": "x", "text": "x"})
        )

    @precondition(lambda self: len(self.book.events) > 30)
    @rule(kind=st.sampled_from([Kind.CAMPAIGN_CLOSED, Kind.CAMPAIGN_FROZEN, Kind.CAMPAIGN_UNBLINDED]))
    def finish(self, kind: Kind) -> None:
        self.attempt(self.book.make(kind, None, None, {"reason": "enough", "early": True}))

    @rule(how=st.sampled_from(["void", "score"]))
    def crash_and_recover(self, how: str) -> None:
        before = len(self.book.events)
        self.book.settle(how)
        for event in self.book.events[before:]:
            if event.trial is not None:
                self.remember(event.kind, event.trial)

    @invariant()
    def what_is_allowed_is_accepted(self) -> None:
        for trial in self.book.state.trials.values():
            for role in Role:
                for verb in allowed(self.book.state, trial, [], role):
                    advance(self.book.state, self.book.fitting(VERB_KIND[verb], trial.id))

    @invariant()
    def at_most_one_trial_is_under_way_and_voids_have_an_end(self) -> None:
        trials = self.book.state.trials.values()
        assert sum(trial.state in LIVE for trial in trials) <= 1
        assert all(trial.voids <= trial.max_voids and len(trial.episodes) <= trial.max_voids for trial in trials)

    def teardown(self) -> None:
        for length in range(1, len(self.book.events) + 1):
            for how in ("void", "score"):
                cut = prefix(self.book, length)
                cut.settle(how)
                assert not any(trial.state in LIVE for trial in cut.state.trials.values())
                settled = list(cut.events)
                assert cut.settle(how) == [] and cut.events == settled


CampaignMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCampaignMachine = CampaignMachine.TestCase
