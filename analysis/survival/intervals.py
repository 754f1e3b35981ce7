"""Intervals from a value, its standard error and its replicates: t on a scale, bootstrap-t on a scale, percentile.

May not: depend on what is estimated. Scales map the range of an estimate to the whole line; no interval leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.spread import rounding_alone

Interval = tuple[float, float]
LEVEL = 0.95
FEWEST_TO_PREDICT = 5
"""Levels (sites, robots' cells) below which no interval for a new one is given: its width would rest on three degrees
of freedom or fewer, and what is said is of these levels."""


@dataclass(frozen=True)
class Scale:
    """A monotone scale for an estimate; `slope` is its derivative, for the delta method."""

    to: Callable[[Floats], Floats]
    back: Callable[[float], float]
    slope: Callable[[Floats], Floats]


MOST_T = 1000.0  # a studentised replicate further out has lost its spread, not found a difference
LOG = Scale(np.log, lambda y: math.exp(min(y, 700.0)), lambda x: 1.0 / x)
IDENTITY = Scale(lambda x: x, lambda y: y, np.ones_like)
RATE = Scale(lambda x: -1.0 / x, lambda y: -1.0 / y if y < 0 else math.inf, lambda x: 1.0 / x**2)
"""Of a mean time, by how many an hour: where few long episodes carry a mean, its reciprocal is the more symmetric."""


def logit(top: float = 1.0) -> Scale:
    """The logit of a number between 0 and `top`."""
    return Scale(
        lambda x: np.log(x / (top - x)),
        lambda y: top / (1.0 + math.exp(-y)) if y > -700 else 0.0,
        lambda x: top / (x * (top - x)),
    )


def t_interval(value: float, se: float, df: float, scale: Scale, level: float = LEVEL) -> Interval | None:
    """back(to(value) ± t_df · se · slope); None without spread or degree of freedom, or at an end of the scale."""
    centre, spread = _on(scale, value, se)
    if df < 1 or rounding_alone(se, value) or not (math.isfinite(centre) and math.isfinite(spread) and spread > 0):
        return None
    reach = float(special.stdtrit(df, 0.5 + level / 2)) * spread
    return scale.back(centre - reach), scale.back(centre + reach)


def bootstrap_t(
    value: float, se: float, values: Floats, ses: Floats, scale: Scale, level: float = LEVEL
) -> Interval | None:
    """The studentised bootstrap (Efron & Tibshirani 1993, chapter 12) on a scale, from replicates and their own se.

    None where too many replicates have no spread of their own, or next to none, for the quantiles to be finite and mean
    something, or there are too few of them: (B + 1)(1 - level) / 2 must reach 1. The caller then prints the
    deterministic interval.
    """
    centre, spread = _on(scale, value, se)
    if rounding_alone(se, value) or not (math.isfinite(centre) and math.isfinite(spread) and spread > 0):
        return None
    with np.errstate(all="ignore"):
        t = (scale.to(values) - centre) / (ses * scale.slope(values))
    t = np.sort(t[~np.isnan(t)])
    rank = math.floor((len(t) + 1) * (1 - level) / 2 + 1e-9)
    if rank < 1 or not (abs(t[rank - 1]) <= MOST_T and abs(t[-rank]) <= MOST_T):
        return None
    low, high = scale.back(centre - float(t[-rank]) * spread), scale.back(centre - float(t[rank - 1]) * spread)
    return None if rounding_alone(high - low, value) else (low, high)


def widest(*found: Interval | None) -> Interval | None:
    """The lowest of their lower ends and the highest of their upper; None where there is none of them."""
    known = [interval for interval in found if interval is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def as_a_mean(units: int) -> float:
    """What a jackknife's error is multiplied by to be that of a mean of so many units, whose variance is over n - 1."""
    return math.sqrt(units / (units - 1)) if units > 1 else 1.0


def percentile(replicates: Floats, level: float = LEVEL) -> Interval | None:
    """The paper's interval: quantiles of the replicates; None without finite ones or without any spread."""
    finite = replicates[np.isfinite(replicates)]
    if not len(finite) or rounding_alone(float(np.ptp(finite)), float(np.abs(finite).max())):
        return None
    low, high = np.quantile(finite, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def kappa_all_alike(n: int, chance: float, level: float = LEVEL) -> Interval:
    """Of a kappa of 1, where all of n labels, one at least, are alike and its own error is 0: from Clopper and
    Pearson's bound of the share alike on. chance: the share alike by chance, below 1.
    """
    return max(-1.0, (((1 - level) / 2) ** (1 / n) - chance) / (1 - chance)), 1.0


def _on(scale: Scale, value: float, se: float) -> tuple[float, float]:
    with np.errstate(all="ignore"):
        at = np.array([value])
        return float(scale.to(at)[0]), float(se * scale.slope(at)[0])
