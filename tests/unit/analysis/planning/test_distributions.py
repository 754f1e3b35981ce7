"""Distributions for planning: stated RMSTs come out of an analysis, and a fit finds the one its pilot came from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labctl.analysis.planning.distributions import Distribution, distribution_rmst, fitted, simulate, stated
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.curves import rmst_with_error
from labctl.analysis.table import table_from_rows
from labctl.errors import QuestionError

LAW = Distribution(1.0, lost=0.04, items=8, budget_s=240.0)


@pytest.mark.parametrize("asked", [30.0, 77.0, 165.0])
def test_a_stated_rmst_is_what_an_analysis_of_many_episodes_finds(asked: float):
    arm = stated("a", asked, 240.0, LAW, ["spoons", "towels"])
    assert arm.distributions["spoons"] == arm.distributions["towels"]
    fresh = simulate(arm.distributions["spoons"], 20_000, np.random.default_rng(99))
    # calibrated on 2,000 episodes, whose log RMST has a standard error of about .6 / sqrt(2000) = .013
    assert rmst_with_error(fresh.durations, 240_000_000_000)[0] == pytest.approx(asked, rel=0.04)


@pytest.mark.parametrize(
    ("asked", "distribution", "said"),
    [
        (0.0, LAW, "allowed is above 0 and below tau, 240 s"),
        (240.0, LAW, "allowed is above 0 and below tau, 240 s"),
        (5.0, LAW, "cannot be with 4% of items lost"),
        (60.0, replace(LAW, lost=0.5), "cannot be with 50% of items lost"),
    ],
)
def test_an_rmst_no_law_can_give_is_refused(asked: float, distribution: Distribution, said: str):
    with pytest.raises(QuestionError, match=said):
        stated("a", asked, 240.0, distribution, ["all"])


def test_longer_items_mean_a_longer_rmst():
    means = [distribution_rmst(replace(LAW, mean_s=mean), 240.0) for mean in (10.0, 20.0, 40.0, 80.0, 160.0)]
    assert means == sorted(means)


def test_a_fit_finds_the_law_the_pilot_was_drawn_from():
    distribution = Distribution(60.0, shape=1.6, frailty=0.5, lost=0.06, items=6, budget_s=360.0)
    means = {"a": 60.0, "b": 100.0}
    cells = [
        simulate(replace(distribution, mean_s=mean), 400, np.random.default_rng([5, i]), arm="arm", obj=obj)
        for i, (obj, mean) in enumerate(means.items())
    ]
    found = fitted("arm", cells, 240.0, 6, 360.0)
    for obj, mean in means.items():
        assert found.distributions[obj].mean_s == pytest.approx(mean, rel=0.08)
    one = found.distributions["a"]
    assert (one.shape, one.frailty, one.lost) == (
        pytest.approx(1.6, rel=0.1),
        pytest.approx(0.5, abs=0.06),
        pytest.approx(0.06, abs=0.01),
    )
    assert found.rmst_s == pytest.approx(
        found.asked_s, rel=0.05
    )  # the distribution gives back the RMST the pilot showed


def test_durations_restart_at_a_lost_item():
    # One item lost at 20 s of the gap, the next moved 10 s later: 30 s since go, as the operations table has it.
    rows = [
        {"episode": str(i), "arm": "a", "object": "all", "kind": kind, "time_s": time, "budget_s": 100.0, "end_s": 30.0}
        for i in range(30)
        for kind, time in (("ghost", 20.0), ("success", 30.0))
    ]
    cell = cells_of(table_from_rows(rows))["a", "all"]
    found = fitted("a", [cell], 100.0, 2, 100.0).distributions["all"]
    assert found.mean_s == pytest.approx(15.0, rel=0.05)  # 20 s and 10 s, not 20 s and 30 s
    assert found.lost == 0.5


def test_a_lost_item_without_a_time_is_counted_and_its_time_left_out():
    rows = [
        {"episode": str(i), "arm": "a", "object": "all", "kind": kind, "time_s": time, "budget_s": 100.0, "end_s": 90.0}
        for i in range(10)
        for kind, time in (("success", 10.0 + i / 10), ("ghost", ""), ("success", 70.0))
    ]
    cell = cells_of(table_from_rows(rows))["a", "all"]
    found = fitted("a", [cell], 100.0, 3, 100.0).distributions["all"]
    assert found.mean_s == pytest.approx(10.45, rel=0.1) and found.lost == pytest.approx(1 / 3)


def test_an_arm_that_hardly_ended_anything_is_refused():
    cell = simulate(Distribution(5000.0, items=4, budget_s=100.0), 10, np.random.default_rng(1), obj="towels")
    with pytest.raises(QuestionError, match="items at towels; a distribution needs 3 or more"):
        fitted("slow", [cell], 100.0, 4, 100.0)
