"""Signed statistics are exchanged in units of their standard error: unequal spreads do not pass for unequal means.

At reduced size; in full: tests/support/statistics/studies.py and docs/statistics-calibration.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.claims import unequal_spreads
from support.statistics.cohorts import NS

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.curves import rmst_influence
from labctl.analysis.survival.kernel import Given, moments, pair_values
from labctl.analysis.survival.ks import Pair, pair_of
from labctl.analysis.survival.studentised import both_roles, hourly_difference, in_errors, log_ratio_errors, two_roles
from labctl.analysis.table import table_from_rows

TAU_NS = 60 * NS


def test_equal_means_of_unequal_spread_are_told_apart_about_as_often_as_asked() -> None:
    # unstudentised .27 at 30 against 10 episodes; four Monte-Carlo errors of .05 are allowed
    runs = 90
    found = unequal_spreads(30, 10, range(runs))
    for name, share in found.items():
        assert share <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5, name


def laid(blocks: int, *, paired: bool) -> Pair:
    rng = np.random.default_rng(7)
    names = [f"b{i}" for i in range(blocks)] if paired else None
    scenes = rng.standard_normal(blocks)
    law = Distribution(20.0, items=2, budget_s=60.0, lost=0.1, scene=0.6)
    sides = [simulate(law, blocks, rng, arm=arm, blocks=names, scenes=scenes) for arm in "ab"]
    return pair_of(*([s] for s in sides), TAU_NS)


@pytest.mark.parametrize("paired", [True, False])
def test_the_standard_error_of_a_ratio_is_the_jackknifes_over_blocks_or_episodes(paired: bool) -> None:
    pair = laid(9, paired=paired)
    rng = np.random.default_rng(1)
    labels = pair.is_a.copy()
    for u in np.flatnonzero(pair.partner >= 0) if paired else ():
        if pair.partner[u] > u and rng.random() < 0.5:
            labels[[u, pair.partner[u]]] = labels[[pair.partner[u], u]]
    found, _ = log_ratio_errors(pair, moments(two_roles(pair), both_roles(_given(labels)), range(1)))
    own = [rmst_influence(_part(pair, labels == side), TAU_NS) for side in (True, False)]
    change = np.zeros(len(labels))
    for (value, influence), side, sign in zip(own, (True, False), (1, -1), strict=True):
        change[labels == side] = sign * influence / value
    units = change[:9] + change[9:] if paired else change * np.sqrt(9 / 8)
    assert found[0] == pytest.approx(np.log(own[0][0] / own[1][0]) / np.sqrt((units**2).sum()))


@pytest.mark.parametrize("paired", [True, False])
def test_the_standard_error_of_items_per_hour_is_that_of_its_linearisation(paired: bool) -> None:
    pair = laid(9, paired=paired)
    walk = pair_values(pair.walk, _given(pair.is_a), range(1), pair.request)
    difference, variance = hourly_difference(pair, walk.sum_a, walk.sum_b)
    moved, seconds = pair.brought[:, 0], pair.brought[:, 1]
    rates = [moved[s].sum() / seconds[s].sum() for s in (pair.is_a, ~pair.is_a)]
    change = [
        3600 * (moved[s] - rate * seconds[s]) / seconds[s].sum()
        for s, rate in zip((pair.is_a, ~pair.is_a), rates, strict=True)
    ]
    by_hand = ((change[0] - change[1]) ** 2).sum() if paired else 9 / 8 * sum((c**2).sum() for c in change)
    assert difference[0] == pytest.approx(3600 * (rates[0] - rates[1]))
    assert variance[0] == pytest.approx(by_hand)


def test_no_spread_is_infinitely_many_errors_and_no_difference_is_none() -> None:
    found = in_errors(np.array([2.0, -2.0, 0.0, 3.0]), np.array([0.0, 0.0, 0.0, 4.0]))
    assert found.tolist() == [np.inf, -np.inf, 0.0, 1.5]


def _given(labels: np.ndarray) -> Given:
    return Given(labels[None, :].astype(float), 1.0 - labels[None, :])


def _part(pair: Pair, kept: np.ndarray):
    from labctl.analysis.survival.curves import Durations

    (pooled,) = pair.pooled
    rows = kept[pooled.episode]
    number = np.cumsum(kept) - 1
    return Durations(pooled.time_ns[rows], pooled.event[rows], number[pooled.episode[rows]], int(kept.sum()))


def test_equal_episodes_leave_no_spread_of_items_per_hour() -> None:
    """Rounding of what the two arms share left an interval of 1e-5 items per hour, and a verdict with it."""
    rows = [
        {"episode": f"{arm}{block}", "arm": arm, "object": "o", "items_staged": 3, "end_s": round(31.7 * by, 6)}
        | {"budget_s": 100.0, "block": str(block), "kind": "success", "time_s": round(10.1 * by, 6), "op_index": i}
        for block in range(8)
        for arm, by in (("x", 1), ("y", 1.37))
        for i in range(3)
    ]
    (pair,) = analyze(table_from_rows(rows), reference=None, boot=199, perm=99, seed=0)["pairs"]
    assert pair["uph_difference"] == pytest.approx(92.01225, abs=1e-4) and pair["uph_difference_ci"] is None
