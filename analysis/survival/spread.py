"""What spread is only rounding: equal numbers, or equal differences of numbers, that arithmetic left a little apart.

May not: estimate. Whoever divides by a spread, or takes one for how sure a number is, asks here whether there is any.
"""

from __future__ import annotations

import math

import numpy as np

from labctl.analysis.survival.curves import Floats

NOTHING = 1e-12
"""A variance below this share of what it is the difference of is rounding."""


def beyond_rounding(variance: float, size: float = 1.0) -> float:
    """The variance, 0 where it is rounding; `size` of the numbers that it was computed from, as shares and scores 1."""
    return variance if variance > NOTHING * size**2 else 0.0


def variance_of(values: Floats) -> float:
    """The variance of numbers on their count less one, two at least; 0 where they are equal but for rounding."""
    return beyond_rounding(float(values.var(ddof=1)), size_of(values))


def alike(values: Floats) -> bool:
    """Whether numbers, one at least, are equal but for rounding."""
    return beyond_rounding(float(np.ptp(values)) ** 2, size_of(values)) == 0


def rounding_alone(se: float, value: float) -> bool:
    """Whether a standard error or range, none included, is what rounding leaves of none about such a value."""
    return not se > NOTHING * math.fabs(value)


def size_of(values: Floats) -> float:
    """How large numbers are, of those below 1 that: they are mostly differences of shares or scores."""
    return max(1.0, float(np.abs(values).max()))
