"""Statistics of a pair of arms under any relabelling or resampling of its episodes, and the paper's bootstrap p.

May not: permute (`permutation.py` does) or judge; it lays two arms out for the kernel and names what comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Durations, Floats, Ints, joined
from labctl.analysis.survival.event_order import EventOrder, event_order
from labctl.analysis.survival.kernel import Draw, Given, PairValues, Pool, Request, pair_values
from labctl.analysis.survival.resample import Exchange, stream_key
from labctl.analysis.table import NS, UNKNOWN

BROUGHT = 9
"""Columns of what every unit brings along."""
TIE, TINY = 1e-9, 1e-12
"""Values within this share, or this much, of each other count as equal."""


@dataclass(frozen=True)
class Pair:
    """Two arms at the objects both have met: one unit per episode, object after object, those of a first in each.

    `horizon_ns` is where curves stop being compared, `is_a` [units] the labels as they were, `strata` the units that
    may be swapped among each other, `of_a` and `of_b` [objects] the numbers of episodes, `pooled` both arms' operations
    object by object, `timed` those that RMSTs are made of. `blocks` [units] names blocks ("" for none), `partner`
    [units] is the other arm's unit of a block that holds one of each, else -1; `exchanges` are the design's
    relabellings where they are drawn from, else empty.
    """

    a: str
    b: str
    objects: tuple[str, ...]
    walk: EventOrder
    horizon_ns: int
    brought: Floats
    is_a: np.ndarray
    strata: tuple[Ints, ...]
    of_a: Ints
    of_b: Ints
    pooled: tuple[Durations, ...]
    timed: tuple[Durations, ...]
    blocks: tuple[str, ...]
    partner: Ints
    exchanges: tuple[Exchange, ...] = ()

    @property
    def request(self) -> Request:
        """What the kernel is to compare and sum: items moved and seconds per episode."""
        return Request(self.walk.steps_until(self.horizon_ns), (), self.brought)


def pair_of(
    a: Sequence[Cell], b: Sequence[Cell], tau_ns: int, *, observed: bool = False, exchanges: Sequence[Exchange] = ()
) -> Pair:
    """Pool two arms' cells, object by object in the same order; `observed` takes the paper's tails.

    Curves are compared up to the shorter of tau and the shortest budget stated, a horizon that no relabelling moves.
    Strata are block × object, or object where no block is named.
    """
    met = list(zip(a, b, strict=True))
    pooled = [joined(x.observed, y.observed) if observed else joined(x.durations, y.durations) for x, y in met]
    budgets = np.concatenate([c.budget_ns for c in (*a, *b)])
    stated = budgets[budgets != UNKNOWN]
    strata, start = [], 0
    for x, y in met:
        strata += [start + s for s in _groups((*x.blocks, *y.blocks))]
        start += x.episodes + y.episodes
    moved = np.concatenate([np.concatenate((x.moved, y.moved)) for x, y in met]).astype(float)
    ends = np.concatenate([np.concatenate((x.charged_ns, y.charged_ns)) for x, y in met])
    is_a = np.concatenate([np.repeat([True, False], [x.episodes, y.episodes]) for x, y in met])
    partner = np.full(len(is_a), -1)
    blocks = tuple(name for x, y in met for name in (*x.blocks, *y.blocks))
    first = is_a.tolist()
    for one, other in (s.tolist() for s in strata if len(s) == 2):
        if first[one] != first[other] and blocks[one]:
            partner[one], partner[other] = other, one
    seconds = np.where(ends == UNKNOWN, np.nan, ends / NS)
    return Pair(
        a[0].arm,
        b[0].arm,
        tuple(c.object for c in a),
        event_order(pooled, tau_ns),
        min(tau_ns, int(stated.min())) if len(stated) else tau_ns,
        _brought(moved, seconds, partner),
        is_a,
        tuple(strata),
        np.array([c.episodes for c in a]),
        np.array([c.episodes for c in b]),
        tuple(pooled),
        tuple(joined(x.timed, y.timed) for x, y in met),
        blocks,
        partner,
        tuple(exchanges),
    )


def met_in_blocks(pair: Pair) -> tuple[Ints, Ints, Ints]:
    """Which of `strata` every unit is in [units], how many of an object's hold each arm [2, objects], and both
    [objects].
    """
    of = np.empty(len(pair.is_a), dtype=int)
    of[np.concatenate(pair.strata)] = np.repeat(np.arange(len(pair.strata)), [len(s) for s in pair.strata])
    owner = np.repeat(np.arange(len(pair.of_a)), pair.of_a + pair.of_b)
    at = np.array([owner[s[0]] for s in pair.strata])
    has = [np.bincount(of[side], minlength=len(at)) > 0 for side in (pair.is_a, ~pair.is_a)]
    held = [np.bincount(at[own], minlength=len(pair.of_a)) for own in (*has, has[0] & has[1])]
    return of, np.array(held[:2]), held[2]


def _brought(moved: Floats, seconds: Floats, partner: Ints) -> Floats:
    """What every unit brings along [units, 9]: items, seconds, squares and product, and products with a partner's.

    From sums of these come items per hour and its standard error under any labels (`studentised.py`).
    """
    paired = partner >= 0
    other_moved, other_s = (np.where(paired, v[partner], 0.0) for v in (moved, seconds))
    own = (moved, seconds, moved**2, moved * seconds, seconds**2)
    return np.column_stack((*own, moved * other_moved, moved * other_s, seconds * other_moved, seconds * other_s))


def statistics(found: PairValues) -> dict[str, Floats]:
    """The four statistics of the family [R] out of a walk.

    ks_macro = mean_o sup_t |F_a - F_b| (the paper's); ks_sup_mean = sup_t |mean_o (F_a - F_b)|;
    log_rmst_ratio = mean_o log(RMST_a / RMST_b); uph = mean_o of the difference in items per robot-hour.
    The last two keep their sign; they are NaN where undefined.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = log_ratios(found)
        hourly = [3600.0 * s[:, :, 0] / s[:, :, 1] for s in (found.sum_a, found.sum_b)]
        return {
            "ks_macro": found.sup.mean(axis=1),
            "ks_sup_mean": found.sup_mean,
            "log_rmst_ratio": ratios.mean(axis=1),
            "uph": (hourly[0] - hourly[1]).mean(axis=1),
        }


def log_ratios(found: PairValues) -> Floats:
    """log(RMST_a / RMST_b) of every object [R, objects]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(found.rmst_a / found.rmst_b)


def as_it_was(pair: Pair) -> PairValues:
    """The walk of the two arms with their own labels; one replicate."""
    labels = pair.is_a[None, :].astype(float)
    return pair_values(pair.walk, Given(labels, 1.0 - labels), range(1), pair.request)


def observed_statistics(pair: Pair) -> dict[str, float]:
    """The four statistics of the pair as it was."""
    return {name: float(v[0]) for name, v in statistics(as_it_was(pair)).items()}


def pooled_draw(pair: Pair, seed: int) -> Draw:
    """The paper's resampling under the null: each arm drawn anew from both arms' episodes of the object."""
    one, other = (stream_key(seed, "pool", pair.a, pair.b, side) for side in "ab")
    return Pool(one, other, pair.of_a, pair.of_b)


def bootstrap_p(pair: Pair, seed: int, boot: int) -> float:
    """The paper's p for ks_macro: both arms redrawn from the pooled episodes of each object; share at or above.

    It over-rejects (.059-.074 at a nominal .05, facts §4.1); `permutation.py` has the default test.
    """
    found = observed_statistics(pair)["ks_macro"]
    drawn = pair_values(pair.walk, pooled_draw(pair, seed), range(boot), pair.request)
    return float((statistics(drawn)["ks_macro"] >= found * (1 - TIE) - TINY).mean())


def _groups(blocks: Sequence[str]) -> list[Ints]:
    names, inverse = np.unique(np.array(blocks), return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.cumsum(np.bincount(inverse, minlength=len(names)))[:-1])
