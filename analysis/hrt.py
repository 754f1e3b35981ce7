"""Intervals for RMST and HRT: deterministic log-t, and the paper's episode-clustered percentile bootstrap.

Takes cells and means already grouped by object; writes no result and warns about nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.cells import Cell
from labctl.analysis.resample import multiplicities, stream_key
from labctl.analysis.survival import Floats, Spells, rmst, rmst_with_error, survival, walk
from scipy import stats

Interval = tuple[float, float]
CHUNK = 500
"""Replicates walked at once: a few megabytes of temporaries."""


@dataclass(frozen=True)
class Mean:
    """RMST(tau) of a cell in seconds, its clustered standard error and the number of episodes behind it."""

    rmst: float
    se: float
    episodes: int


def cell_mean(cell: Cell, tau_ns: int) -> Mean:
    """The recommended RMST of a cell: futility ends carried to the budget, infinitesimal-jackknife se."""
    value, se = rmst_with_error(cell.spells, tau_ns)
    return Mean(value, se, cell.episodes)


def log_t(value: float, se_log: float, df: int, level: float = 0.95) -> Interval | None:
    """value · exp(± t_df · se_log); None where the sample cannot say (no spread, no degrees of freedom, value 0)."""
    if value <= 0 or df < 1 or not (math.isfinite(se_log) and se_log > 0):
        return None
    reach = float(stats.t.ppf(0.5 + level / 2, df)) * se_log
    return value * math.exp(-reach), value * math.exp(reach)


def rmst_interval(means: Sequence[Mean], tau_s: float) -> tuple[float, Interval | None]:
    """Macro mean of RMST over objects and its log-t interval on sum(N - 1) degrees of freedom, capped at tau.

    One cell is the case of one object: t(N - 1).
    """
    value = math.fsum(m.rmst for m in means) / len(means)
    se = math.sqrt(math.fsum(m.se**2 for m in means)) / len(means)
    found = log_t(value, se / value if value > 0 else math.nan, sum(m.episodes - 1 for m in means))
    return value, found and (found[0], min(found[1], tau_s))


def hrt_interval(reference: Sequence[Mean], arm: Sequence[Mean]) -> tuple[float | None, Interval | None]:
    """HRT = mean over objects of RMST_reference / RMST_arm and its deterministic log-t interval, object by object.

    Delta method on log HRT with the clustered se of both; degrees of freedom sum(N - 1) of the side with fewer, that
    is 4(N - 1) for four equal cells (facts §4.3: covers .952 at N = 10). Its bootstrap-t twin is not in this version.
    """
    if any(m.rmst <= 0 for m in arm):
        return None, None
    ratios = [r.rmst / a.rmst for r, a in zip(reference, arm, strict=True)]
    value = math.fsum(ratios) / len(ratios)
    if value <= 0:
        return value, None
    relative = [
        ratio**2 * ((r.se / r.rmst) ** 2 + (a.se / a.rmst) ** 2) if ratio > 0 else 0.0
        for ratio, r, a in zip(ratios, reference, arm, strict=True)
    ]
    df = min(sum(m.episodes - 1 for m in side) for side in (reference, arm))
    return value, log_t(value, math.sqrt(math.fsum(relative)) / len(ratios) / value, df)


def cell_key(seed: int, cell: Cell) -> np.uint64:
    """The stream of draws of a cell, the same in every statistic that resamples it."""
    return stream_key(seed, "boot", cell.arm, cell.object)


def rmst_replicates(spells: Spells, key: np.uint64, boot: int, tau_ns: int) -> Floats:
    """RMST(tau) in seconds of `boot` resamples of whole episodes within the cell [boot]."""
    grid = spells.event_times(tau_ns)
    steps = walk(spells, grid)
    out = np.empty(boot)
    for start in range(0, boot, CHUNK):
        part = range(start, min(start + CHUNK, boot))
        weights = multiplicities(key, part, spells.episodes, spells.episodes)
        out[part.start : part.stop] = rmst(survival(steps, weights), grid, tau_ns)
    return out


def percentile(replicates: Floats, level: float = 0.95) -> Interval | None:
    """The paper's interval: quantiles of the replicates; None without finite ones or without any spread."""
    finite = replicates[np.isfinite(replicates)]
    if not len(finite) or finite.min() == finite.max():
        return None
    low, high = np.quantile(finite, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def hrt_replicates(reference: Sequence[Floats], arm: Sequence[Floats]) -> Floats:
    """HRT of every replicate [boot] from the RMST replicates of each object."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.mean([r / a for r, a in zip(reference, arm, strict=True)], axis=0)
