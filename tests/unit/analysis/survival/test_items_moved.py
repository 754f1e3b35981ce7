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


def at_blocks(shares: dict[str, dict[int, int]], staged: int = 6) -> tuple[Cell, Cell]:
    """As `cells`, of an arm's items moved by the number of the block."""
    rows = []
    for arm, moved in shares.items():
        for i, n in moved.items():
            said = {"episode": f"{arm}{i}", "arm": arm, "object": "cup", "items_staged": staged, "end_s": 60.0}
            said["block"] = f"b{i}"
            rows += [{**said, "kind": "success", "time_s": 5.0} for _ in range(n)]
            rows.append({**said, "kind": "censored", "time_s": 60.0 - 5 * n})
    found = cells_of(table_from_rows(rows))
    return found["a", "cup"], found["b", "cup"]


def test_a_block_that_only_one_arm_met_is_in_the_interval_as_it_is_in_the_difference() -> None:
    # a is never behind where both ran and moved little where b was not: the interval was [-.269, -.183]
    a = {0: 6} | dict.fromkeys(range(1, 9), 5) | dict.fromkeys(range(9, 14), 1)
    found = difference(*at_blocks({"a": a, "b": dict.fromkeys(range(9), 5)}), perm=199)
    assert found.difference == pytest.approx((51 - 14 * 5) / 84) and (found.paired, found.blocks) == (True, 9)
    # parts of a: (share - 51/84) / 14; of b, which does not vary, none; nine blocks of b: times 9 / 8, t(8) = 2.306
    error = (sum((n / 6 - 51 / 84) ** 2 for n in a.values()) / 14**2 * 9 / 8) ** 0.5
    assert found.interval == pytest.approx(
        (found.difference - 2.306004 * error, found.difference + 2.306004 * error), rel=1e-5
    )


@pytest.mark.parametrize("blocks_of_b", [12, 10, 6])
def test_the_interval_of_a_difference_covers_where_blocks_lack_an_arm(blocks_of_b: int) -> None:
    # 300 tries, three standard errors is .04; arms alike, in blocks that differ much; it covered .96, .86 and .73
    rng, hits = np.random.default_rng(5), 0
    for _ in range(300):
        scene = rng.beta(0.3, 0.3, 12)
        a, b = (dict(enumerate(rng.binomial(6, scene[:n]).tolist())) for n in (12, blocks_of_b))
        found = difference(*at_blocks({"a": a, "b": b}), perm=1)
        hits += found.interval is not None and found.interval[0] <= 0 <= found.interval[1]
    assert hits / 300 > 0.91


def test_differences_that_are_equal_but_for_rounding_have_no_interval() -> None:
    moved = dict(enumerate([5, 4, 3, 5, 4, 3]))
    found = difference(*at_blocks({"a": moved, "b": {i: n - 1 for i, n in moved.items()}}, staged=5))
    assert found.difference == pytest.approx(0.2) and found.interval is None  # it was [.1999999999999999, .2]


def test_without_spread_within_objects_an_episode_counts_as_one_item_whatever_rounding_leaves() -> None:
    rows = [
        {"episode": f"{obj}{i}", "arm": "a", "object": obj, "items_staged": 10, "kind": kind, "time_s": 5.0}
        for obj, count, kinds in (("cup", 2, ["success"] * 10), ("bowl", 7, ["censored"]))
        for i in range(count)
        for kind in kinds
    ]
    low, high = moved_share(list(cells_of(table_from_rows(rows)).values()))[1] or (0, 0)
    # Wilson for 2 of 9, t(7) = 2.364624 for 1.96; rounding made it 90 items: (.137, .340)
    z2, n, p = 2.364624**2, 9, 2 / 9
    reach = (z2 * (p * (1 - p) + z2 / (4 * n)) / n) ** 0.5
    assert (low, high) == pytest.approx([(p + z2 / (2 * n) + s * reach) / (1 + z2 / n) for s in (-1, 1)], rel=1e-5)


@pytest.mark.parametrize("everything", ["a", "b"])
def test_beside_an_arm_that_moves_everything_the_interval_is_no_narrower_than_that_of_the_others_share(
    everything: str,
) -> None:
    """Ten blocks of six items, the other's shares beta (1.8, .2): of 300 runs t alone held in .897."""
    rng = np.random.default_rng(3)
    held, sign = 0, 1 if everything == "a" else -1
    for _ in range(100):
        some = rng.binomial(6, rng.beta(1.8, 0.2, 10)).tolist()
        some[0] = min(some[0], 5)
        other = "b" if everything == "a" else "a"
        a, b = cells({everything: [6] * 10, other: some}, staged=6)
        found, own = difference(a, b, 9), moved_share([b if other == "b" else a])[1]
        assert found.interval is not None and own is not None
        reach = sorted(sign * (1 - end) for end in own)
        assert found.interval[0] <= reach[0] + 1e-9 and found.interval[1] >= reach[1] - 1e-9
        held += found.interval[0] <= sign * 0.1 <= found.interval[1]
    assert held >= 95
