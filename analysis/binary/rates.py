"""One rate: k of n with its Wilson and Clopper–Pearson intervals.

May not: compare two rates (`tables_2x2`, `paired`), or read a file (`pooling`).
"""

from __future__ import annotations

from typing import TypedDict

from scipy import stats

from labctl.errors import QuestionError

Interval = tuple[float, float]
LEVEL = 0.95


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
    """Wilson's score interval of a rate, as fractions; mean coverage near `level`, at some rates a little below."""
    return _interval(successes, trials, level, "wilson")


def clopper_pearson(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """The exact interval of a rate, as fractions; coverage never below `level`."""
    return _interval(successes, trials, level, "exact")


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


def _interval(successes: int, trials: int, level: float, method: str) -> Interval:
    check_counts(successes, trials)
    found = stats.binomtest(successes, trials).proportion_ci(level, method)
    return float(found.low), float(found.high)
