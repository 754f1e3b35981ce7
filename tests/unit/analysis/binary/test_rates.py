"""Intervals of one rate: reference values, symmetry, and coverage counted over every possible outcome."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labctl.analysis.binary.rates import clopper_pearson, rate, wilson
from labctl.errors import QuestionError


def coverage(interval, trials: int, grid: np.ndarray) -> np.ndarray:
    """Probability that the interval of a Binomial(trials, p) count holds p, for every p of the grid."""
    low, high = np.array([interval(k, trials) for k in range(trials + 1)]).T
    inside = (low[:, None] <= grid) & (grid <= high[:, None])
    return (stats.binom.pmf(np.arange(trials + 1)[:, None], trials, grid) * inside).sum(axis=0)


def test_intervals_are_wilson_and_clopper_pearson():
    # R 4.2: binom.test(8, 10)$conf.int; prop.test(8, 10, correct = FALSE)$conf.int
    found = rate(8, 10)
    assert found["ci_exact"] == pytest.approx([0.4439045, 0.9747893], abs=1e-6)
    assert found["ci_wilson"] == pytest.approx([0.4901625, 0.9433178], abs=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("trials", [1, 2, 7, 48, 333])
def test_wilson_s_interval_is_scipy_s_to_the_bit(trials: int, level: float):
    for k in range(trials + 1):
        found = stats.binomtest(k, trials).proportion_ci(level, "wilson")
        assert wilson(k, trials, level) == (found.low, found.high)


def test_no_trials_have_no_rate():
    assert rate(0, 0) == {"successes": 0, "trials": 0, "rate": None, "ci_wilson": None, "ci_exact": None}


@pytest.mark.parametrize(("successes", "trials"), [(6, 5), (-1, 5), (0, 0)])
def test_what_is_no_count_is_refused(successes: int, trials: int):
    with pytest.raises(QuestionError, match="allowed is k of n"):
        wilson(successes, trials)


@pytest.mark.parametrize("trials", [5, 12, 30])
def test_the_exact_interval_covers_at_least_what_it_says_and_wilson_s_does_on_average(trials: int):
    grid = np.linspace(0.01, 0.99, 99)
    exact, score = coverage(clopper_pearson, trials, grid), coverage(wilson, trials, grid)
    assert min(exact) >= 0.95
    # Agresti & Coull (Amer. Statist. 52 (1998) 119) find a mean near .95 and a minimum of about .83 near 0 and 1
    assert 0.94 < np.mean(score) < 0.965
    assert min(score) > 0.83
    assert np.mean(exact) > np.mean(score)


@settings(deadline=None)
@given(trials=st.integers(1, 200), data=st.data())
def test_intervals_mirror_when_success_and_failure_change_places(trials: int, data: st.DataObject):
    k = data.draw(st.integers(0, trials))
    for interval in (wilson, clopper_pearson):
        low, high = interval(k, trials)
        mirrored = interval(trials - k, trials)
        assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-9)
        assert 0 <= low <= k / trials + 1e-12 and k / trials - 1e-12 <= high <= 1


@settings(deadline=None)
@given(trials=st.integers(2, 100), data=st.data())
def test_one_more_success_moves_both_limits_up_and_a_higher_level_widens(trials: int, data: st.DataObject):
    k = data.draw(st.integers(0, trials - 1))
    for interval in (wilson, clopper_pearson):
        one, more = interval(k, trials), interval(k + 1, trials)
        assert one[0] <= more[0] and one[1] <= more[1]
        wide = interval(k, trials, 0.99)
        assert wide[0] <= one[0] and one[1] <= wide[1]
