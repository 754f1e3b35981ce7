"""Exchanging the labels of pairs: the exact or drawn p of a mean paired difference, and the interval that goes with it.

May not: assume a shape, or know what is compared. Differences are symmetric about their mean where the labels of a
pair could have been swapped. Dividing by the standard error would change nothing: the sum of squares is the same under
every exchange.

Swapping the labels of some pairs turns their differences round, and "the mean is m" is rejected on the low side where
few of the means of random subsets of pairs are at or below m. So the ends of the interval are order statistics of means
of subsets (J. A. Hartigan, J. Am. Stat. Assoc. 64 (1969) 1303): no search, and it excludes 0 exactly where p says so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.analysis.survival.resample import hashes, stream_key

PERM = 9999
CHUNK = 1000
"""Subsets that are drawn at once, so that memory grows with pairs, not with their product."""
FINEST = 10_000
"""Steps per unit on which differences may lie for their distribution to be listed."""
MOST_STEPS = 100_000_000
"""Of work on that distribution; about a second."""
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


def swapped(differences: Floats, perm: int = PERM, seed: int = 0, name: str = "") -> Swapped | None:
    """Swaps of all pairs (n,), nan left out: all 2^n where they are no more than perm + 1, else `perm` at random beside
    the observed one, of the stream (seed, name). None without a pair.
    """
    d = np.asarray(differences, dtype=float)
    d = d[np.isfinite(d)]
    n = len(d)
    if not n:
        return None
    listed = 2**n <= perm + 1
    every = [np.array(list(itertools.product((0.0, 1.0), repeat=n)))[1:]] if listed else _drawn(n, perm, seed, name)
    # einsum, not a matrix product: its order of summation does not depend on how many threads there are.
    means = np.sort(np.concatenate([np.einsum("rn,n->r", of, d) / of.sum(axis=1) for of in every]))
    below = int(np.searchsorted(means, _TIE, side="right"))
    above = len(means) - int(np.searchsorted(means, -_TIE, side="left"))
    p = min(1.0, 2 * (1 + min(below, above)) / (len(means) + 1))
    error = 0.0 if listed else 2 * share_error(p / 2, perm + 1)
    return Swapped(float(d.mean()), n, p, error, min(1.0, 2 / (len(means) + 1)), means)


def sign_flip_p(differences: Floats, seed: int, perm: int, name: str) -> tuple[float, float] | None:
    """P(|sum of ±d| >= |sum of d|), every sign with probability one half, and its Monte-Carlo error, 0 where it is
    exact; None without a difference [units].

    Exact wherever the differences lie on a lattice (points of a rubric, shares of stages, yes or no), of as many pairs
    as there are: the distribution of the sum is convolved step by step. Else that of `swapped`, which is the same.
    """
    known = differences[np.isfinite(differences)]
    if not len(known):
        return None
    moved = known[np.abs(known) > _TIE]
    if not len(moved):
        return 1.0, 0.0
    steps = _lattice(moved)
    if steps is not None and len(steps) * int(np.abs(steps).sum()) <= MOST_STEPS:
        return _exact(steps), 0.0
    found = swapped(moved, perm, seed, name)
    return None if found is None else (found.p, found.error)


def _drawn(n: int, perm: int, seed: int, name: str) -> Iterator[Floats]:
    """Random subsets of n pairs [chunk, n], those without a pair left out."""
    key = stream_key(seed, "swap", name)
    for start in range(0, perm, CHUNK):
        words = hashes(key, range(start, min(start + CHUNK, perm)), range(n))
        subsets = (words >> np.uint64(63)).astype(float)
        yield subsets[subsets.any(axis=1)]


def _lattice(values: Floats) -> np.ndarray | None:
    """The differences as whole numbers of one step, None where there is no step of 1 / FINEST or more."""
    step = 1
    for value in np.unique(np.abs(values)).tolist():
        near = Fraction(value).limit_denominator(FINEST)
        if abs(float(near) - value) > _TIE:
            return None
        step = math.lcm(step, near.denominator)
        if step > FINEST:
            return None
    whole = np.rint(values * step).astype(np.int64)
    return whole // math.gcd(*whole.tolist())


def _exact(steps: np.ndarray) -> float:
    total = int(np.abs(steps).sum())
    chance = np.zeros(2 * total + 1)
    chance[total] = 1.0
    reach = 0
    for step in np.sort(np.abs(steps)).tolist():
        here = slice(total - reach, total + reach + 1)
        now = chance[here].copy() / 2
        chance[here] = 0.0
        chance[total - reach + step : total + reach + step + 1] += now
        chance[total - reach - step : total + reach - step + 1] += now
        reach += step
    seen = abs(int(steps.sum()))
    if seen == 0:
        return 1.0
    return min(1.0, float(chance[: total - seen + 1].sum() + chance[total + seen :].sum()))
