"""By how much two arms differ, each measure with an interval (RMST ratio, items per hour), and whether a registered
margin holds it.

May not: test whether arms differ, or judge a direction: that is claimed from these intervals alone (`verdicts.py`), and
permutation tests say only that arms differ. Items moved are in `items_moved.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.survival.clusters import Key, Replicates, few, freedom
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import (
    IDENTITY,
    LEVEL,
    MOST_T,
    Interval,
    as_a_mean,
    t_interval,
    widest,
)
from labctl.analysis.survival.ks import Pair, met_in_blocks
from labctl.analysis.survival.result import Margin, MarginVerdict
from labctl.analysis.survival.spread import beyond_rounding
from labctl.analysis.survival.studentised import HOUR_S
from labctl.analysis.survival.summed_parts import drawn_whole, for_a_mean, satterthwaite, summed
from labctl.analysis.survival.verdicts import holm, holm_errors, holm_levels, of_one_family

Two = tuple[str, str]
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class RatioReplicates:
    """log(RMST_a / RMST_b), mean over objects, with its clustered jackknife se and studentised replicates `t` [B].

    `df` are the degrees of freedom of the t interval that stands in where the replicates have no spread, `rmst` both
    arms' RMST in seconds (geometric means over objects), `units` the fewest units behind any of their cells.
    `few`: the degrees of freedom of t, with an error `stretch` times se, that an interval and a p are at least as wide
    as; None where operations count alike, not episodes.
    """

    value: float
    se: float
    t: Floats
    df: int
    rmst: tuple[float, float]
    units: int
    few: float | None = None
    stretch: float = 1.0


def rmst_ratio(found: Replicates, a: Sequence[Key], b: Sequence[Key]) -> RatioReplicates | None:
    """The log RMST ratio of two arms over their common objects; `a[i]` and `b[i]` are the cells of one object.

    Cells that share blocks, of one object or of several, keep their covariance. None where an RMST is 0.
    """
    if any(found.value[k] <= 0 for k in (*a, *b)):
        return None
    pairs = list(zip(a, b, strict=True))
    value, variance = _log_ratio(pairs, found.value, found.covariance)
    with np.errstate(all="ignore"):
        values, variances = _log_ratio(pairs, found.values, found.covariances)
        t = (values - value) / np.sqrt(np.maximum(variances, 0.0))
    se = math.sqrt(beyond_rounding(float(variance)))
    df = min(freedom(found, side) for side in (a, b))
    rmst_a, rmst_b = (math.exp(math.fsum(math.log(found.value[k]) for k in side) / len(side)) for side in (a, b))
    units = min(found.held[k] for k in (*a, *b))
    least = min(few(found, side) for side in (a, b)) if found.by_episode else None
    return RatioReplicates(float(value), se, t, df, (rmst_a, rmst_b), units, least, as_a_mean(units))


def ratio_interval(ratio: RatioReplicates | None, level: float = LEVEL) -> Interval | None:
    """Bootstrap-t on the log scale, else t; of the log ratio, and t of `few` where that is wider."""
    if ratio is None:
        return None
    return _by_tail(ratio, (1.0 - level) / 2)


def simultaneous(ratios: Mapping[Two, RatioReplicates | None], level: float) -> dict[Two, Interval | None]:
    """Intervals of all pairs of a family that hold all their ratios at once in `level` of experiments.

    The balanced max-T of R. Beran (J. Amer. Statist. Assoc. 83 (1988) 679): the same tail for every pair, so small that
    among joint replicates the share in which any pair's studentised value is beyond its tail is 1 - level. For one pair
    it is the bootstrap-t interval. Where a pair's replicates have no spread, Bonferroni's t interval stands in.
    """
    known = {k: r for k, r in ratios.items() if r is not None and r.se > 0}
    if not known:
        return dict.fromkeys(ratios)
    bonferroni = (1.0 - level) / 2 / len(known)
    ranks = [_rank_from_nearer_end(r.t) for r in known.values()]
    drawn = np.min(ranks, axis=0)
    tail = max(bonferroni, float(np.quantile(drawn, 1.0 - level, method="lower")))
    return {k: _by_tail(r, tail, bonferroni) if (r := known.get(k)) is not None else None for k in ratios}


def hourly_interval(pair: Pair) -> Interval | None:
    """Difference in items per robot-hour, a less b, mean over objects: t by linearisation, its variance times
    N / (N - 1) of every arm at an object.

    N are an arm's blocks where both arms met in two of every object at least, and episodes of a block count as one,
    those of a block that goes over several objects too; else N are its episodes. Of an object t is on the fewer N of an
    arm less one, over objects after Satterthwaite.
    """
    objects = len(pair.of_a)
    owner = np.repeat(np.arange(objects), pair.of_a + pair.of_b)
    group = 2 * owner + ~pair.is_a
    moved, seconds = (np.bincount(group, pair.brought[:, i], minlength=2 * objects) for i in (0, 1))
    if not (seconds > 0).all():  # unknown, or none
        return None
    rate = HOUR_S * moved / seconds
    earned, due = HOUR_S * pair.brought[:, 0] / seconds[group], rate[group] * pair.brought[:, 1] / seconds[group]
    size = np.sqrt(np.bincount(owner, earned**2 + due**2, minlength=objects))
    count, together = _units(pair)
    parts = np.where(pair.is_a, 1.0, -1.0) * (earned - due) * for_a_mean(count.T.ravel())[group]
    unit = drawn_whole(pair.blocks, owner, group, together)
    found = summed(parts, owner, count.min(axis=0) - 1, unit, size)
    se = math.sqrt(math.fsum(part.variance for part in found)) / objects
    df = satterthwaite((part.variance, part.df) for part in found)
    return t_interval(float((rate[::2] - rate[1::2]).mean()), se, df, IDENTITY)


def _units(pair: Pair) -> tuple[Ints, Ints]:
    """How many units each arm has at an object [2, objects], and the first episode of every one's own [units]."""
    rows = np.arange(len(pair.is_a))
    of, met, both = met_in_blocks(pair)
    if (both > 1).all() and all(pair.blocks):
        return met, np.array([int(s.min()) for s in pair.strata])[of]
    return np.array((pair.of_a, pair.of_b)), np.where(pair.partner >= 0, np.minimum(rows, pair.partner), rows)


def p_beyond(ratio: RatioReplicates, ends: Ends) -> float:
    """The p of a log ratio that lies at one of `ends` or beyond it: the larger of two one-sided ones (D. J. Schuirmann,
    J. Pharmacokinet. Biopharm. 15 (1987) 657), or the only one where an end is None.

    It is the smallest tail at which the interval lies within the ends: of B replicates (b + 1) / (B + 1), b those at
    least as far out as the end, in standard errors; by t where there are no replicates, and by t of `few` where
    that is larger.
    """
    t = ratio.t[~np.isnan(ratio.t)]
    found: list[float] = []
    for sign, end in zip((1.0, -1.0), ends, strict=True):
        if end is None:
            continue
        far = sign * (ratio.value - end) / ratio.se
        if len(t):
            found.append((int((sign * t >= far).sum()) + 1) / (len(t) + 1))
        else:
            found.append(float(special.stdtr(ratio.df, -far)))
        if ratio.few is not None and ratio.few >= 1:
            found.append(float(special.stdtr(ratio.few, -far / ratio.stretch)))
    return max(found)


def against_margin(
    ratios: Mapping[Two, RatioReplicates | None], margin: Margin, tau_s: float, alpha: float, reference: str | None
) -> dict[Two, MarginVerdict]:
    """What a registered margin shows of each pair that it asks about; `tau_s` is the horizon of the RMSTs, in seconds.

    A pair is shown to be within the margin where its p, adjusted after Holm over the pairs of its family, is at most
    `alpha`. Its interval is at the level that Holm's step holds it to, and so lies within the margin at the sides asked
    exactly where that is shown. Nothing is shown of a pair without spread, of one with a single unit of an arm at an
    object, and where an arm that never moves, of RMST `tau_s`, would be within the margin too.
    """
    to, width = margin["non_inferior_to"], math.log(margin["rmst_ratio"])
    asked = {pair: _careful(ratio) for pair, ratio in ratios.items() if to is None or to in pair}
    families = {pair: [other for other in asked if of_one_family(pair, other, reference)] for pair in asked}
    settled = {p: ratio and _settled(ratio, alpha / len(families[p])) for p, ratio in asked.items()}
    ends = {
        pair: (-width if to in (None, pair[0]) else None, width if to in (None, pair[1]) else None) for pair in asked
    }
    found = {pair: p_beyond(ratio, ends[pair]) for pair, ratio in settled.items() if ratio}
    errors = {pair: _drawn_error(settled[pair], p) for pair, p in found.items()}
    floor = {pair for pair, ratio in settled.items() if ratio and _floored(ratio, pair, margin, tau_s)}
    counted = {pair: 1.0 if pair in floor else found.get(pair, 1.0) for pair in asked}
    out: dict[Two, MarginVerdict] = {}
    for pair, ratio in settled.items():
        family = {other: counted[other] for other in families[pair]}
        tail, p_holm = holm_levels(family, alpha)[pair], holm(family)[pair]
        interval = ratio and _by_tail(ratio, tail)
        out[pair] = {
            "claim": "equivalent" if to is None else "non-inferior",
            "arm": None if to is None else pair[to == pair[0]],
            "margin": list(ends[pair]),
            "level": 1.0 - 2 * tail,
            "ci": list(interval) if interval else None,
            "p": found.get(pair),
            "p_error": errors.get(pair),
            "p_holm": p_holm if pair in found else None,
            "p_holm_error": holm_errors(family, {o: errors.get(o, 0.0) for o in family})[pair]
            if pair in found
            else None,
            "shown": p_holm <= alpha,
            "unable": "floor" if pair in floor else "no_spread" if pair not in found else None,
        }
    return out


def _careful(ratio: RatioReplicates | None) -> RatioReplicates | None:
    """The ratio with its variance times n / (n - 1), n its fewest units, as a jackknife of few units is too small; None
    without spread.
    """
    if ratio is None or ratio.units < 2 or not ratio.se > 0:
        return None
    return replace(ratio, se=ratio.se * as_a_mean(ratio.units), stretch=1.0)


def _drawn_error(ratio: RatioReplicates | None, p: float) -> float:
    """Monte-Carlo error of a p from replicates, 0 of one by t."""
    drawn = 0 if ratio is None else int((~np.isnan(ratio.t)).sum())
    return share_error(p, drawn + 1) if drawn else 0.0


def _settled(ratio: RatioReplicates, tail: float) -> RatioReplicates:
    """The ratio with its replicates if their quantiles at `tail` say something, else without: one method at every
    level from there on.
    """
    return ratio if _quantiles(ratio.t, tail) else replace(ratio, t=np.empty(0))


def _floored(ratio: RatioReplicates, pair: Two, margin: Margin, tau_s: float) -> bool:
    """Whether an arm that never moves would be within the margin of the one that others are held against, or of the
    quicker of a pair.
    """
    to = margin["non_inferior_to"]
    against = min(ratio.rmst) if to is None else ratio.rmst[to == pair[1]]
    return against * margin["rmst_ratio"] >= tau_s


def _log_ratio(pairs: Sequence[tuple[Key, Key]], value: Mapping, covariance: Mapping) -> tuple:
    """Mean of log a - log b and its variance by the delta method, of numbers or of arrays [B] alike.

    Cells that are drawn together keep their covariance, those of several objects too.
    """
    n = len(pairs)
    total = sum(np.log(value[a]) - np.log(value[b]) for a, b in pairs) / n
    slope = {a: 1 / value[a] / n for a, _ in pairs} | {b: -1 / value[b] / n for _, b in pairs}
    variance = sum(slope[k] * slope[m] * covariance[k, m] for k in slope for m in slope if (k, m) in covariance)
    return total, variance


def _by_tail(ratio: RatioReplicates, tail: float, fallback: float | None = None) -> Interval | None:
    """The interval that leaves the share `tail` of replicates out at either end."""
    if not ratio.se > 0:
        return None
    if quantiles := _quantiles(ratio.t, tail):
        drawn = ratio.value - quantiles[1] * ratio.se, ratio.value - quantiles[0] * ratio.se
        return widest(drawn, _of_few(ratio, tail))
    tail = tail if fallback is None else fallback
    return widest(t_interval(ratio.value, ratio.se, ratio.df, IDENTITY, 1.0 - 2 * tail), _of_few(ratio, tail))


def _of_few(ratio: RatioReplicates, tail: float) -> Interval | None:
    if ratio.few is None:
        return None
    return t_interval(ratio.value, ratio.se * ratio.stretch, ratio.few, IDENTITY, 1.0 - 2 * tail)


def _quantiles(t: Floats, tail: float) -> tuple[float, float] | None:
    """What leaves the share `tail` of replicates out at either end; None where they are too few or have no spread."""
    t = np.sort(t[~np.isnan(t)])
    rank = math.floor((len(t) + 1) * tail + 1e-9)
    if rank >= 1 and abs(t[rank - 1]) <= MOST_T and abs(t[-rank]) <= MOST_T:
        return float(t[rank - 1]), float(t[-rank])
    return None


def _rank_from_nearer_end(t: Floats) -> Floats:
    """For every replicate, the share of replicates at least as far out on its side [B]; one without a value is last."""
    known = np.where(np.isnan(t), np.inf, t)
    order = np.argsort(known)
    ordered, out = known[order], np.empty(len(t))
    below = np.searchsorted(ordered, ordered, side="right")
    above = len(t) - np.searchsorted(ordered, ordered, side="left")
    out[order] = np.minimum(below, above)
    return out / (len(t) + 1)
