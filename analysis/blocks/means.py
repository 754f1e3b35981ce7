"""Means with intervals that stay within their range: over independent units (blocks, or sets of blocks), and of
independent episodes.

May not: know arms or tables; a unit brings a sum and how many values are in it. Where episodes share a block their
differences are paired, and no mean here is that of a difference of unpaired ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from labctl.analysis.binary.rates import clopper_pearson
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import IDENTITY, LEVEL, Interval, bootstrap_t, logit, t_interval
from labctl.analysis.survival.resample import multiplicities, stream_key
from labctl.analysis.survival.spread import alike, beyond_rounding, variance_of

CHUNK = 1000
"""Replicates that are drawn at once, so that memory grows with units, not with replicates."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval; `n` values stand in `units` units. None without a value."""

    value: float | None
    interval: Interval | None
    n: int
    units: int


@dataclass(frozen=True)
class Draws:
    """How means are resampled: seed and number of replicates."""

    seed: int
    boot: int


def mean_over_units(
    values: Floats, unit: Ints, low: float, high: float, draws: Draws, level: float = LEVEL
) -> Estimate:
    """The mean of the values that are not NaN, which lie in [low, high]; `unit` [values] names each one's unit.

    The outer ends of two intervals over whole units, as neither alone covers everywhere (docs/episodes.md):
    bootstrap-t (Efron & Tibshirani 1993, chapter 12) with the linearised standard error of a ratio of sums, and a
    deterministic one, t on units - 1 (of units of unequal size `_uneven`), on the logit for shares. Cut at the range.
    Where all values, or all units' means, are the same but for rounding, the exact binomial interval of that mean on as
    many trials as there are units: a distribution on this range that has this mean and would show no spread is never
    likelier than the one that is at its ends alone.
    """
    known = np.isfinite(values)
    if not known.any():
        return Estimate(None, None, 0, 0)
    place, index = np.unique(unit[known], return_inverse=True)
    sums = np.bincount(index, values[known]).astype(np.float64)
    sizes = np.bincount(index).astype(np.float64)
    count = len(place)
    value = float(values[known].mean())
    apart = beyond_rounding(float(((sums - value * sizes) ** 2).sum()), math.sqrt(float((sizes**2).sum())))
    if alike(values[known]) or count < 2 or not apart:
        return Estimate(value, _without_spread(value, count, low, high, level), int(known.sum()), count)
    se = float(_errors(_columns(sums, sizes).sum(axis=0)[:, None], count)[0])
    careful = (se, count - 1) if alike(sizes) else _uneven(sums - value * sizes, sizes)
    twin = t_interval(value, *careful, logit() if (low, high) == (0.0, 1.0) else IDENTITY, level)
    if twin is None:
        return Estimate(value, None, int(known.sum()), count)
    drawn = _resampled(sums, sizes, draws)
    with np.errstate(all="ignore"):
        means, ses = drawn[0] / drawn[1], _errors(drawn, count)
    found = bootstrap_t(value, se, means, ses, IDENTITY, level) or twin
    ends = max(low, min(twin[0], found[0])), min(high, max(twin[1], found[1]))
    return Estimate(value, ends, int(known.sum()), count)


def _uneven(parts: Floats, sizes: Floats) -> tuple[float, float]:
    """The error of a mean over units of unequal size from what each adds about it [units], and its degrees of freedom.

    A large unit draws the mean towards itself and hides how far off it is: the bias-reduced linearisation (CR2) of
    R. M. Bell & D. F. McCaffrey, Survey Methodology 28 (2002) 169, and their degrees of freedom after Satterthwaite, as
    of independent values; units - 1 and the error of a mean where sizes are equal.
    """
    share = sizes / sizes.sum()
    pull = share**2 / (1 - share)
    df = 1 / float((share**2).sum() + pull.sum() ** 2 - (pull**2).sum())
    return math.sqrt(float((parts**2 / (1 - share)).sum())) / float(sizes.sum()), max(df, 1.0)


def _columns(sums: Floats, sizes: Floats) -> Floats:
    """What every unit adds [units, 5]: sum, size, and their products."""
    return np.stack((sums, sizes, sums * sums, sums * sizes, sizes * sizes), axis=1)


def _errors(sums: Floats, units: int) -> Floats:
    """Standard errors of sum / size from sums of `_columns` over units [5, replicates]."""
    s, n, ss, sn, nn = sums
    mean = s / n
    return np.sqrt(np.maximum(ss - 2 * mean * sn + mean**2 * nn, 0.0) * units / (units - 1)) / n


def _resampled(sums: Floats, sizes: Floats, draws: Draws) -> Floats:
    """Sums of `_columns` over units drawn with replacement [5, replicates].

    einsum, not a matrix product: its order of summation does not depend on how many threads there are.
    """
    whole = bool((sizes == 1).all())
    columns = np.stack((sums, sums * sums), axis=1) if whole else _columns(sums, sizes)
    units = len(sums)
    found = np.concatenate(
        [np.einsum("ru,uc->rc", weight, columns) for weight in _weights(units, draws.seed, draws.boot)]
    )
    if not whole:
        return found.T
    drawn = np.full(len(found), float(units))
    return np.stack((found[:, 0], drawn, found[:, 1], found[:, 0], drawn))


@lru_cache(maxsize=4)
def _weights(units: int, seed: int, boot: int) -> tuple[np.ndarray, ...]:
    """How often each unit is drawn, in chunks [CHUNK, units]; the same for every mean over as many units."""
    key = stream_key(seed, "units", str(units))
    parts = [range(s, min(s + CHUNK, boot)) for s in range(0, boot, CHUNK)]
    return tuple(multiplicities(key, part, units, units) for part in parts)


def _without_spread(value: float, count: int, low: float, high: float, level: float) -> Interval:
    share = (value - low) / (high - low) * count
    least, most = math.floor(share + 1e-9), math.ceil(share - 1e-9)
    bounds = clopper_pearson(least, count, level)[0], clopper_pearson(most, count, level)[1]
    return low + bounds[0] * (high - low), low + bounds[1] * (high - low)


@dataclass(frozen=True)
class MeanScore(Result):
    """Mean of `episodes` scores from 0 to 1; None without one. `ci` lies in [0, 1]; None below two episodes that are
    no successes, and without spread.
    """

    episodes: int
    mean: float | None
    ci: Interval | None


def mean_score(scores: Floats, level: float = LEVEL) -> MeanScore:
    """Clopper–Pearson where every score is 0 or 1, else t on episodes less one, cut to [0, 1]; nan is left out."""
    x = np.asarray(scores, dtype=float)
    x = x[~np.isnan(x)]
    n = len(x)
    if not n:
        return MeanScore(0, None, None)
    mean = float(x.mean())
    if np.isin(x, (0.0, 1.0)).all():
        return MeanScore(n, mean, clopper_pearson(int(x.sum()), n, level))
    found = t_interval(mean, math.sqrt(variance_of(x) / n), n - 1, IDENTITY, level) if n > 1 else None
    return MeanScore(n, mean, None if found is None else (max(0.0, found[0]), min(1.0, found[1])))
