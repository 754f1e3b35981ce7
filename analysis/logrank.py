"""Two-sample logrank tests: the ordinary one and the cluster-robust score.

Ignores objects and strata: the caller pools what it wants compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from labctl.analysis.survival import NEVER_NS, Spells, totals
from scipy import stats


@dataclass(frozen=True)
class Logrank:
    """Chi-square on one degree of freedom and p, ordinary and with episode-clustered variance; None if undefined."""

    chi2: float | None
    p: float | None
    chi2_cluster: float | None
    p_cluster: float | None


def logrank(a: Spells, b: Spells) -> Logrank:
    """Compare two groups of operations.

    Ghosts are at risk at every finite event time and never an event (censored beyond all of them). The robust score
    divides the same observed - expected by the sum over episodes of squared score residuals
    sum_k (delta_k - sum_{t<=T_k} dN/Y) (z_k - zbar), the null form of the robust Cox score with Breslow ties.
    """
    time = np.concatenate((a.time_ns, b.time_ns))
    event = np.concatenate((a.event, b.event)) & (time < NEVER_NS)
    in_a = np.concatenate((np.ones(len(a.time_ns)), np.zeros(len(b.time_ns))))
    episode = np.concatenate((a.episode, b.episode + a.episodes))
    grid = np.unique(time[event])
    if not len(grid):
        return Logrank(None, None, None, None)
    at_risk, deaths = totals(time, event, np.ones(len(time)), grid)
    at_risk_a, _ = totals(time, event, in_a, grid)
    place = np.searchsorted(grid, time, side="right")
    index = np.maximum(place - 1, 0)
    share = at_risk_a / at_risk
    many = at_risk > 1
    spread = np.divide(deaths * (at_risk - deaths), at_risk - 1, out=np.zeros_like(share), where=many)
    variance = float((share * (1 - share) * spread).sum())
    score = float((in_a[event] - share[index[event]]).sum())
    hazard = np.concatenate(([0.0], np.cumsum(deaths / at_risk)))
    drift = np.concatenate(([0.0], np.cumsum(share * deaths / at_risk)))
    residual = np.where(event, in_a - share[index], 0.0) - (in_a * hazard[place] - drift[place])
    clustered = float((np.bincount(episode, residual, a.episodes + b.episodes) ** 2).sum())
    chi2, robust = _ratio(score**2, variance), _ratio(score**2, clustered)
    return Logrank(chi2, _p(chi2), robust, _p(robust))


def _ratio(square: float, variance: float) -> float | None:
    return square / variance if variance > 0 else None


def _p(chi2: float | None) -> float | None:
    return None if chi2 is None else float(stats.chi2.sf(chi2, 1))
