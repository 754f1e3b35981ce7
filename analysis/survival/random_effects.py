"""Random effects of means with known sampling variances, nested, by restricted maximum likelihood.

May not: know what a level is, or estimate a sampling variance: `sites` does. The model of meta-analysis
(W. Viechtbauer, J. Stat. Softw. 36 (2010) 3), with further levels after S. Konstantopoulos (Res. Synth. Methods 2
(2011) 61).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import LEVEL, Interval


@dataclass(frozen=True)
class RandomEffects(Result):
    """`mean` with `se`; `tau2` and `i2` by factor in the order given; Cochran's `q` on `df` with `p`.

    `i2` is each factor's share of the whole variance of a typical mean, a fraction.
    """

    mean: float
    se: float
    tau2: tuple[float, ...]
    i2: tuple[float, ...]
    q: float
    df: int
    p: float


def reml(y: Floats, v: Floats, factors: Sequence[Ints], within_df: float = math.inf) -> RandomEffects:
    """Means `y` (k,) with sampling variances `v` (k,) > 0, k of 2 or more; each factor gives the level (k,) of a mean.

    A factor with a level for each mean is the tau2 of the plain model. `within_df`: degrees of freedom of the common
    variance that v was made from, for p by F; v known: p by chi squared.
    """
    shared = np.array([np.equal.outer(f, f) for f in factors], dtype=np.float64)
    ones, typical = np.ones(len(y)), float(np.median(v))

    def projected(tau2: Floats) -> tuple[Floats, Floats, float]:
        """V^-1 less what the mean takes up, V^-1, and 1' V^-1 1."""
        between = np.tensordot(tau2, shared, axes=1)
        inverse: Floats = np.linalg.inv(np.diag(v) + between).astype(np.float64)
        weight = inverse @ ones
        return inverse - np.outer(weight, weight) / weight.sum(), inverse, float(weight.sum())

    def minus(scaled: Floats) -> tuple[float, Floats]:
        p, inverse, weight = projected(scaled * typical)
        value = -np.linalg.slogdet(inverse)[1] + math.log(weight) + y @ p @ y
        slope = [float(np.vdot(p, s) - (p @ y) @ s @ (p @ y)) * typical for s in shared]
        return float(value) / 2, np.array(slope) / 2

    spread = max(float(np.var(y)) / typical, 0.1)
    starts = [np.full(len(shared), s) for s in (spread, spread / 10)]
    found = [
        optimize.minimize(
            minus,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options={"ftol": 1e-15, "gtol": 1e-9},
        )
        for start in starts
    ]
    tau2 = min(found, key=lambda one: one.fun).x * typical
    inverse = projected(tau2)[1]
    weight = inverse @ ones
    q, df = cochran_q(y, v), len(y) - 1
    usual = float(df / np.trace(projected(np.zeros(len(shared)))[0]))
    whole = float(tau2.sum()) + usual
    return RandomEffects(
        float(weight @ y / weight.sum()),
        1 / math.sqrt(float(weight.sum())),
        tuple(float(t) for t in tau2),
        tuple(float(t) / whole for t in tau2),
        q,
        df,
        float(stats.chi2.sf(q, df) if math.isinf(within_df) else stats.f.sf(q / df, df, within_df)),
    )


def cochran_q(y: Floats, v: Floats, tau2: float = 0.0) -> float:
    """Weighted sum of squares about the weighted mean, weights 1 / (v + tau2)."""
    weight = 1 / (v + tau2)
    return float((weight * (y - weight @ y / weight.sum()) ** 2).sum())


def q_profile(y: Floats, v: Floats, level: float = LEVEL) -> Interval:
    """Interval of the tau2 of the plain model: where Q at tau2 is at its own chi-squared quantiles.

    W. Viechtbauer, Statist. Med. 26 (2007) 37; an end that no tau2 of 0 or more reaches is 0.
    """
    df, top = len(y) - 1, 10 * (float(np.var(y, ddof=1)) + float(v.max()))
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        bar = float(stats.chi2.isf(tail, df))
        high = top
        while cochran_q(y, v, high) > bar:
            high *= 10
        inside = cochran_q(y, v) <= bar
        found = None if inside else optimize.root_scalar(lambda t, at=bar: cochran_q(y, v, t) - at, bracket=(0.0, high))
        ends.append(0.0 if found is None else float(found.root))
    return ends[0], ends[1]
