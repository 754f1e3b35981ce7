"""By how much two arms differ, each measure with an interval: RMST ratio, items per hour, P(T_a < T_b).

May not: test or judge. A direction is claimed from these intervals alone (`verdicts.py`); permutation tests say only
that arms differ. Items moved are in `items_moved.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.survival.clusters import Key, Replicates
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import (
    IDENTITY,
    LEVEL,
    MOST_T,
    Interval,
    t_interval,
)
from labctl.analysis.survival.kernel import Given, pair_values
from labctl.analysis.survival.ks import Pair
from labctl.analysis.survival.studentised import hourly_difference
from scipy import stats

Two = tuple[str, str]


@dataclass(frozen=True)
class RatioReplicates:
    """log(RMST_a / RMST_b), mean over objects, with its clustered jackknife se and studentised replicates `t` [B].

    `df` are the degrees of freedom of the t interval that stands in where the replicates have no spread.
    """

    value: float
    se: float
    t: Floats
    df: int


def rmst_ratio(found: Replicates, a: Sequence[Key], b: Sequence[Key]) -> RatioReplicates | None:
    """The log RMST ratio of two arms over their common objects; `a[i]` and `b[i]` are the cells of one object.

    Cells of an object that share blocks keep their covariance. None where an RMST is 0.
    """
    if any(found.value[k] <= 0 for k in (*a, *b)):
        return None
    pairs = list(zip(a, b, strict=True))
    value, variance = _log_ratio(pairs, found.value, found.covariance)
    with np.errstate(all="ignore"):
        values, variances = _log_ratio(pairs, found.values, found.covariances)
        t = (values - value) / np.sqrt(np.maximum(variances, 0.0))
    se = math.sqrt(max(float(variance), 0.0))
    return RatioReplicates(float(value), se, t, min(sum(found.held[k] - 1 for k in side) for side in (a, b)))


def ratio_interval(ratio: RatioReplicates | None, level: float = LEVEL) -> Interval | None:
    """Bootstrap-t on the log scale, else t; of the log ratio."""
    if ratio is None:
        return None
    return _by_tail(ratio, (1.0 - level) / 2)


def simultaneous(ratios: Mapping[Two, RatioReplicates | None], level: float) -> dict[Two, Interval | None]:
    """Intervals of all pairs of a family that hold all their ratios at once in `level` of experiments.

    The balanced max-T of R. Beran (J. Amer. Statist. Assoc. 83 (1988) 679): the same tail for every pair, so small that
    among joint replicates the share in which any pair's studentised value is beyond its tail is 1 - level. For one pair
    it is the bootstrap-t interval. Where a pair's replicates have no spread, Bonferroni's t interval stands in.
    """
    known = {k: r for k, r in ratios.items() if r is not None and r.se > 0}
    if not known:
        return dict.fromkeys(ratios)
    bonferroni = (1.0 - level) / 2 / len(known)
    ranks = [_rank_from_nearer_end(r.t) for r in known.values()]
    drawn = np.min(ranks, axis=0)
    tail = max(bonferroni, float(np.quantile(drawn, 1.0 - level, method="lower")))
    return {k: _by_tail(r, tail, bonferroni) if (r := known.get(k)) is not None else None for k in ratios}


def hourly_interval(pair: Pair, level: float = LEVEL) -> Interval | None:
    """Difference in items per robot-hour, a less b, mean over objects: t by linearisation, with Welch's freedom."""
    labels = pair.is_a[None, :].astype(float)
    walk = pair_values(pair.walk, Given(labels, 1.0 - labels), range(1), pair.request)
    difference, variance = hourly_difference(pair, walk.sum_a, walk.sum_b)
    if not (np.isfinite(difference[0]) and np.isfinite(variance[0]) and variance[0] > 0):
        return None
    df = min(int(n.sum()) - len(n) for n in (pair.of_a, pair.of_b))
    return t_interval(float(difference[0]), math.sqrt(float(variance[0])), df, IDENTITY, level)


def _log_ratio(pairs: Sequence[tuple[Key, Key]], value: Mapping, covariance: Mapping) -> tuple:
    """Mean of log a - log b and its variance by the delta method, of numbers or of arrays [B] alike."""
    total, variance = 0.0, 0.0
    for a, b in pairs:
        total = total + np.log(value[a]) - np.log(value[b])
        own = covariance[a, a] / value[a] ** 2 + covariance[b, b] / value[b] ** 2
        variance = variance + own - 2 * covariance.get((a, b), 0.0) / (value[a] * value[b])
    return total / len(pairs), variance / len(pairs) ** 2


def _by_tail(ratio: RatioReplicates, tail: float, fallback: float | None = None) -> Interval | None:
    """The interval that leaves the share `tail` of replicates out at either end."""
    if not ratio.se > 0:
        return None
    t = np.sort(ratio.t[~np.isnan(ratio.t)])
    rank = math.floor((len(t) + 1) * tail + 1e-9)
    if rank >= 1 and abs(t[rank - 1]) <= MOST_T and abs(t[-rank]) <= MOST_T:
        return ratio.value - float(t[-rank]) * ratio.se, ratio.value - float(t[rank - 1]) * ratio.se
    return t_interval(ratio.value, ratio.se, ratio.df, IDENTITY, 1.0 - 2 * (tail if fallback is None else fallback))


def _rank_from_nearer_end(t: Floats) -> Floats:
    """For every replicate, the share of replicates at least as far out on its side [B]; one without a value is last."""
    known = np.where(np.isnan(t), np.inf, t)
    below = stats.rankdata(known, method="max")
    above = stats.rankdata(-known, method="max")
    return np.minimum(below, above) / (len(t) + 1)
