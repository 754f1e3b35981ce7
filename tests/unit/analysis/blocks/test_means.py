"""Means over units of unequal size: what their error and degrees of freedom are, and how often their intervals hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from labctl.analysis.blocks.means import Draws, _uneven, mean_over_units


def test_the_error_over_units_of_unequal_size_is_that_of_bell_and_mccaffrey() -> None:
    """Of independent values with variance 1 the CR2 variance is right on average, and its degrees of freedom are
    2 mean^2 / variance of a form in normal values: here from the matrix of the form, not by the closed formula.
    """
    sizes = np.array([1.0, 1.0, 2.0, 5.0, 9.0])
    total = sizes.sum()
    moved = np.repeat(np.eye(5), sizes.astype(int), axis=1) - sizes[:, None] / total  # from values to sums about a mean
    form = moved / np.sqrt(1 - sizes / total)[:, None] / total
    spread = form @ form.T
    values = np.random.default_rng(2).normal(size=18)
    se, df = _uneven(moved @ values, sizes)
    assert se**2 == pytest.approx(float(((form @ values) ** 2).sum()))
    assert np.trace(spread) == pytest.approx(1 / total) and df == pytest.approx(1 / total**2 / (spread**2).sum())


def test_units_of_equal_size_keep_the_error_of_a_mean_on_units_less_one() -> None:
    parts = 4 * np.array([0.3, -0.2, 0.5, -0.6])
    assert _uneven(parts, np.full(4, 4.0)) == pytest.approx((math.sqrt((parts**2).sum() / 12) / 4, 3.0))


@pytest.mark.parametrize(("sizes", "before"), [([1] * 8 + [24], 0.72), ([2] * 9 + [20], 0.91), ([2] * 4 + [12], 0.92)])
def test_intervals_over_sets_of_very_unequal_size_keep_their_level(sizes: list[int], before: float) -> None:
    """Sets differ as much as their blocks do. With t on the sets less one, and an error as if sets were of one size,
    the interval held the mean in the share `before` of such runs. One Monte-Carlo error at .95 is .013.
    """
    rng = np.random.default_rng(11)
    unit = np.repeat(np.arange(len(sizes)), sizes)
    held = 0
    for run in range(300):
        values = 0.1 * (rng.normal(size=len(sizes))[unit] + rng.normal(size=len(unit)))
        found = mean_over_units(values, unit, -1.0, 1.0, Draws(run, 199)).interval
        held += found is not None and found[0] <= 0 <= found[1]
    assert held / 300 > max(0.925, before)
