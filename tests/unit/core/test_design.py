"""Claims about the schedule: balance, secrecy of the order, reproducibility."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.core.design import Schedule, below, compared_positions, deducible_share, draw, drbg, williams

secrets = st.binary(min_size=32, max_size=32)
small = st.integers(2, 5)


def names(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(n)]


def blocks(schedule: Schedule) -> list[list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for slot in schedule.slots:
        assert slot.position == len(found[slot.block])
        found[slot.block].append(slot.arm)
    return list(found.values())


@given(k=small, conditions=st.integers(1, 4), replicates=st.integers(1, 5), secret=secrets)
def test_every_block_holds_every_arm_once_and_every_condition_gets_its_blocks(k, conditions, replicates, secret):
    schedule = draw(names("o", conditions), names("a", k), replicates, secret)
    assert all(sorted(block) == names("a", k) for block in blocks(schedule))
    per_condition = Counter(slot.condition for slot in schedule.slots if slot.position == 0)
    assert per_condition == dict.fromkeys(names("o", conditions), replicates)
    assert [slot.index for slot in schedule.slots] == list(range(k * conditions * replicates))
    assert len({(slot.block, slot.condition) for slot in schedule.slots}) == conditions * replicates


@given(k=small, squares=st.integers(1, 3), secret=secrets)
@settings(max_examples=40)
def test_every_complete_square_is_balanced_for_position_and_for_carry_over(k, squares, secret):
    rows = k if k % 2 == 0 else 2 * k
    order = blocks(draw(["o"], names("a", k), rows * squares, secret))
    for start in range(0, rows * squares, rows):
        square = order[start : start + rows]
        places = Counter((position, arm) for block in square for position, arm in enumerate(block))
        followers = Counter(pair for block in square for pair in itertools.pairwise(block))
        assert set(places.values()) == {rows // k} and len(places) == k * k
        assert set(followers.values()) == {rows // k} and len(followers) == k * (k - 1)


@given(conditions=st.integers(1, 5), replicates=st.integers(1, 4), secret=secrets)
def test_each_replicate_visits_every_condition_once(conditions, replicates, secret):
    visited = [slot.condition for slot in draw(names("o", conditions), ["a", "b"], replicates, secret).slots[::2]]
    for start in range(0, len(visited), conditions):
        assert sorted(visited[start : start + conditions]) == names("o", conditions)


def test_the_order_of_conditions_is_drawn_anew_for_each_replicate():
    visited = [slot.condition for slot in draw(names("o", 3), ["a", "b"], 60, b"s" * 32).slots[::2]]
    assert {tuple(visited[start : start + 3]) for start in range(0, 180, 3)} == set(
        itertools.permutations(names("o", 3))
    )


def test_words_that_would_favour_small_numbers_are_rejected():
    """2**64 - 1 is a multiple of 3, so of the 64-bit words exactly one, the largest, has to go."""
    assert below(3, iter([2**64 - 1, 2**64 - 2])) == (2**64 - 2) % 3


@given(secret=secrets, other=secrets)
def test_a_secret_gives_one_schedule_and_another_secret_another(secret, other):
    arguments = (names("o", 4), names("a", 4), 4)
    first, again = draw(*arguments, secret), draw(*arguments, secret)
    assert first == again
    if secret != other:
        ids = [slot.trial for slot in first.slots]
        assert ids != [slot.trial for slot in draw(*arguments, other).slots]


def test_over_many_secrets_every_arm_opens_the_campaign_equally_often():
    """A thousand secrets: each of 4 arms opens the campaign about 250 times (binomial sd 13.7; 5 sd allowed)."""
    opening = Counter(draw(["o"], names("a", 4), 1, number.to_bytes(32, "big")).slots[0].arm for number in range(1000))
    assert all(abs(opening[arm] - 250) < 69 for arm in names("a", 4))


def test_every_square_has_its_labels_permuted_and_its_rows_shuffled_afresh():
    """1500 squares of 4 arms hold every set of rows that relabelling can give, each in all 24 orders of its rows."""
    order = [tuple(block) for block in blocks(draw(["o"], names("a", 4), 6000, b"s" * 32))]
    found = defaultdict(set)
    for start in range(0, 6000, 4):
        square = tuple(order[start : start + 4])
        found[frozenset(square)].add(square)
    relabelled = {
        frozenset(tuple(labels[entry] for entry in row) for row in williams(4))
        for labels in itertools.permutations(names("a", 4))
    }
    assert set(found) == relabelled and len(relabelled) > 1
    assert {len(orders) for orders in found.values()} == {24}


@given(secret=secrets)
@settings(max_examples=20)
def test_trial_ids_are_unique_and_say_nothing_of_the_order(secret):
    ids = [slot.trial for slot in draw(names("o", 4), names("a", 4), 10, secret).slots]
    assert len(set(ids)) == 160
    assert ids != sorted(ids)
    assert all(len(name) == 8 and name.startswith("t-") for name in ids)


def test_the_public_schedule_has_no_arm():
    schedule = draw(["o"], ["secret-policy", "human"], 2, b"s" * 32)
    assert "secret-policy" not in repr(schedule.public()) and "human" not in repr(schedule.public())
    assert set(schedule.public()[0]) == {"index", "trial", "block", "position", "condition"}


@pytest.mark.parametrize(
    ("conditions", "arms", "replicates", "secret"),
    [
        (["o"], [], 1, b"s" * 32),
        (["o"], ["a", "a"], 1, b"s" * 32),
        ([], ["a", "b"], 1, b"s" * 32),
        (["o", "o"], ["a", "b"], 1, b"s" * 32),
        (["o"], ["a", "b"], 0, b"s" * 32),
        (["o"], ["a", "b"], 1, b"short"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(conditions, arms, replicates, secret):
    with pytest.raises(ValueError, match="a schedule needs"):
        draw(conditions, arms, replicates, secret)


def test_drbg_is_hmac_sha256_in_counter_mode():
    """Expected value written out with the standard library's hmac, from the definition in the docstring."""
    pages = [hmac.new(b"k", b"label" + bytes(7) + bytes([i]), hashlib.sha256).digest() for i in range(2)]
    assert drbg(b"k", "label", 40) == (pages[0] + pages[1])[:40]
    assert drbg(b"k", "label") == pages[0]
    assert drbg(b"k", "label") != drbg(b"k", "label2")


@pytest.mark.parametrize(
    "kinds", [("human", "policy"), ("human", "policy", "policy"), ("policy", "policy"), ("policy",) * 3]
)
def test_the_deducible_share_is_what_enumeration_of_a_square_gives(kinds):
    """A slot is deduced if all labellings and row orders of a square that show the same person agree on it."""
    rows = williams(len(kinds))
    possible = [
        tuple(labels[entry] for row in order for entry in row)
        for labels in itertools.permutations(range(len(kinds)))
        for order in set(itertools.permutations(map(tuple, rows)))
    ]
    groups = defaultdict(list)
    for schedule in possible:
        seen = tuple(kinds[arm] == "human" for arm in schedule)
        groups[seen].append(schedule)
    deduced = sum(len(group) for group in groups.values() for arms in zip(*group, strict=True) if len(set(arms)) == 1)
    assert deducible_share(kinds) == pytest.approx(deduced / (len(possible) * len(possible[0])))


def test_a_person_and_three_policies_leave_three_quarters_unknown():
    assert deducible_share(["human", "policy", "policy", "policy"]) == 0.25


@given(replicates=st.integers(1, 4), secret=secrets)
def test_blocks_of_a_set_stand_side_by_side_in_an_order_that_is_drawn(replicates, secret):
    together = [["base", "lang", "pose"], ["other"], ["third", "of it"]]
    visited = [slot.condition for slot in draw(together, ["a", "b"], replicates, secret).slots[::2]]
    of = {name: number for number, names_ in enumerate(together) for name in names_}
    for start in range(0, len(visited), 6):
        one = visited[start : start + 6]
        assert sorted(one) == sorted(of) and len([*itertools.groupby(one, key=of.get)]) == 3


def test_the_order_within_a_set_is_any_of_them_and_singles_are_drawn_as_they_always_were():
    orders = {tuple(s.condition for s in draw([["x", "y"]], ["a", "b"], 1, bytes([n]) * 32).slots) for n in range(40)}
    assert orders == {("x", "x", "y", "y"), ("y", "y", "x", "x")}
    secret = bytes(range(32))
    assert draw([["x"], ["y"], ["z"]], ["a", "b"], 4, secret) == draw(["x", "y", "z"], ["a", "b"], 4, secret)


def test_one_arm_by_itself_has_blocks_of_one_trial_and_no_pair():
    drawn = draw(["o", "p"], ["a"], 3, b"s" * 32).slots
    assert [(slot.block, slot.position, slot.arm) for slot in drawn] == [(n, 0, "a") for n in range(6)]
    assert Counter(slot.condition for slot in drawn) == {"o": 3, "p": 3}
    assert deducible_share(["human"]) == 1.0
    with pytest.raises(ValueError, match="two arms"):
        compared_positions(1, 3, b"s" * 32)


@given(st.integers(2, 4), st.integers(1, 6), st.integers(1, 9), st.binary(min_size=32, max_size=32))
@settings(max_examples=40, deadline=None)
def test_extra_blocks_of_one_arm_leave_the_others_as_they_would_be_and_are_spread_evenly(arms, turns, extra, secret):
    names, sets = list("abcd"[:arms]), [["o", "p"], ["q"]]
    plain = draw(sets, names, turns, secret).slots
    drawn = draw(sets, names, turns, secret, ("a", extra)).slots
    sizes = Counter(slot.block for slot in drawn)
    lone = [slot for slot in drawn if sizes[slot.block] == 1]
    whole = [(slot.position, slot.condition, slot.arm) for slot in drawn if sizes[slot.block] > 1]
    assert whole == [(slot.position, slot.condition, slot.arm) for slot in plain]
    assert {slot.arm for slot in lone} == {"a"} and all(slot.position == 0 for slot in lone)
    assert Counter(slot.condition for slot in lone) == {"o": extra, "p": extra, "q": extra}
    assert [slot.index for slot in drawn] == list(range(len(drawn)))
    assert sorted(sizes) == list(range(len(sizes)))
    first_half = sum(slot.index < len(drawn) / 2 for slot in lone)
    assert abs(first_half - len(lone) / 2) <= 3 * (extra / turns + 1), "not all early or all late"
