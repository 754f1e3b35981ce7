"""What cells resolve: of these, of cells like these, and how often a further one turns an order round."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.planning.cells_design import cells_resolved
from labctl.analysis.planning.power import ratio_resolvable


def test_of_these_cells_it_is_what_all_blocks_together_resolve_whatever_the_spread():
    found = cells_resolved(3, 30, 0.6, 0.8, 0.05)
    assert {row["of_these"] for row in found["by_spread"]} == {ratio_resolvable(30, 0.6, 0.8, 0.05)}
    assert all(row["like_these"] is None for row in found["by_spread"]), "below five nothing is said of others"


def test_of_cells_like_these_a_simulation_finds_the_ratio_as_often_as_planned():
    found = cells_resolved(6, 60, 0.6, 0.8, 0.05, between=(0.3,))["by_spread"][0]
    assert found["like_these"] is not None
    rng, se = np.random.default_rng(1), math.sqrt(0.3**2 + 2 * 0.6**2 / 10)
    drawn = math.log(found["like_these"]) + se * rng.standard_normal((20_000, 6))
    share = float((stats.ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05).mean())
    assert share == pytest.approx(0.8, abs=0.012)  # four Monte-Carlo errors of .0028


def test_more_spread_takes_a_larger_ratio_and_turns_more_cells_round():
    rows = cells_resolved(5, 40, 0.6, 0.8, 0.05, between=(0.1, 0.4, 0.8))["by_spread"]
    like = [row["like_these"] or 0.0 for row in rows]
    assert like == sorted(like) and like[0] < like[-1]
    assert rows[0]["turned"] < rows[1]["turned"] < rows[2]["turned"] < 0.5
    assert rows[1]["turned"] == pytest.approx(float(stats.norm.cdf(-math.log(rows[1]["of_these"]) / 0.4)))
