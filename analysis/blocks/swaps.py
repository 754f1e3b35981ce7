"""The mean of paired differences under swapped labels: its exact p and the interval that goes with it.

May not: assume a shape. Differences are symmetric about their mean where the labels of a pair could have been swapped.

Swapping the labels of some pairs turns their differences round, and "the mean is m" is rejected on the low side where
few of the means of random subsets of pairs are at or below m. So the ends of the interval are order statistics of means
of subsets (J. A. Hartigan, J. Am. Stat. Assoc. 64 (1969) 1303): no search, and it excludes 0 exactly where p says so.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval

PERM = 9999
_TIE = 1e-9


@dataclass(frozen=True)
class Swapped(Result):
    """Mean of `pairs` differences, two-sided `p` with its Monte-Carlo `error` (0 where all swaps were listed), and the
    smallest p that so many pairs can give. `means` are those of subsets, in order, for intervals.
    """

    mean: float
    pairs: int
    p: float
    error: float
    smallest_p: float
    means: Floats

    def interval(self, level: float = LEVEL) -> Interval | None:
        """The means that are not rejected at 1 - level; None where so few pairs reject none."""
        rank = int((1 - level) / 2 * (len(self.means) + 1) + _TIE)
        return (float(self.means[rank - 1]), float(self.means[-rank])) if rank else None


def swapped(differences: Floats, perm: int = PERM, seed: int = 0) -> Swapped | None:
    """Swaps of all pairs (n,), nan left out: all 2^n where they are no more than perm + 1, else `perm` at random beside
    the observed one. None without a pair.
    """
    d = np.asarray(differences, dtype=float)
    d = d[~np.isnan(d)]
    n = len(d)
    if not n:
        return None
    listed = 2**n <= perm + 1
    if listed:
        subsets = np.array(list(itertools.product((0.0, 1.0), repeat=n)))[1:]
    else:
        subsets = np.random.default_rng([seed, n]).integers(0, 2, size=(perm, n)).astype(float)
        subsets = subsets[subsets.any(axis=1)]
    means = np.sort(subsets @ d / subsets.sum(axis=1))
    below = int(np.searchsorted(means, _TIE, side="right"))
    above = len(means) - int(np.searchsorted(means, -_TIE, side="left"))
    p = min(1.0, 2 * (1 + min(below, above)) / (len(means) + 1))
    error = 0.0 if listed else 2 * share_error(p / 2, perm + 1)
    return Swapped(float(d.mean()), n, p, error, min(1.0, 2 / (len(means) + 1)), means)
