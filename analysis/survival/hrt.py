"""RMST and human-relative throughput with their intervals: bootstrap-t, its deterministic twin, the paper's percentile.

May not: read cells or draw; it takes replicates that `clusters.py` made, and writes no result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.results import Bounds, Result
from labctl.analysis.survival.clusters import Key, Replicates, few, freedom
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import (
    LOG,
    RATE,
    Interval,
    as_a_mean,
    bootstrap_t,
    logit,
    percentile,
    t_interval,
    widest,
)


@dataclass(frozen=True)
class Estimate(Result):
    """A number with three intervals: `interval`, which is recommended, is by bootstrap-t where that is defined, else
    `twin`, the deterministic t interval with the same clustered standard error `se`; `percentile` is the paper's.
    """

    value: float | None
    se: float | None = None
    interval: Interval | None = None
    twin: Interval | None = None
    percentile: Interval | None = None


def rmst(found: Replicates, keys: Sequence[Key], paper: Mapping[Key, Floats], tau_s: float) -> Estimate:
    """Macro mean of RMST(tau) over the cells `keys`, in seconds, equal weights; one cell is the case of one object.

    Bootstrap-t on the log scale; the twin is t on the logit scale of RMST/tau with `freedom` (units less one, summed
    over cells) and stands in where too many replicates have no spread, as happens to arms that seldom succeed. Where
    every episode counts alike the interval is the widest of that, bootstrap-t on the scale of rates, and t on that
    scale with the degrees of freedom of `few`.
    """
    n = len(keys)
    value = math.fsum(found.value[k] for k in keys) / n
    pairs = [(k, m) for k in keys for m in keys if (k, m) in found.covariance]
    se = math.sqrt(max(math.fsum(found.covariance[pair] for pair in pairs), 0.0)) / n
    values = np.mean([found.values[k] for k in keys], axis=0)
    ses = np.sqrt(np.maximum(np.sum([found.covariances[pair] for pair in pairs], axis=0), 0.0)) / n
    twin = t_interval(value, se, freedom(found, keys), logit(tau_s))
    studentised = bootstrap_t(value, se, values, ses, LOG) if twin else None
    if found.by_episode and twin:
        least = t_interval(value, se * as_a_mean(min(found.held[k] for k in keys)), few(found, keys), RATE)
        studentised = widest(studentised or twin, bootstrap_t(value, se, values, ses, RATE), least)
    if studentised:
        studentised = (studentised[0], min(studentised[1], tau_s))
    return Estimate(value, se, studentised or twin, twin, percentile(np.mean([paper[k] for k in keys], axis=0)))


def hrt(found: Replicates, reference: Sequence[Key], arm: Sequence[Key], paper: Mapping[Key, Floats]) -> Estimate:
    """HRT = mean over objects of RMST_reference / RMST_arm; `reference[i]` and `arm[i]` are the cells of one object.

    Bootstrap-t on log HRT with the clustered jackknife se, covering .951 at N = 10 where the paper's percentile
    covers .915 (facts §4.3); the twin is log-t on sum(units - 1) degrees of freedom of the side with fewer, that is
    4(N - 1) for four equal cells. Cells that share blocks, of one object or of several, keep their covariance. Where
    every episode counts alike the interval reaches at least as far as log-t on the degrees of freedom of `few`.
    """
    if any(found.value[k] <= 0 for k in arm):
        return Estimate(None)
    pairs = list(zip(reference, arm, strict=True))
    value, variance = _ratio(pairs, found.value, found.covariance)
    with np.errstate(all="ignore"):
        values, variances = _ratio(pairs, found.values, found.covariances)
        drawn = np.mean([paper[r] / paper[a] for r, a in pairs], axis=0)
    se = math.sqrt(max(variance, 0.0))
    df = min(freedom(found, side) for side in (reference, arm))
    twin = t_interval(value, se, df, LOG)
    studentised = bootstrap_t(value, se, values, np.sqrt(np.maximum(variances, 0.0)), LOG) if twin else None
    if found.by_episode and twin:
        units = min(found.held[k] for k in (*reference, *arm))
        least = min(few(found, side) for side in (reference, arm))
        studentised = widest(studentised or twin, t_interval(value, se * as_a_mean(units), least, LOG))
    return Estimate(value, se, studentised or twin, twin, percentile(drawn))


def hrt_floor(found: Replicates, reference: Sequence[Key], tau_s: float) -> float:
    """The HRT of a robot that never moves, whose RMST is tau: no arm can have less."""
    return math.fsum(found.value[k] for k in reference) / len(reference) / tau_s


def not_below(interval: Interval | None, floor: float) -> Bounds:
    """An interval of HRT as JSON holds it, without what no arm can have."""
    return None if interval is None else [max(end, floor) for end in interval]


def _ratio(pairs: Sequence[tuple[Key, Key]], value: Mapping, covariance: Mapping) -> tuple:
    """The mean of reference / arm and its variance by the delta method, of numbers or of arrays [B] alike."""
    n = len(pairs)
    total = sum(value[r] / value[a] for r, a in pairs) / n
    # d ratio = d r / a - ratio d a / a
    slope = {r: 1 / value[a] / n for r, a in pairs} | {a: -value[r] / value[a] ** 2 / n for r, a in pairs}
    variance = sum(slope[k] * slope[m] * covariance[k, m] for k in slope for m in slope if (k, m) in covariance)
    return total, variance
