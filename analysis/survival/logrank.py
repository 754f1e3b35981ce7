"""Two-sample logrank tests: ordinary, stratified, with the cluster-robust score, and by permutation.

May not: pool what should not be pooled; strata are the caller's, and so is the family a p belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from labctl.analysis.results import Result
from labctl.analysis.survival.curves import NEVER_NS, Durations, Floats, distinct, totals
from labctl.analysis.survival.ks import Pair
from labctl.analysis.survival.permutation import relabelled, share_at_least


@dataclass(frozen=True)
class Logrank(Result):
    """Chi-square on one degree of freedom and p; None if undefined.

    `chi2` has the hypergeometric variance (R's survdiff), `chi2_cluster` the sum over episodes of squared score
    residuals. Operations of an episode depend on each other, so the first rejects about twice as often as its level
    (facts §4.1).
    """

    chi2: float | None
    p: float | None
    chi2_cluster: float | None
    p_cluster: float | None


def logrank(a: Durations, b: Durations) -> Logrank:
    """Compare two groups of operations; the case of one stratum of `stratified`."""
    return stratified([(a, b)])


def stratified(pairs: Sequence[tuple[Durations, Durations]]) -> Logrank:
    """Compare two arms within strata (objects): observed less expected and its variances add up over strata.

    Ghosts are at risk at every finite event time and never an event (censored beyond all of them). The robust score
    divides the same observed - expected by the sum over episodes of squared score residuals
    sum_k (delta_k - sum_{t<=T_k} dN/Y) (z_k - zbar), the null form of the robust Cox score with Breslow ties.
    """
    parts = [_stratum(a, b) for a, b in pairs]
    score, variance, clustered = (math.fsum(p[i] for p in parts) for i in range(3))
    chi2, robust = _ratio(score**2, variance), _ratio(score**2, clustered)
    return Logrank(chi2, _p(chi2), robust, _p(robust))


def logrank_permutation(pair: Pair, seed: int, perm: int) -> float:
    """p of the logrank stratified by object, by swapping labels within block × object; exact in size.

    Observed less expected is linear in the labels: the sum, over the episodes called a, of their events less the
    hazard they were exposed to.
    """
    worth = np.concatenate([_excess(g) for g in pair.pooled])
    of_a, _ = relabelled(pair, worth[:, None], seed, perm)
    return share_at_least(of_a[:, :, 0].sum(axis=1))


def _stratum(a: Durations, b: Durations) -> tuple[float, float, float]:
    """Observed less expected of the first group, its variance under independence and the clustered one."""
    time = np.concatenate((a.time_ns, b.time_ns))
    event = np.concatenate((a.event, b.event)) & (time < NEVER_NS)
    in_a = np.concatenate((np.ones(len(a.time_ns)), np.zeros(len(b.time_ns))))
    episode = np.concatenate((a.episode, b.episode + a.episodes))
    grid = distinct(time[event])
    if not len(grid):
        return 0.0, 0.0, 0.0
    at_risk, deaths = totals(time, event, np.ones(len(time)), grid)
    at_risk_a, _ = totals(time, event, in_a, grid)
    place = np.searchsorted(grid, time, side="right")
    index = np.maximum(place - 1, 0)
    share = at_risk_a / at_risk
    spread = np.divide(deaths * (at_risk - deaths), at_risk - 1, out=np.zeros_like(share), where=at_risk > 1)
    variance = float((share * (1 - share) * spread).sum())
    score = float((in_a[event] - share[index[event]]).sum())
    hazard = np.append(0.0, np.cumsum(deaths / at_risk))
    drift = np.append(0.0, np.cumsum(share * deaths / at_risk))
    residual = np.where(event, in_a - share[index], 0.0) - (in_a * hazard[place] - drift[place])
    clustered = float((np.bincount(episode, residual, a.episodes + b.episodes) ** 2).sum())
    return score, variance, clustered


def _excess(pooled: Durations) -> Floats:
    """Events less cumulative hazard of every episode [episodes]."""
    event = pooled.event & (pooled.time_ns < NEVER_NS)
    grid = distinct(pooled.time_ns[event])
    at_risk, deaths = totals(pooled.time_ns, event, np.ones(len(pooled.time_ns)), grid)
    hazard = np.append(0.0, np.cumsum(deaths / at_risk))[np.searchsorted(grid, pooled.time_ns, side="right")]
    return np.bincount(pooled.episode, event - hazard, pooled.episodes).astype(np.float64)


def _ratio(square: float, variance: float) -> float | None:
    return square / variance if variance > 0 else None


def _p(chi2: float | None) -> float | None:
    return None if chi2 is None else float(special.chdtrc(1, chi2))
