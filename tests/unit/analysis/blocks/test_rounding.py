"""Numbers that are equal but for rounding have no spread: what holds of equal ones holds of them."""

from __future__ import annotations

import numpy as np
import pytest

from labctl.analysis.blocks.means import Draws, Estimate, mean_over_units, mean_score
from labctl.analysis.blocks.sites import site_effects
from labctl.analysis.blocks.stress import Stressed, cliffs
from labctl.analysis.blocks.tags import tag_contrasts
from labctl.analysis.survival.intervals import IDENTITY, bootstrap_t, percentile, t_interval
from labctl.analysis.survival.spread import alike, beyond_rounding, variance_of

PAIRS = ((0.8, 0.6), (0.5, 0.3), (0.9, 0.7), (0.7, 0.5), (0.4, 0.2), (0.3, 0.1))
DIFFERENCES = np.array([a - b for a, b in PAIRS])


def mean(values: np.ndarray, unit: np.ndarray, low: float = -1.0) -> Estimate:
    return mean_over_units(values, unit, low, 1.0, Draws(0, 199))


def test_differences_that_are_equal_but_for_rounding_are_as_equal_ones() -> None:
    assert len(set(DIFFERENCES.tolist())) > 1, "rounding leaves them apart"
    found, same = mean(DIFFERENCES, np.arange(6)), mean(np.full(6, 0.2), np.arange(6))
    assert found.interval == pytest.approx(same.interval)  # it was [.2 - 4e-9, .2 + 4e-9]
    assert found.interval is not None and found.interval[0] < 0


@pytest.mark.parametrize(("size", "successes"), [(2, 1), (5, 1), (7, 3)])
def test_units_of_equal_means_are_as_equal_values(size: int, successes: int) -> None:
    values = np.tile(np.repeat([1.0, 0.0], [successes, size - successes]), 5)
    found = mean(values, np.repeat(np.arange(5), size), 0.0)  # of 5 with one success it was .2 -+ 4e-9, else none
    same = mean(np.full(5, successes / size), np.arange(5), 0.0)
    assert found.interval == pytest.approx(same.interval) and found.interval is not None


def test_a_rare_success_is_a_spread() -> None:
    values = np.zeros(20_000)
    values[0] = 1
    low, high = mean(values, np.arange(20_000), 0.0).interval or (0, 0)
    assert low < 1 / 20_000 < high


@pytest.mark.parametrize("score", [0.1, 0.2, 0.5, 0.7])
def test_equal_scores_have_no_interval(score: float) -> None:
    assert mean_score(np.full(3, score)).ci is None


@pytest.mark.parametrize("elsewhere", [0.2, 0.3])
def test_blocks_that_do_not_vary_but_for_rounding_say_nothing_of_sites(elsewhere: float) -> None:
    there = np.array([0.5, 0.4, 0.9]) - (np.array([0.5, 0.4, 0.9]) - elsewhere)
    found = site_effects(np.append(DIFFERENCES[:3], there), ["x"] * 3 + ["y"] * 3)
    assert (found.ci, found.q_p) == (None, None)
    assert found.words == ("blocks of one evaluator do not vary, so that nothing says how sure a mean is",)


def test_tasks_that_are_equal_on_either_side_of_a_tag_give_no_interval() -> None:
    (found,) = tag_contrasts({"a": np.array([0.1, 0.1, 0.1, 0.4, 0.4, 0.4])}, {"t": [True] * 3 + [False] * 3})
    assert (found.effect, found.ci) == (pytest.approx(-0.3), None)


def test_equal_scores_have_no_cliff() -> None:
    assert np.full(3, 0.1).std() > 0
    assert cliffs([Stressed("a", "light", level, 0.1, "") for level in ("1", "2", "2")]) == []


def test_what_is_rounding() -> None:
    assert (beyond_rounding(1e-30), beyond_rounding(1e-11), beyond_rounding(1e-11, 10.0)) == (0.0, 1e-11, 0.0)
    assert variance_of(DIFFERENCES) == 0.0 and variance_of(np.array([0.0, 1.0])) == 0.5
    assert alike(DIFFERENCES) and alike(np.array([300.1 - 100, 200.1])) and not alike(np.array([0.2, 0.201]))


def test_no_interval_rests_on_rounding() -> None:
    assert t_interval(0.2, 1e-17, 5, IDENTITY) is None and t_interval(0.2, 1e-6, 5, IDENTITY) is not None
    replicates = np.linspace(0.1, 0.3, 999)
    assert bootstrap_t(0.2, 1e-17, replicates, np.full(999, 0.1), IDENTITY) is None
    assert percentile(np.append(np.full(500, 20.0), 20.0 + 4e-15)) is None
