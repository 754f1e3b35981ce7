"""Claims about which two episodes of a block are compared, and about what may be said of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from labctl.core.design import compared_positions, draw, williams
from labctl.core.events import Event, Kind
from labctl.core.trial import State, Trial, apply
from labctl.errors import StateError
from labctl.store.ledger import commitment_of, compared_trials

SECRET = bytes(range(32))


@pytest.mark.parametrize("arms", range(2, 8))
def test_in_each_complete_square_every_arm_runs_first_of_a_pair_as_often_as_second(arms: int) -> None:
    rows = len(williams(arms))
    names = [f"a{n}" for n in range(arms)]
    schedule = draw(["o"], names, 5 * rows, SECRET)
    arm_at = {(slot.block, slot.position): slot.arm for slot in schedule.slots}
    pairs = compared_positions(arms, 5 * rows, SECRET)
    assert all(0 <= first < second < arms for first, second in pairs)
    for square in range(5):
        blocks = range(square * rows, (square + 1) * rows)
        firsts = Counter(arm_at[block, pairs[block][0]] for block in blocks)
        seconds = Counter(arm_at[block, pairs[block][1]] for block in blocks)
        assert set(firsts.values()) == set(seconds.values()) == {rows // arms}


def test_every_pair_of_places_has_its_turn_and_none_follows_from_the_commitment_without_the_secret() -> None:
    pairs = compared_positions(4, 24, SECRET)
    assert Counter(pairs) == dict.fromkeys([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 4)
    assert pairs != compared_positions(4, 24, bytes(32))
    slots = [{"index": 0, "trial": "t", "block": 0, "position": 0, "condition": "c", "arm": "a"}]
    assert commitment_of(slots, SECRET) != commitment_of(slots, bytes(32)), "the commitment binds the secret"


def test_exchanging_two_arms_changes_nothing_of_what_is_compared() -> None:
    slots = [
        {"index": s.index, "trial": s.trial, "block": s.block, "position": s.position, "condition": "o", "arm": s.arm}
        for s in draw(["o"], ["a", "b", "c"], 6, SECRET).slots
    ]
    other = [{**slot, "arm": {"a": "b", "b": "a"}.get(slot["arm"], slot["arm"])} for slot in slots]
    assert compared_trials(slots, SECRET) == compared_trials(other, SECRET)


def told(kind: Kind, **body: str) -> Event:
    return Event(9, kind, 0, "", "", "ann", "t-2", "e-2", body)


SCORED = Trial("t-2", 0, 1, "c", "trial 2 of 3", state=State.SCORED, episode="e-2", episodes=("e-2",), max_voids=3)
ASKED = replace(SCORED, compared="e-1")
SAID = {"first": "e-1", "second": "e-2", "preferred": "second", "why": "it was quicker"}


def test_a_later_word_replaces_an_earlier_one() -> None:
    first = apply(ASKED, told(Kind.PREFERENCE_STATED, **SAID))
    later = apply(first, told(Kind.PREFERENCE_STATED, **{**SAID, "preferred": "neither", "why": "alike on the video"}))
    assert first.preference == SAID and later.preference is not None
    assert later.preference["preferred"] == "neither" and later.version == 0


@pytest.mark.parametrize(
    ("trial", "event", "why"),
    [
        (replace(ASKED, state=State.SCORING), told(Kind.PREFERENCE_STATED, **SAID), "comes after the score"),
        (SCORED, told(Kind.PREFERENCE_STATED, **SAID), "not the two that are compared"),
        (ASKED, told(Kind.PREFERENCE_STATED, **{**SAID, "first": "e-0"}), "not the two that are compared"),
        (ASKED, told(Kind.PREFERENCE_STATED, **{**SAID, "preferred": "both"}), "first, second, neither"),
        (ASKED, told(Kind.PREFERENCE_STATED, **{**SAID, "why": ""}), "needs a why"),
        (ASKED, told(Kind.PREFERENCE_ASKED, first="e-1", second="e-2"), "not the two that are compared"),
    ],
)
def test_what_cannot_be_said_of_two_episodes_is_refused_by_the_journal_itself(
    trial: Trial, event: Event, why: str
) -> None:
    with pytest.raises(StateError, match=why):
        apply(trial, event)
