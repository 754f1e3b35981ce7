"""Sample size and power for success rates: exact by enumeration wherever the outcomes can be listed, else by formula.

May not: handle episodes or times (`simulation` does), or print. Rates, differences and widths are fractions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from labctl.analysis.binary.paired import exact_decides
from labctl.errors import QuestionError

LARGEST_LISTED = 400
"""Trials per arm up to which the outcomes of two arms are listed one by one."""
LARGEST_PAIRS = 10_000
"""Pairs up to which the outcomes of McNemar's test are listed one by one."""
MOST = 10**12
"""Trials beyond which no size is named."""
_RATES = np.linspace(0.0, 1.0, 401)[1:-1]
"""Common success rates over which the size of Boschloo's test is maximised."""


def wilson_half_width(trials: float, rate: float = 0.5, level: float = 0.95) -> float:
    """Half the width of Wilson's interval at an observed rate; widest at one half."""
    z2 = float(stats.norm.isf((1 - level) / 2)) ** 2
    return math.sqrt(z2 * (rate * (1 - rate) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)


def wilson_trials(half_width: float, rate: float = 0.5) -> int:
    """The fewest trials whose 95 % Wilson interval at an observed rate reaches no further than `half_width` either way.

    320 for 5 points at a rate of .7, 381 at .5. Raises QuestionError beyond `MOST`.
    """
    if wilson_half_width(MOST, rate) > half_width:
        raise QuestionError(f"a half-width of {half_width:g} {_TOO_FINE}; ask for a wider one")
    return _fewest(lambda n: wilson_half_width(n, rate) <= half_width, 1)


def connor_pairs(discordant: float, difference: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Pairs for McNemar's test when a share `discordant` of pairs disagrees and the rates differ by `difference`.

    R. J. Connor, Biometrics 43 (1987) 207: ((z_a sqrt(psi) + z_b sqrt(psi - d^2)) / d)^2, an approximation; see
    `mcnemar_power` for the exact power. Raises QuestionError unless 0 < difference <= discordant <= 1, and beyond
    `MOST`.
    """
    check_discordance(discordant, difference)
    z_a, z_b = float(stats.norm.isf(alpha / 2)), float(stats.norm.ppf(power))
    reach = z_a * math.sqrt(discordant) + z_b * math.sqrt(discordant - difference**2)
    return math.ceil(_squared(reach, difference) - 1e-9)


def check_discordance(discordant: float, difference: float) -> None:
    """Raise QuestionError unless the rates can differ so much with so few pairs that disagree."""
    if not 0 <= abs(difference) <= discordant <= 1:
        found = f"rates that differ by {difference:g} with {discordant:g} of the pairs discordant"
        raise QuestionError(
            f"{found} cannot be; the difference is at most the share of discordant pairs, and that at most 1"
        )


def mcnemar_power(
    pairs: int, discordant: float, difference: float, alpha: float = 0.05, *, exact: bool = False
) -> float:
    """Power of McNemar's test as `labctl compare` decides it (or of the exact one) by listing every outcome.

    That is the mid-p form, or the exact one where most pairs disagree. The number of discordant pairs is
    Binomial(pairs, discordant); of these the first arm wins a share (1 + difference / discordant) / 2. At difference 0
    this is the size of the test. Raises QuestionError, for more than `LARGEST_PAIRS` too.
    """
    check_discordance(discordant, difference)
    if pairs > LARGEST_PAIRS:
        raise QuestionError(f"of pairs {pairs}; exact power is listed up to {LARGEST_PAIRS}, give fewer with --n")
    if discordant == 0:
        return 0.0
    wins = (1 + difference / discordant) / 2
    distribution = stats.binom.pmf(np.arange(pairs + 1), pairs, discordant)
    seen = np.flatnonzero(distribution > 1e-14)
    critical = np.array([_critical(int(d), alpha, exact or exact_decides(int(d), pairs)) for d in seen])
    rejected = stats.binom.cdf(critical, seen, wins) + stats.binom.sf(seen - critical - 1, seen, wins)
    return float(distribution[seen] @ rejected)


def boschloo_rejects(first: int, second: int, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Which outcomes [first + 1, second + 1] (successes of either arm) Boschloo's two-sided test rejects.

    Twice the smaller one-sided p, as scipy.stats.boschloo_exact has it, the size maximised over 399 common rates.
    Raises QuestionError beyond `LARGEST_LISTED` trials.
    """
    if max(first, second) > LARGEST_LISTED:
        raise QuestionError(f"per arm {max(first, second)} trials; exact power is listed up to {LARGEST_LISTED}")
    return _rejects_above(first, second, alpha / 2) | _rejects_above(second, first, alpha / 2).T


def boschloo_power(first: int, second: int, rate_1: float, rate_2: float, alpha: float = 0.05) -> float:
    """Power of Boschloo's test for two independent arms by listing every outcome; at equal rates its size. Raises
    QuestionError.
    """
    rejected = boschloo_rejects(first, second, alpha)
    distribution = np.outer(
        stats.binom.pmf(np.arange(first + 1), first, rate_1), stats.binom.pmf(np.arange(second + 1), second, rate_2)
    )
    return float(distribution[rejected].sum())


def normal_trials(rate_1: float, rate_2: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Trials per arm for two independent rates by the normal approximation; where to start an exact search.

    J. L. Fleiss, Statistical Methods for Rates and Proportions (1981), formula 3.14. Raises QuestionError beyond
    `MOST`.
    """
    mean, z_a, z_b = (rate_1 + rate_2) / 2, float(stats.norm.isf(alpha / 2)), float(stats.norm.ppf(power))
    unequal = rate_1 * (1 - rate_1) + rate_2 * (1 - rate_2)
    reach = z_a * math.sqrt(2 * mean * (1 - mean)) + z_b * math.sqrt(unequal)
    return math.ceil(_squared(reach, rate_1 - rate_2))


def smallest_trials(power_at: Callable[[int], float], target: float, start: int, largest: int) -> int | None:
    """The fewest trials from which on the power stays at `target` for ten more; exact power rises in a sawtooth.

    Searched from `start` up or down; None beyond `largest`.
    """
    known: dict[int, bool] = {}

    def reached(n: int) -> bool:
        if n not in known:
            known[n] = power_at(n) >= target
        return known[n]

    def stays(n: int) -> bool:
        return all(reached(later) for later in range(n, min(n + 10, largest) + 1))

    n = max(1, min(start, largest))
    while n <= largest and not stays(n):
        n += 1
    while n > 1 and n <= largest and reached(n - 1):
        n -= 1
    return n if n <= largest else None


def paired_resolvable(pairs: int, discordant: float, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest difference of rates that McNemar's test finds with `power`; None if even the largest is not, 0 where
    the test rejects as often without any.

    With a share `discordant` of pairs in disagreement no difference can be larger than that. Of more than
    `LARGEST_PAIRS` pairs by Connor's formula.
    """
    if pairs > LARGEST_PAIRS:
        return _by_formula(pairs, discordant, power, alpha)
    if mcnemar_power(pairs, discordant, discordant, alpha) < power:
        return None

    def short(difference: float) -> float:
        return mcnemar_power(pairs, discordant, difference, alpha) - power

    if short(0.0) >= 0:
        return 0.0
    return float(optimize.root_scalar(short, bracket=(0.0, discordant), xtol=1e-4).root)


def _by_formula(pairs: int, discordant: float, power: float, alpha: float) -> float | None:
    """The difference of which `connor_pairs` has so many pairs; None and 0 as `paired_resolvable`."""
    z_a, z_b = float(stats.norm.isf(alpha / 2)), float(stats.norm.ppf(power))

    def lacks(difference: float) -> float:
        reach = z_a * math.sqrt(discordant) + z_b * math.sqrt(max(discordant - difference**2, 0.0))
        return reach - difference * math.sqrt(pairs)

    if lacks(discordant) > 0:
        return None
    return float(optimize.root_scalar(lacks, bracket=(0.0, discordant), xtol=1e-6).root) if lacks(0.0) > 0 else 0.0


def ratio_resolvable(episodes: int, spread: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest ratio of two mean times found with `power`, by the normal approximation on the log scale.

    `spread` is the standard error of one arm's log mean time from a single episode; exp((z_a + z_b) spread sqrt(2/N)).
    """
    reach = float(stats.norm.isf(alpha / 2) + stats.norm.ppf(power))
    return math.exp(reach * spread * math.sqrt(2 / episodes))


def ratio_margin(
    episodes: int, spread: float, power: float = 0.8, alpha: float = 0.05, *, both_sides: bool = True
) -> float:
    """The smallest margin of a ratio of two mean times within which arms that are alike are shown to be with `power`.

    By the normal approximation of two one-sided tests on the log scale, or of the one of non-inferiority (S. A.
    Julious, Statist. Med. 23 (2004) 1921); `spread` as above: exp((z_a + z_(b/2)) spread sqrt(2/N)), z_b of one side.
    """
    reach = float(stats.norm.isf(alpha) + stats.norm.ppf((1 + power) / 2 if both_sides else power))
    return math.exp(reach * spread * math.sqrt(2 / episodes))


@functools.cache
def _critical(discordant: int, alpha: float, exact: bool) -> int:
    """The largest count of wins of either arm that is still rejected as too few; -1 if none is."""
    few = np.arange(discordant // 2 + 1)
    p = 2 * special.bdtr(few, discordant, 0.5)
    if not exact:
        p = p - stats.binom.pmf(few, discordant, 0.5)
    return int((p <= alpha).sum()) - 1


def _rejects_above(first: int, second: int, level: float) -> NDArray[np.bool_]:
    """Outcomes that the one-sided test rejects because the first arm had more successes than chance gives."""
    a, b = np.arange(first + 1)[:, None], np.arange(second + 1)[None, :]
    fisher = stats.hypergeom.sf(a - 1, first + second, a + b, first)
    order = np.argsort(fisher, axis=None, kind="stable")
    ranked = fisher.ravel()[order]
    last_alike = np.searchsorted(ranked, ranked * (1 + 1e-9), side="right") - 1
    size = np.zeros(len(order))
    distributions = [stats.binom.pmf(np.arange(n + 1), n, _RATES[:, None]) for n in (first, second)]
    for chance_a, chance_b in zip(*distributions, strict=True):
        np.maximum(size, np.cumsum(np.outer(chance_a, chance_b).ravel()[order]), out=size)
    out = np.zeros(len(order), dtype=bool)
    out[order] = size[last_alike] <= level
    return out.reshape(first + 1, second + 1)


_TOO_FINE = f"takes more than {MOST:.0e} trials"


def _squared(reach: float, difference: float) -> float:
    """(reach / difference)^2. Raises QuestionError beyond `MOST`."""
    if reach > abs(difference) * math.sqrt(MOST):
        raise QuestionError(f"a difference of {abs(difference):g} {_TOO_FINE}; ask for a larger one")
    return (reach / difference) ** 2


def _fewest(enough: Callable[[int], bool], low: int) -> int:
    """The smallest whole number from `low` on that is enough, for a condition that stays true once it is."""
    high = low
    while not enough(high):
        low, high = high + 1, high * 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
