"""Signed statistics of a pair in units of their own standard error, under any labels of its episodes.

May not: draw labels (`permutation.py` does) or judge. Where means are equal and spreads are not, swapped labels hold
their level, as the sample grows, only for a studentised statistic (A. Janssen, Statist. Probab. Lett. 36 (1997) 9;
E. Chung & J. P. Romano, Ann. Statist. 41 (2013) 484); under the sharp null it stays exact. Where a block holds one
episode of each arm the block is the unit, so that what its two episodes share cancels.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from labctl.analysis.survival.curves import Durations, Floats, Ints
from labctl.analysis.survival.event_order import EventOrder, event_order
from labctl.analysis.survival.kernel import Given, Moments, Swap
from labctl.analysis.survival.ks import TINY, Pair
from labctl.analysis.survival.spread import NOTHING

HOUR_S = 3600.0
UNDEFINED = np.errstate(divide="ignore", invalid="ignore")
"""What is undefined under some labels is NaN there, as elsewhere in the kernel."""


@UNDEFINED
def in_errors(difference: Floats, variance: Floats) -> Floats:
    """Each difference over its standard error; 0 where there is none, infinite where it has no spread."""
    found = difference / np.sqrt(variance)
    found = np.where(variance <= 0, np.copysign(np.inf, difference), found)
    return np.where(np.abs(difference) <= TINY, 0.0, found)


def two_roles(pair: Pair) -> EventOrder:
    """Every object twice, as what the first arm did and as what the second did: groups 2o and 2o + 1.

    Unit u weighs 1 where episode u has the first arm's label, its twin `units + u` where it has the second's. In the
    second role an episode with a partner stands under its partner's unit, which weighs the same, so that the jackknife
    takes the two together: their covariance is that of groups 2o and 2o + 1.
    """
    units = len(pair.is_a)
    second = np.where(pair.partner >= 0, pair.partner, units + np.arange(units))
    groups: list[Durations] = []
    start = 0
    for timed in pair.timed:
        own = timed.episode + start
        groups += [dataclasses.replace(timed, episode=rows, episodes=2 * units) for rows in (own, second[own])]
        start += timed.episodes
    return event_order(groups, pair.walk.tau_ns, shared=True)


def both_roles(draw: Given | Swap) -> Given | Swap:
    """The same labels for the units of `two_roles`."""
    if isinstance(draw, Swap):
        return dataclasses.replace(draw, mirrored=True)
    return Given(np.concatenate((draw.a, 1.0 - draw.a), axis=1))


@UNDEFINED
def log_ratios_of(found: Moments) -> Floats:
    """log(RMST_a / RMST_b) of every object [R, objects]; `found` are the moments of `two_roles`."""
    return np.log(found.rmst[:, ::2] / found.rmst[:, 1::2])


@UNDEFINED
def log_ratio_errors(pair: Pair, found: Moments) -> tuple[Floats, Floats]:
    """Log RMST ratio in standard errors: macro mean [R], and of every object [R, objects].

    `found` are the moments of `two_roles`. Where nothing is paired an arm's variance counts N / (N - 1).
    """
    objects, ratio = len(pair.objects), log_ratios_of(found)
    first, second = 2 * np.arange(objects), 2 * np.arange(objects) + 1
    a, b = found.rmst[:, first], found.rmst[:, second]
    more_a, more_b = (_for_mean(n, pair) for n in (pair.of_a, pair.of_b))
    own = more_a * found.covariance[:, first, first] / a**2 + more_b * found.covariance[:, second, second] / b**2
    variance = own - 2 * found.covariance[:, first, second] / (a * b)
    variance = np.where(variance > NOTHING * own, variance, 0.0)
    return in_errors(ratio.mean(axis=1), variance.mean(axis=1) / objects), in_errors(ratio, variance)


@UNDEFINED
def hourly_difference(pair: Pair, sum_a: Floats, sum_b: Floats) -> tuple[Floats, Floats]:
    """Items per robot-hour of a less that of b [R], mean over objects, and its variance by linearisation [R].

    `sum_a`, `sum_b` [R, objects, 9] are sums of `Pair.brought` over each arm's episodes.
    """
    (rate_a, var_a, sec_a), (rate_b, var_b, sec_b) = (_hourly(s[:, :, :5]) for s in (sum_a, sum_b))
    own = _for_mean(pair.of_a, pair) * var_a + _for_mean(pair.of_b, pair) * var_b
    both, a_then_b, b_then_a, time = (sum_a[:, :, i] for i in (5, 6, 7, 8))
    shared = both - rate_b * a_then_b - rate_a * b_then_a + rate_a * rate_b * time
    variance = own - 2 * shared / (sec_a * sec_b)
    least = NOTHING * np.maximum(own, np.abs(both) / (sec_a * sec_b))
    variance = np.where(variance > least, variance, np.where(np.isnan(variance), np.nan, 0.0))
    objects = len(pair.objects)
    return HOUR_S * (rate_a - rate_b).mean(axis=1), HOUR_S**2 * variance.mean(axis=1) / objects


@UNDEFINED
def share_difference(pair: Pair, sum_a: Floats, sum_b: Floats) -> tuple[Floats, Floats]:
    """Mean share of items moved of a less that of b [R], mean over objects, and its variance [R].

    `sum_a`, `sum_b` [R, objects, 6] are sums of `share_columns`.
    """
    means, own = [], 0.0
    for sums, n in ((sum_a, pair.of_a), (sum_b, pair.of_b)):
        mean = sums[:, :, 1] / sums[:, :, 0]
        spread = np.maximum(sums[:, :, 2] - sums[:, :, 0] * mean**2, 0.0)
        spread = np.where(spread > NOTHING * sums[:, :, 2], spread, 0.0)
        own = own + _for_mean(n, pair) * spread / sums[:, :, 0] ** 2
        means.append(mean)
    paired = (pair.partner >= 0).astype(float)
    n_pairs = np.array([paired[_own(pair, o)].sum() / 2 for o in range(len(pair.objects))])
    # sum over pairs of (x - mean_a)(y - mean_b); the rest of either mean's terms needs the paired sums alone
    product, with_a, with_b = (sum_a[:, :, i] for i in (3, 4, 5))
    shared = product - means[1] * with_a - means[0] * with_b + n_pairs * means[0] * means[1]
    variance = own - 2 * shared / (sum_a[:, :, 0] * sum_b[:, :, 0])
    variance = np.where(variance > NOTHING * np.maximum(own, TINY), variance, 0.0)
    return (means[0] - means[1]).mean(axis=1), variance.mean(axis=1) / len(pair.objects)


def share_columns(pair: Pair, share: Floats) -> Floats:
    """What `share_difference` sums [units, 6]: 1, share, its square; of paired units product, own and partner's."""
    paired = pair.partner >= 0
    other = np.where(paired, share[pair.partner], 0.0)
    return np.column_stack((np.ones_like(share), share, share**2, share * other, np.where(paired, share, 0.0), other))


def _own(pair: Pair, obj: int) -> slice:
    starts = np.cumsum(np.append(0, pair.of_a + pair.of_b))
    return slice(int(starts[obj]), int(starts[obj + 1]))


def _for_mean(episodes: Ints, pair: Pair) -> Floats:
    """N / (N - 1) for the mean that was estimated; a constant factor, left out, where every unit has its partner."""
    return np.ones(len(episodes)) if _all_paired(pair) else episodes / np.maximum(episodes - 1, 1)


def _all_paired(pair: Pair) -> bool:
    return bool((pair.partner >= 0).all())


@UNDEFINED
def _hourly(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Items per second [R, objects], the variance of that ratio, and seconds."""
    moved, seconds, mm, ms, ss = (sums[:, :, i] for i in range(5))
    rate = moved / seconds
    square = mm - 2 * rate * ms + rate**2 * ss
    square = np.where(square > NOTHING * mm, square, np.where(np.isnan(square), np.nan, 0.0))
    return rate, square / seconds**2, seconds
