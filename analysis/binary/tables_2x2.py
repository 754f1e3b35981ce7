"""Two rates from independent trials: Boschloo's test and Newcombe's interval; over strata, Cochran–Mantel–Haenszel.

May not: handle pairs (`paired` does), or read files. Counts come as (successes, trials), first arm first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from labctl.analysis.binary.rates import check_counts, wilson
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.errors import QuestionError

Count = tuple[int, int]
TIES = 1.0 + 1e-7
"""Tables this close in probability count as equally likely, as in R's fisher.test and mantelhaen.test."""


@dataclass(frozen=True)
class Stratified:
    """Cochran–Mantel–Haenszel over strata. Differences are first minus second, as fractions; p two-sided."""

    difference: float
    interval: Interval | None
    chi2: float | None
    p_chi2: float | None
    p_exact: float
    p_mid: float


def boschloo_p(first: Count, second: Count) -> float:
    """Two-sided p of Boschloo's exact unconditional test (scipy.stats.boschloo_exact: twice the smaller side).

    Raises QuestionError for what is no count.
    """
    (a, n), (b, m) = first, second
    check_counts(a, n)
    check_counts(b, m)
    if a + b in (0, n + m):  # nothing can be told apart; scipy has no answer here
        return 1.0
    return float(min(1.0, stats.boschloo_exact([[a, b], [n - a, m - b]]).pvalue))


def score_p(first: Count, second: Count) -> float:
    """Two-sided p of the score test (Pearson's chi-squared without continuity correction), for large counts."""
    (a, n), (b, m) = first, second
    check_counts(a, n)
    check_counts(b, m)
    if a + b in (0, n + m):
        return 1.0
    pooled = (a + b) / (n + m)
    gap = (a / n - b / m) / math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return float(2 * stats.norm.sf(abs(gap)))


def newcombe(first: Count, second: Count, level: float = LEVEL) -> Interval:
    """Newcombe's hybrid score interval (method 10) of the difference of two independent rates, first minus second.

    R. G. Newcombe, Statist. Med. 17 (1998) 873: the distances of two Wilson limits, added in square.
    """
    (a, n), (b, m) = first, second
    p, q = a / n, b / m
    (low_p, high_p), (low_q, high_q) = wilson(a, n, level), wilson(b, m, level)
    return p - q - math.hypot(p - low_p, high_q - q), p - q + math.hypot(high_p - p, q - low_q)


def stratified(strata: Sequence[tuple[Count, Count]], level: float = LEVEL) -> Stratified:
    """Compare two arms within strata (objects, blocks), each stratum being its two counts.

    The difference is Mantel and Haenszel's, weighted n m / (n + m), with the variance of Sato (Biometrics 45 (1989)
    1323). chi2 is without continuity correction. p_exact sums the probabilities, given every stratum's margins, of
    tables no likelier than the one found; p_mid counts half of those as likely. Raises QuestionError without strata.
    """
    if not strata:
        raise QuestionError("no strata; a stratified comparison needs at least one")
    for first, second in strata:
        check_counts(*first)
        check_counts(*second)
    table = np.array([[*first, *second] for first, second in strata], dtype=float)
    a, n, b, m = table.T
    total, both = n + m, a + b
    weight = n * m / total
    difference = float((weight * (a / n - b / m)).sum() / weight.sum())
    expected = n * both / total
    spread = np.divide(n * m * both * (total - both), total**2 * (total - 1), out=np.zeros_like(n), where=total > 1)
    chi2 = float((a - expected).sum() ** 2 / spread.sum()) if spread.sum() > 0 else None
    probability, found = _convolved(strata)
    as_extreme = probability <= probability[found] * TIES
    as_likely = as_extreme & (probability * TIES >= probability[found])
    exact = float(probability[as_extreme].sum())
    return Stratified(
        difference,
        _sato(table, difference, level),
        chi2,
        None if chi2 is None else float(stats.chi2.sf(chi2, 1)),
        min(1.0, exact),
        min(1.0, exact - float(probability[as_likely].sum()) / 2) if len(probability) > 1 else 1.0,
    )


def _convolved(strata: Sequence[tuple[Count, Count]]) -> tuple[np.ndarray, int]:
    """Null distribution of the first arm's successes over all strata, given every margin; place of the one found."""
    distribution, found = np.ones(1), 0
    for (a, n), (b, m) in strata:
        least, most = max(0, a + b - m), min(n, a + b)
        distribution = np.convolve(distribution, stats.hypergeom.pmf(np.arange(least, most + 1), n + m, a + b, n))
        found += a - least
    return distribution, found


def _sato(table: np.ndarray, difference: float, level: float) -> Interval | None:
    """Wald interval of the Mantel–Haenszel difference with Sato's variance; None where no spread was seen."""
    a, n, b, m = table.T
    total = n + m
    weight = (n * m / total).sum()
    slope = ((n**2 * b - m**2 * a + n * m * (m - n) / 2) / total**2).sum()
    level_part = ((a * (m - b) + b * (n - a)) / (2 * total)).sum()
    variance = (difference * slope + level_part) / weight**2
    if not variance > 0:
        return None
    reach = float(stats.norm.ppf(0.5 + level / 2)) * math.sqrt(variance)
    return max(-1.0, difference - reach), min(1.0, difference + reach)
