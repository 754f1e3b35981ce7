"""Two or more assessors of the same episodes: intraclass correlation of scores, weighted kappa of counts, intervals.

May not: say who is right. Unweighted kappa, for words, is `labctl.analysis.episodes.agreement`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval, kappa_all_alike
from labctl.analysis.survival.spread import beyond_rounding
from labctl.errors import QuestionError


@dataclass(frozen=True)
class Icc(Result):
    """ICC(2,1): share of the variance of one assessor's score that is the episode's; other assessors, drawn alike,
    would agree so much in absolute terms. None where nothing varies.
    """

    icc: float | None
    ci: Interval | None


@dataclass(frozen=True)
class WeightedKappa(Result):
    """Kappa with quadratic weights; None where one and the same value explains all. Where all values are alike `ci`
    begins at Clopper and Pearson's bound of their share, and it is None where there is no other spread.
    """

    kappa: float | None
    ci: Interval | None


def icc(scores: Floats) -> Icc:
    """ICC(2,1) of `scores` (episodes, assessors); an episode with a nan is left out.

    Two-way random effects, absolute agreement, one assessor: P. E. Shrout & J. L. Fleiss, Psychol. Bull. 86 (1979) 420,
    with their interval. Raises QuestionError below two episodes or two assessors.
    """
    x = np.asarray(scores, dtype=float)
    x = x[~np.isnan(x).any(axis=1)] if x.ndim == 2 else x
    if x.ndim != 2 or min(x.shape) < 2:
        raise QuestionError("an intraclass correlation needs two episodes or more, scored by two assessors or more")
    n, k = x.shape
    whole = x.mean()
    episodes = k * float(((x.mean(axis=1) - whole) ** 2).sum()) / (n - 1)
    assessors = n * float(((x.mean(axis=0) - whole) ** 2).sum()) / (k - 1)
    rest = float(((x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + whole) ** 2).sum()) / ((n - 1) * (k - 1))
    below = episodes + (k - 1) * rest + k * (assessors - rest) / n
    if not below > 1e-15:
        return Icc(None, None)
    found = (episodes - rest) / below
    if not rest > 1e-15:
        return Icc(found, None)
    ratio, inner = assessors / rest, n * (1 + (k - 1) * found) - k * found
    df = (k - 1) * (n - 1) * (k * found * ratio + inner) ** 2 / ((n - 1) * (k * found * ratio) ** 2 + inner**2)
    upper, lower = (float(stats.f.ppf(0.5 + LEVEL / 2, *two)) for two in ((n - 1, df), (df, n - 1)))
    common = k * assessors + (k * n - k - n) * rest
    low = n * (episodes - upper * rest) / (upper * common + n * episodes)
    high = n * (lower * episodes - rest) / (common + n * lower * episodes)
    return Icc(found, (max(-1.0, low), min(1.0, high)))


def weighted_kappa(first: Sequence[float], second: Sequence[float]) -> WeightedKappa:
    """Kappa of two assessors' numbers with weights 1 - (difference / range)^2; J. Cohen, Psychol. Bull. 70 (1968) 213.

    Standard error of J. L. Fleiss, J. Cohen & B. S. Everitt (Psychol. Bull. 72 (1969) 323). Raises QuestionError for
    lists of unequal length.
    """
    if len(first) != len(second) or not len(first):
        raise QuestionError(
            f"{len(first)} and {len(second)} values; two assessors' values of the same episodes are needed"
        )
    values, place = np.unique(np.r_[first, second], return_inverse=True)
    n, k = len(first), len(values)
    if k < 2:
        return WeightedKappa(None, None)
    p = np.zeros((k, k))
    np.add.at(p, (place[:n], place[n:]), 1 / n)
    weight = 1 - ((values[:, None] - values[None, :]) / (values[-1] - values[0])) ** 2
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    found, chance = float((weight * p).sum()), float(rows @ weight @ columns)
    if chance >= 1:
        return WeightedKappa(None, None)
    if (place[:n] == place[n:]).all():
        return WeightedKappa(1.0, kappa_all_alike(n, float(rows @ columns)))
    kappa = (found - chance) / (1 - chance)
    around = (weight @ columns)[:, None] + (rows @ weight)[None, :]
    moment = float((p * (weight - around * (1 - kappa)) ** 2).sum())
    variance = beyond_rounding(moment - (kappa - chance * (1 - kappa)) ** 2)
    if not variance:
        return WeightedKappa(kappa, None)
    reach = float(stats.norm.ppf(0.5 + LEVEL / 2)) * math.sqrt(variance / n) / (1 - chance)
    return WeightedKappa(kappa, (max(-1.0, kappa - reach), min(1.0, kappa + reach)))
