"""Blocks dealt over cells and days: balanced as far as whole blocks allow, and again when a cell drops out."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.core.cell_allocation import Allocation, CellBlock, allocate, redistribute
from labctl.core.design import exchanges, williams

SECRET = bytes(range(32))
NAMES = "abcdefgh"


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[list[str]], list[str], int, bytes, list[str], int]:
    """Arguments of `allocate`: sets of conditions, arms, blocks, secret, cells, days."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=5))
    sets = [[f"c{i}.{j}" for j in range(size)] for i, size in enumerate(sizes)]
    arms = [f"arm {i}" for i in range(draw(st.integers(1, 4)))]
    cells = [f"cell {i}" for i in range(draw(st.integers(2, 5)))]
    blocks, days = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    return sets, arms, blocks, draw(st.binary(min_size=32, max_size=32)), cells, days


def _spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


def _drawn(found: Allocation, cell: str) -> list[CellBlock]:
    """The blocks that were drawn for a cell, in the order drawn: consecutive ones make the squares of the design."""
    return sorted((b for b in found.blocks if b.drawn_for == cell), key=lambda block: block.drawn_place)


def _units(found: Allocation) -> dict[int, tuple[str, int, str]]:
    """cell, day and first condition (sorted) of each unit."""
    units: dict[int, tuple[str, int, str]] = {}
    for block in found.blocks:
        name = min(block.condition, units.get(block.together, ("", 0, "~"))[2])
        units[block.together] = block.cell, block.day, name
    return units


@given(plans())
@settings(max_examples=60, deadline=None)
def test_every_block_is_whole_in_one_cell_and_every_condition_has_its_blocks(
    plan: tuple[list[list[str]], list[str], int, bytes, list[str], int],
):
    sets, arms, blocks, secret, cells, days = plan
    found = allocate(sets, arms, blocks, secret, cells, days)
    assert Counter(b.condition for b in found.blocks) == {name: blocks for entry in sets for name in entry}
    assert all(sorted(b.arms) == sorted(arms) and len(b.trials) == len(arms) for b in found.blocks)
    trials = [trial for b in found.blocks for trial in b.trials]
    assert len(set(trials)) == len(trials)
    assert [b.number for b in found.blocks] == list(range(len(found.blocks)))
    assert all(b.cell == b.drawn_for and b.place == b.drawn_place and 0 <= b.day < days for b in found.blocks)
    together = {b.together: (b.cell, b.day) for b in found.blocks}
    assert all(together[b.together] == (b.cell, b.day) for b in found.blocks)
    assert found == allocate(sets, arms, blocks, secret, cells, days)


@given(plans())
@settings(max_examples=80, deadline=None)
def test_cells_and_days_differ_by_no_more_than_a_set_in_all_and_in_each_condition(
    plan: tuple[list[list[str]], list[str], int, bytes, list[str], int],
):
    sets, arms, blocks, secret, cells, days = plan
    units = _units(allocate(sets, arms, blocks, secret, cells, days))
    places = Counter((cell, day) for cell, day, _ in units.values())
    assert _spread([places[cell, day] for cell in cells for day in range(days)]) <= 1
    most_over_days = 1 if math.gcd(len(cells), days) == 1 else 2
    for entry in sets:
        own = [(cell, day) for cell, day, name in units.values() if name == min(entry)]
        by_cell, by_day = Counter(cell for cell, _ in own), Counter(day for _, day in own)
        assert _spread([by_cell[cell] for cell in cells]) <= 1
        assert _spread([by_day[day] for day in range(days)]) <= most_over_days
        both = Counter(own)
        assert _spread([both[cell, day] for cell in cells for day in range(days)]) <= 1


@given(plans())
@settings(max_examples=40, deadline=None)
def test_each_cell_has_whole_squares_of_its_own(
    plan: tuple[list[list[str]], list[str], int, bytes, list[str], int],
):
    sets, arms, blocks, secret, cells, days = plan
    found = allocate(sets, arms, blocks, secret, cells, days)
    rows = len(williams(len(arms)))
    for cell in cells:
        orders = [block.arms for block in _drawn(found, cell)]
        for start in range(0, len(orders) - rows + 1, rows):
            square = orders[start : start + rows]
            for position in range(len(arms)):
                assert _spread(list(Counter(order[position] for order in square).values())) == 0


def test_labels_can_be_exchanged_by_the_design_within_every_cell():
    found = allocate(["mug", "sponge", "tape"], ["human", "p", "q"], 8, SECRET, ["north", "south"])
    for cell in found.cells:
        drawn = exchanges([block.arms for block in _drawn(found, cell)], ("p", "q"))
        assert drawn
        assert all(ways is not None and len(ways) > 1 for _, ways in drawn)


def test_the_schedule_of_a_cell_counts_its_own_slots_and_names_blocks_as_no_other_does():
    found = allocate(["mug", "sponge"], ["p", "q"], 4, SECRET, ["north", "south"])
    for cell in found.cells:
        slots = found.of(cell).slots
        assert [slot.index for slot in slots] == list(range(len(slots)))
        own = [b for b in found.blocks if b.cell == cell]
        assert [slot.block for slot in slots[::2]] == [b.number for b in sorted(own, key=lambda one: one.place)]
        assert {slot.trial: slot.arm for slot in slots} == {
            t: a for b in own for t, a in zip(b.trials, b.arms, strict=True)
        }


@given(plans(), st.data())
@settings(max_examples=80, deadline=None)
def test_a_cell_that_drops_out_leaves_its_begun_blocks_and_the_rest_is_balanced_over_the_others(
    plan: tuple[list[list[str]], list[str], int, bytes, list[str], int], data: st.DataObject
):
    sets, arms, blocks, secret, cells, days = plan
    before = allocate(sets, arms, blocks, secret, cells, days)
    # Each cell has gone some way through its own blocks, in their order.
    gone_through = {c: data.draw(st.integers(0, len(_drawn(before, c)))) for c in cells}
    begun = {b.number for b in before.blocks if b.place < gone_through[b.cell]}
    out = data.draw(st.sampled_from(cells))
    after = redistribute(before, [c for c in cells if c != out], begun)
    fixed = {b.together for b in before.blocks if b.number in begun}
    for was, now in zip(before.blocks, after.blocks, strict=True):
        assert (was.number, was.trials, was.arms, was.drawn_for) == (now.number, now.trials, now.arms, now.drawn_for)
        assert now.cell != out or was.together in fixed
        assert now.cell == was.cell or was.together not in fixed
    moved = {b.together: (b.cell, b.day) for b in after.blocks}
    assert all(moved[b.together][0] == b.cell for b in after.blocks)
    for cell in cells:
        own = [b for b in after.blocks if b.cell == cell]
        assert len({b.place for b in own}) == len(own)
    # No single move of what is left makes conditions more alike.
    units = {b.together: b for b in after.blocks}
    held = Counter((_kind(after, u), b.cell) for u, b in units.items())
    for unit, block in units.items():
        if unit not in fixed:
            kind = _kind(after, unit)
            assert all(held[kind, block.cell] - held[kind, c] <= 1 for c in cells if c != out)


def _kind(found: Allocation, unit: int) -> tuple[str, ...]:
    return tuple(sorted(b.condition for b in found.blocks if b.together == unit))


def test_a_cell_that_returns_gets_its_own_blocks_back_and_takes_over_what_balances():
    before = allocate(["mug", "sponge"], ["p", "q"], 12, SECRET, ["north", "south"], 6)
    begun = {b.number for b in before.blocks if b.day == 0}
    alone = redistribute(before, ["north"], begun, today=1)
    assert {b.cell for b in alone.blocks if b.number not in begun} == {"north"}
    later = begun | {b.number for b in alone.blocks if b.day == 1}
    again = redistribute(alone, ["north", "south"], later, today=2)
    for blocks in (again.blocks, *([b for b in again.blocks if b.condition == name] for name in ("mug", "sponge"))):
        assert _spread([sum(b.cell == cell for b in blocks) for cell in again.cells]) <= 1
    assert all(b.cell == "north" for b in again.blocks if b.number in later - begun)
    assert redistribute(again, ["north", "south"], later, today=2) == again


def test_with_every_cell_present_and_nothing_begun_nothing_moves():
    before = allocate(["mug", "sponge", "tape"], ["p", "q"], 7, SECRET, ["north", "south", "west"], 4)
    after = redistribute(before, before.cells, ())
    assert [(b.cell, b.day) for b in after.blocks] == [(b.cell, b.day) for b in before.blocks]


def test_days_that_are_past_are_made_up_for_on_the_emptiest_day():
    before = allocate(["mug"], ["p", "q"], 8, SECRET, ["north", "south"], 4)
    after = redistribute(before, ["north"], {b.number for b in before.blocks if b.day == 0}, today=2)
    left = [
        b for b in after.blocks if b.cell == "north" and b.number not in {c.number for c in before.blocks if c.day == 0}
    ]
    assert {b.day for b in left} == {2, 3}
    assert abs(sum(b.day == 2 for b in left) - sum(b.day == 3 for b in left)) <= 1


def test_swapping_two_arms_names_changes_no_cell_day_or_trial():
    one = allocate(["mug", "sponge"], ["p", "q", "r"], 5, SECRET, ["north", "south"])
    other = allocate(["mug", "sponge"], ["q", "p", "r"], 5, SECRET, ["north", "south"])
    seen = [(b.cell, b.day, b.condition, b.trials) for b in one.blocks]
    assert seen == [(b.cell, b.day, b.condition, b.trials) for b in other.blocks]
    swap = {"p": "q", "q": "p", "r": "r"}
    assert [b.arms for b in other.blocks] == [tuple(swap[a] for a in b.arms) for b in one.blocks]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cells": ["north"]}, "two cells"),
        ({"cells": ["north", "north"]}, "two cells"),
        ({"days": 0}, "one day"),
        ({"secret": b"short"}, "32 bytes"),
        ({"arms": []}, "distinct arms"),
    ],
)
def test_what_cannot_be_dealt_is_refused(change: dict[str, object], text: str):
    good: dict[str, object] = {
        "conditions": ["mug"], "arms": ["p", "q"], "blocks_per_condition": 2, "secret": SECRET,
        "cells": ["north", "south"], "days": 2,
    }  # fmt: skip
    with pytest.raises(ValueError, match=text):
        allocate(**{**good, **change})  # pyright: ignore[reportArgumentType]
    found = allocate(["mug"], ["p", "q"], 2, SECRET, ["north", "south"])
    with pytest.raises(ValueError, match="no cell"):
        redistribute(found, ["east"], ())
    with pytest.raises(ValueError, match="no block"):
        redistribute(found, ["north"], {9})
