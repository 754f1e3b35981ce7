"""Two rates from paired trials: exact and mid-p McNemar tests, Tango's interval for the difference.

May not: depend on which arm is which; b pairs succeeded with the first only, c with the second only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import optimize, stats

from labctl.analysis.numerals import counted
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.errors import QuestionError

MOSTLY_DISCORDANT = 0.6
"""Share of pairs above which the exact McNemar test decides: there the mid-p form rejects too often (.077 at .05 when
all pairs disagree). Decided so, the size is at most the level for .05 and .01, counted for 3 to 60 pairs."""


@dataclass(frozen=True)
class McNemar:
    """Two-sided p from the discordant pairs alone."""

    p_exact: float
    p_mid: float


def check_pairs(b: int, c: int, pairs: int) -> None:
    """Raise QuestionError unless b and c are counts of disjoint sets among at least one pair."""
    if min(b, c) < 0 or pairs < 1 or b + c > pairs:
        raise QuestionError(
            f"{b} and {c} discordant among {counted(pairs, 'pair')} cannot be; their sum is at most the pairs"
        )


def mcnemar(b: int, c: int) -> McNemar:
    """Exact conditional McNemar test and its mid-p form.

    Given b + c, b is Binomial(b + c, 1/2) if the arms are alike. The mid-p form counts half of the outcome found
    (Fagerland, Lydersen & Laake, BMC Med. Res. Methodol. 13 (2013) 91, who found it at or below the nominal level in
    every case they enumerated; see `exact_decides` for cases in which it is not). Without discordant pairs both are 1.
    """
    check_pairs(b, c, max(1, b + c))
    if b + c == 0:
        return McNemar(1.0, 1.0)
    exact = float(stats.binomtest(b, b + c).pvalue)
    at_this = float(stats.binom.pmf(b, b + c, 0.5))
    return McNemar(exact, exact - at_this if b != c else 1.0 - at_this / 2)


def exact_decides(discordant: int, pairs: int) -> bool:
    """Whether so many of the pairs disagree that the exact test is the one to go by, not its mid-p form."""
    return discordant > MOSTLY_DISCORDANT * pairs


def tango(b: int, c: int, pairs: int, level: float = LEVEL) -> Interval:
    """Tango's score interval of the difference of two paired rates, (b - c) / pairs, as fractions.

    T. Tango, Statist. Med. 17 (1998) 891: the differences that the score test, with the nuisance cell at its restricted
    maximum-likelihood estimate, does not reject. Raises QuestionError for what are no pairs.
    """
    check_pairs(b, c, pairs)
    reach = float(stats.norm.ppf(0.5 + level / 2))
    estimate = (b - c) / pairs
    low = -1.0 if c == pairs else _crossing(b, c, pairs, reach, -1.0, estimate)
    high = 1.0 if b == pairs else -_crossing(c, b, pairs, reach, -1.0, -estimate)
    return low, high


def _crossing(b: int, c: int, pairs: int, reach: float, edge: float, estimate: float) -> float:
    """The difference below the estimate at which the score statistic equals `reach`."""

    def beyond(difference: float) -> float:
        return _score(b, c, pairs, difference) - reach

    return float(optimize.root_scalar(beyond, bracket=(edge + 1e-12, estimate), xtol=1e-13, rtol=1e-13).root)


def _score(b: int, c: int, pairs: int, difference: float) -> float:
    """Tango's score statistic at a difference; falls as the difference grows, 0 at the estimate."""
    gap = b - c - pairs * difference
    if gap == 0:
        return 0.0
    linear = -b - c + (2 * pairs - b + c) * difference
    constant = -c * difference * (1 - difference)
    cell = (math.sqrt(max(0.0, linear**2 - 8 * pairs * constant)) - linear) / (4 * pairs)
    variance = pairs * (2 * cell + difference * (1 - difference))
    return gap / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, gap)
