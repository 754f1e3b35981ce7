"""Degrees of freedom where objects are unlike, and blocks that go over several objects, held against closed forms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.operations_table.pair_effects import hourly_interval
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.intervals import Interval
from labctl.analysis.survival.items_moved import moved_difference, moved_share
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.summed_parts import satterthwaite
from labctl.analysis.table import Row, table_from_rows

TAU_NS = 60 * 10**9
A, B = (1, 4, 2, 8, 5, 3, 7, 5), (2, 3, 5, 6, 7, 1, 9, 8)


def both(moved: Mapping[str, tuple[Sequence[int], Sequence[int]]], block: str) -> tuple[list[Cell], list[Cell]]:
    """Two arms at every object: episodes of 60 s with ten items staged, their blocks named by the pattern `block`."""
    rows: list[Row] = []
    for obj, arms in moved.items():
        for arm, counts in zip("ab", arms, strict=True):
            for i, n in enumerate(counts):
                said = {"episode": f"{arm}{obj}{i}", "arm": arm, "object": obj, "items_staged": 10, "end_s": 60}
                said |= {"budget_s": 60, "block": block.format(obj=obj, i=i, arm=arm)}
                rows += [{**said, "kind": "success", "time_s": 5, "op_index": k} for k in range(n)]
                rows.append({**said, "kind": "censored", "time_s": 60 - 5 * n, "op_index": n})
    cells = cells_of(table_from_rows(rows))
    a, b = ([cells[arm, obj] for obj in sorted(moved)] for arm in "ab")
    return a, b


def intervals(a: list[Cell], b: list[Cell]) -> tuple[Interval, Interval]:
    """Of the difference in the share of items moved, and of that in items per hour."""
    pair = pair_of(a, b, TAU_NS)
    moved, hourly = moved_difference(a, b, pair, 0, 9), hourly_interval(pair)
    assert moved and moved.interval and hourly
    return moved.interval, hourly


def test_an_object_at_which_nothing_varies_lends_the_other_no_degree_of_freedom() -> None:
    # cup varies in four blocks, bowl in none of sixteen: half of cup's difference, by t on three
    moved, hourly = intervals(*both({"cup": (A[:4], B[:4]), "bowl": ([7] * 16, [5] * 16)}, "{obj}{i}"))
    change = np.subtract(A[:4], B[:4]) / 10
    law = stats.t(3, (change.mean() + 0.2) / 2, change.std(ddof=1) / math.sqrt(4) / 2)
    assert moved == pytest.approx(law.interval(0.95))
    assert hourly == pytest.approx(tuple(600 * end for end in law.interval(0.95)))


def test_without_blocks_the_interval_of_items_moved_at_one_object_is_that_of_welchs_test() -> None:
    (interval, _) = intervals(*both({"cup": ([4, 5, 5, 4, 5, 4, 5, 4, 5, 5, 4, 4], A[:4])}, ""))
    ends = stats.ttest_ind(np.array([4, 5] * 6) / 10, np.array(A[:4]) / 10, equal_var=False).confidence_interval(0.95)
    assert interval == pytest.approx((ends.low, ends.high))


def test_objects_that_do_the_same_in_the_same_blocks_say_no_more_than_one_of_them() -> None:
    one, four = (both({f"o{i}": (A, B) for i in range(n)}, "{i}") for n in (1, 4))
    assert intervals(*four) == tuple(pytest.approx(ends) for ends in intervals(*one))
    assert moved_share(four[0]) == (pytest.approx(0.4375), pytest.approx(moved_share(one[0])[1]))
    own = both({f"o{i}": (A, B) for i in range(4)}, "{obj}{i}")
    for wide, narrow in zip(intervals(*one), intervals(*own), strict=True):
        assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0]), "blocks of each object's own are four times as many"


def test_one_block_for_everything_hides_no_spread() -> None:
    one, none = (both({"cup": (A, B), "bowl": (B, A)}, name) for name in ("all", ""))
    assert intervals(*one) == intervals(*none) and moved_share(one[0]) == moved_share(none[0])


def test_arms_in_blocks_of_their_own_over_several_objects_count_by_block() -> None:
    moved, _ = intervals(*both({f"o{i}": (A, B) for i in range(4)}, "{arm}{i}"))
    single, _ = intervals(*both({"o0": (A, B)}, "{arm}{i}"))
    assert moved[1] - moved[0] >= 0.999 * (single[1] - single[0])


def test_degrees_of_freedom_of_a_sum() -> None:
    assert satterthwaite([(2.0, 4), (2.0, 4), (0.0, 90)]) == pytest.approx(8)
    assert satterthwaite([(3.0, 2), (1.0, 10)]) == pytest.approx(16 / (9 / 2 + 1 / 10))
    assert satterthwaite([(3.0, 0), (1.0, 10)]) == pytest.approx(16 / (9 + 1 / 10))
    assert satterthwaite([(3.0, 0)]) == satterthwaite([(0.0, 5)]) == satterthwaite([]) == 0
