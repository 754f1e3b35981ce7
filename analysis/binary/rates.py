"""One rate: k of n with its Wilson and Clopper–Pearson intervals.

May not: compare two rates (`tables_2x2`, `paired`), or read a file (`pooling`).
"""

from __future__ import annotations

import math
from typing import TypedDict

from scipy import special

from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.errors import QuestionError


class Rate(TypedDict):
    """One k of n, its rate and intervals [low, high] as fractions; None without trials."""

    successes: int
    trials: int
    rate: float | None
    ci_wilson: list[float] | None
    ci_exact: list[float] | None


def check_counts(successes: int, trials: int) -> None:
    """Raise QuestionError unless 0 <= successes <= trials and there is at least one trial."""
    if trials < 1 or not 0 <= successes <= trials:
        raise QuestionError(f"{successes} of {trials} is no rate; allowed is k of n with 0 <= k <= n and n at least 1")


def wilson(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a rate, as fractions; mean coverage near `level`, at some rates a little below.

    E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209, by hand: a report, which shows this one alone, would wait half a
    second for scipy.stats, which has the same bits.
    """
    check_counts(successes, trials)
    share, z = successes / trials, float(special.ndtri(0.5 + 0.5 * level))
    twice = 2 * (trials + z**2)
    centre = (2 * trials * share + z**2) / twice
    reach = z / twice * math.sqrt(4 * trials * share * (1 - share) + z**2)
    return centre - reach if successes else 0.0, centre + reach if successes < trials else 1.0


def clopper_pearson(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """The exact interval of a rate, as fractions; coverage never below `level`."""
    from scipy import stats

    check_counts(successes, trials)
    found = stats.binomtest(successes, trials).proportion_ci(level, "exact")
    return float(found.low), float(found.high)


def rate(successes: int, trials: int, level: float = LEVEL) -> Rate:
    """Counts, rate, `ci_wilson` and `ci_exact` of one k of n; rate and intervals are null without trials."""
    if trials == 0:
        return {"successes": successes, "trials": trials, "rate": None, "ci_wilson": None, "ci_exact": None}
    return {
        "successes": successes,
        "trials": trials,
        "rate": successes / trials,
        "ci_wilson": [*wilson(successes, trials, level)],
        "ci_exact": [*clopper_pearson(successes, trials, level)],
    }
