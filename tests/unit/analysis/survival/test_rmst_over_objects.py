"""Claims about the mean RMST over objects: the error of a mean of independent cells, and the interval made of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.survival.clusters import Key, Replicates
from labctl.analysis.survival.hrt import rmst

TAU_S = 240.0
CELLS = {("a", "cup"): (60.0, 6.0, 10), ("a", "pan"): (90.0, 8.0, 8), ("a", "pot"): (30.0, 2.0, 12)}


def stated(cells: dict[Key, tuple[float, float, int]]) -> Replicates:
    """Cells given as (RMST, se, units), with too few draws to studentise."""
    two = np.ones(2)
    return Replicates(
        {k: value for k, (value, _, _) in cells.items()},
        {(k, k): se**2 for k, (_, se, _) in cells.items()},
        {k: two * value for k, (value, _, _) in cells.items()},
        {(k, k): two * se**2 for k, (_, se, _) in cells.items()},
        {k: units for k, (_, _, units) in cells.items()},
        frozenset(cells),
    )


@pytest.mark.parametrize("objects", [1, 2, 3])
def test_its_error_is_that_of_a_mean_of_independent_numbers(objects: int) -> None:
    cells = dict(list(CELLS.items())[:objects])
    found = stated(cells)
    estimate = rmst(found, list(cells), found.values, TAU_S)
    value = sum(value for value, _, _ in cells.values()) / objects
    se = math.sqrt(sum((se / objects) ** 2 for _, se, _ in cells.values()))
    assert (estimate.value, estimate.se) == (pytest.approx(value), pytest.approx(se))
    # t on the logit of RMST / tau, whose slope is tau / (RMST (tau - RMST)), and back
    reach = stats.t.ppf(0.975, sum(n - 1 for _, _, n in cells.values())) * se * TAU_S / (value * (TAU_S - value))
    centre = math.log(value / (TAU_S - value))
    ends = [TAU_S / (1 + math.exp(-(centre + side * reach))) for side in (-1, 1)]
    assert estimate.twin == pytest.approx(ends) and estimate.interval == estimate.twin


def test_equal_cells_make_the_error_smaller_by_the_root_of_their_number() -> None:
    four = {("a", name): (60.0, 6.0, 10) for name in ("cup", "pan", "pot", "towel")}
    found = stated(four)
    assert rmst(found, list(four), found.values, TAU_S).se == pytest.approx(6.0 / 2)
