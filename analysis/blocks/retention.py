"""How much of its training score an arm keeps on the test split: a ratio with Fieller's interval.

May not: give an interval where the training score itself is not clear of 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from labctl.analysis.blocks.means import Draws, mean_over_units
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval

DRAWS = Draws(seed=0, boot=999)
_ALIKE = 1e-12


@dataclass(frozen=True)
class Retention(Result):
    """Mean scores of both splits and `retention` = test / train; 1 = nothing lost. None without either split, or a
    training score of 0.
    """

    train: float | None
    test: float | None
    retention: float | None
    ci: Interval | None


def retention(
    train: Floats,
    test: Floats,
    train_units: Sequence[Hashable] | None = None,
    test_units: Sequence[Hashable] | None = None,
    level: float = LEVEL,
) -> Retention:
    """Retention of one arm: scores `train` (n,) and `test` (m,), nan left out, and what each was run in (a set, a block
    or a task), each on its own where not given.

    E. C. Fieller (J. R. Stat. Soc. B 16 (1954) 175): the ratios r at which mean test - r mean train is not clear of 0,
    by t on the units of the smaller split less one, with the variances and the covariance of both means over units.
    Where all units of a split scored alike that variance is 0 and says nothing: then the ratio of the ends of both
    means' own intervals, each at half the error (Bonferroni). None where those ratios are no interval.
    """
    parts = [np.asarray(x, dtype=float) for x in (train, test)]
    units = [
        [(split, i) for i in range(len(x))] if own is None else list(own)
        for split, (x, own) in enumerate(zip(parts, (train_units, test_units), strict=True))
    ]
    kept = [~np.isnan(x) for x in parts]
    units = [[u for u, k in zip(own, keep, strict=True) if k] for own, keep in zip(units, kept, strict=True)]
    parts = [x[keep] for x, keep in zip(parts, kept, strict=True)]
    names = {u: i for i, u in enumerate(dict.fromkeys([*units[0], *units[1]]))}
    means = [float(x.mean()) if len(x) else None for x in parts]
    if means[0] is None or means[1] is None or means[0] == 0:
        return Retention(means[0], means[1], None, None)
    moved = np.zeros((2, len(names)))
    for split, (x, own) in enumerate(zip(parts, units, strict=True)):
        np.add.at(moved[split], [names[u] for u in own], (x - means[split]) / len(x))
    distinct = [len(set(own)) for own in units]
    ci = None
    if min(distinct) >= 2 and np.abs(moved).max(axis=1).min() < _ALIKE:
        places = [np.array([names[u] for u in own]) for own in units]
        ends = [
            mean_over_units(x, own, 0.0, 1.0, DRAWS, 0.5 + level / 2).interval
            for x, own in zip(parts, places, strict=True)
        ]
        ci = _of_ends(*ends)
    elif min(distinct) >= 2:
        scale = np.sqrt([n / (n - 1) for n in distinct])
        covariance = (moved @ moved.T) * np.outer(scale, scale)
        ci = _fieller(means[0], means[1], covariance, float(stats.t.ppf(0.5 + level / 2, min(distinct) - 1)))
    return Retention(means[0], means[1], means[1] / means[0], ci)


def _of_ends(below: Interval | None, above: Interval | None) -> Interval | None:
    """The least and the most that a ratio can be of what lies in two intervals."""
    if below is None or above is None or below[0] <= 0:
        return None
    return above[0] / below[1], above[1] / below[0]


def _fieller(below: float, above: float, covariance: Floats, reach: float) -> Interval | None:
    """Ratios r with (above - r below)^2 <= reach^2 (v22 - 2 r v12 + r^2 v11); None where they are no interval."""
    (v11, v12), (_, v22) = covariance * reach**2
    a, b, c = below**2 - v11, above * below - v12, above**2 - v22
    root = b**2 - a * c
    if not (a > 0 and root >= 0):
        return None
    return max(0.0, (b - math.sqrt(root)) / a), (b + math.sqrt(root)) / a
