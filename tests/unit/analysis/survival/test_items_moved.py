"""Items moved out of items staged: an arm's share, and two arms' difference, paired where they met in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.cohorts import DISTRIBUTIONS, NS, OBJECTS

from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.items_moved import MovedDifference, moved_difference, moved_share
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.table import table_from_rows


def cells(outcomes: dict[str, list[int]], *, staged: object = 2, blocks: bool = True) -> tuple[Cell, Cell]:
    """Episodes of 60 s that moved so many of the items staged, one per block and arm."""
    rows = []
    for arm, moved in outcomes.items():
        for i, n in enumerate(moved):
            said = {"episode": f"{arm}{i}", "arm": arm, "object": "cup", "items_staged": staged, "end_s": 60.0}
            said["block"] = f"b{i}" if blocks else ""
            rows += [{**said, "kind": "success", "time_s": 10.0} for _ in range(n)]
            rows.append({**said, "kind": "censored", "time_s": 60.0 - 10 * n})
    found = cells_of(table_from_rows(rows))
    return found["a", "cup"], found["b", "cup"]


def difference(a: Cell, b: Cell, perm: int = 9999) -> MovedDifference:
    found = moved_difference([a], [b], pair_of([a], [b], 60 * NS), 0, perm)
    assert found is not None
    return found


def test_five_blocks_of_pairs_by_hand() -> None:
    found = difference(*cells({"a": [2, 2, 1, 2, 2], "b": [1, 0, 0, 1, 0]}))
    # differences .5 1 .5 .5 1: mean .7, sd .2739, t(4) 2.776; all five point one way: p = 2 / 2^5
    assert (found.difference, found.p, found.paired, found.blocks) == (pytest.approx(0.7), 0.0625, True, 5)
    assert found.interval == pytest.approx((0.7 - 2.776445 * 0.2738613 / 5**0.5, 1.0))  # cut at everything
    assert found.per_hour == pytest.approx(3600 * (9 - 2) / 300)


def test_without_blocks_episodes_are_shuffled() -> None:
    found = difference(*cells({"a": [2, 2, 1, 2, 2], "b": [1, 0, 0, 1, 0]}, blocks=False))
    # 1 of C(10, 5) = 252 relabellings and its mirror image, a's lowest and b's highest tying: 1, 2 or more as extreme
    assert not found.paired and found.blocks == 10 and 2 / 252 <= found.p <= 8 / 252


def test_pairs_see_through_a_scene_that_both_arms_share() -> None:
    rng = np.random.default_rng(2)
    names, scenes = [f"b{i}" for i in range(30)], 1.5 * rng.standard_normal(30)
    distribution = Distribution(30.0, scene=1.0, frailty=0.1, budget_s=180.0)
    a, b = (
        simulate(lw, 30, rng, arm=arm, obj="cup", blocks=names, scenes=scenes)
        for arm, lw in (("a", distribution), ("b", distribution.slower(1.4)))
    )
    paired = difference(a, b)
    plain = difference(*(c.__class__(**{**c.__dict__, "blocks": ("",) * 30}) for c in (a, b)))
    assert paired.difference == pytest.approx(plain.difference)
    assert paired.p < plain.p and paired.interval is not None and plain.interval is not None
    assert paired.interval[1] - paired.interval[0] < 0.7 * (plain.interval[1] - plain.interval[0])


def test_arms_that_do_the_same_do_not_differ() -> None:
    found = difference(*cells({"a": [1, 2, 1], "b": [1, 2, 1]}))
    assert (found.difference, found.p, found.interval) == (pytest.approx(0.0), 1.0, None)


def test_items_staged_must_be_known() -> None:
    a, b = cells({"a": [1], "b": [1]}, staged="")
    assert moved_difference([a], [b], pair_of([a], [b], 60 * NS), 0, 99) is None
    assert moved_share([a]) == (None, None)


def test_the_share_of_an_arm_is_between_nothing_and_everything() -> None:
    a, b = cells({"a": [2, 2, 2], "b": [0, 0, 0]})
    assert moved_share([a])[0] == 1.0 and moved_share([b])[0] == 0.0
    low, high = moved_share([a])[1] or (0, 0)
    # Wilson at three of three episodes, t(2) = 4.303 for 1.96: 1 / (1 + 18.51 / 3)
    assert (low, high) == pytest.approx((1 / (1 + 4.302653**2 / 3), 1.0))
    over, _ = cells({"a": [3], "b": [0]})
    assert moved_share([over]) == (1.5, None)


def test_the_interval_of_a_share_covers_about_as_often_as_it_says() -> None:
    # 300 tries, 4 standard errors is .05; in full in the calibration benchmark
    rng = np.random.default_rng(3)
    big = [simulate(DISTRIBUTIONS["m4"], 20_000, rng) for _ in OBJECTS[:1]]
    truth = moved_share(big)[0] or 0.0
    hits = 0
    for _ in range(300):
        interval = moved_share([simulate(DISTRIBUTIONS["m4"], 10, rng) for _ in OBJECTS])[1]
        hits += interval is not None and interval[0] <= truth <= interval[1]
    assert hits / 300 == pytest.approx(0.95, abs=0.05)


def test_swaps_within_blocks_reach_the_same_p_as_all_of_them() -> None:
    a, b = cells({"a": [2, 1, 2, 2, 1, 2, 2, 1, 2, 0], "b": [1, 1, 0, 2, 0, 1, 2, 0, 1, 1]})
    exact, drawn = difference(a, b), difference(a, b, perm=1000)
    assert drawn.p == pytest.approx(exact.p, abs=4 * (exact.p * (1 - exact.p) / 1000) ** 0.5 + 1e-3)
