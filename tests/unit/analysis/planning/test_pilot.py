"""Assurance: what else a pilot goes with, and power over all of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.statistics.assurance import LAW, TAU_S, by_row, promises

from labctl.analysis.planning.distributions import fitted, simulate
from labctl.analysis.planning.pilot import Pilot
from labctl.analysis.planning.simulation import Plan, powers


def pilot(episodes: int, *, blocks: bool = False, seed: int = 1) -> Pilot:
    rng = np.random.default_rng(seed)
    scenes = rng.standard_normal(episodes) if blocks else None
    names = [f"b{i:02}" for i in range(episodes)] if blocks else None
    law = replace(LAW, scene=0.8)
    cells = {
        (arm, "x"): simulate(law, episodes, rng, arm=arm, obj="x", blocks=names, scenes=scenes) for arm in ("a", "b")
    }
    arms = tuple(fitted(arm, [cell], TAU_S, LAW.items, LAW.budget_s) for (arm, _), cell in cells.items())
    return Pilot(cells, arms, TAU_S, LAW.items, LAW.budget_s)


def test_episodes_count_as_much_as_gives_a_mean_its_usual_variance() -> None:
    seen = pilot(9)
    value = np.arange(9.0)
    drawn = np.array([(seen._counts(3, i)["a", "x"] * value).mean() for i in range(4000)])
    assert drawn.mean() == pytest.approx(value.mean(), abs=0.05)
    assert drawn.var() == pytest.approx(value.var(ddof=1) / 9, rel=0.08)  # s^2 / n; Rubin's Dirichlet(1) has .8 of it


def test_equal_weights_are_no_weights_and_a_draw_is_a_function_of_its_number() -> None:
    seen = pilot(8)
    cell = seen.cells["a", "x"]
    again = fitted("a", [cell], TAU_S, LAW.items, LAW.budget_s, [np.ones(8)])
    assert again == seen.arms[0]
    twice = fitted("a", [cell], TAU_S, LAW.items, LAW.budget_s, [np.where(np.arange(8) < 4, 2.0, 0.0)])
    assert twice.distributions["x"].mean_s != again.distributions["x"].mean_s
    assert seen.drawn(0, 5) == seen.drawn(0, 5) != seen.drawn(0, 6)


def test_arms_of_one_block_are_drawn_together() -> None:
    shared, apart = (pilot(6, blocks=blocks)._counts(0, 3) for blocks in (True, False))
    assert (shared["a", "x"] == shared["b", "x"]).all() and (apart["a", "x"] != apart["b", "x"]).all()
    assert pilot(3, blocks=True).too_small() == (
        "the pilot has 3 blocks of a at x, and fewer than 4 do not say how far off they are"
    )
    assert pilot(4).too_small() is None


def test_power_over_arms_that_differ_from_campaign_to_campaign_is_their_mean() -> None:
    near, far = (
        (replace(pilot(6).arms[0], distributions={"x": LAW}), replace(pilot(6).arms[1], distributions={"x": law}))
        for law in (LAW, LAW.slower(30.0))
    )
    plan = Plan(near, TAU_S, 20, 99)
    found = powers(plan, [8], {("a", "b"): 0.05}, arms=[near if run % 2 else far for run in range(20)])
    ratio = next(row for row in found if row.measure == "log_rmst_ratio")
    assert 0.5 <= ratio.power <= 0.6  # all of the ten that are far apart, hardly one of the others


@pytest.mark.thorough
def test_assurance_is_how_often_campaigns_reject_where_power_at_the_best_fit_is_not() -> None:
    """docs/statistics-calibration.md has the full run; here 60 truths, four standard errors."""
    found = by_row(promises(range(5000, 5060)))["all"]
    assert abs(found["truth"] - found["assurance"]) < 4 * found["error of assurance"]
