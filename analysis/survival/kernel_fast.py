"""The compiled kernel behind the reference's three functions; imported only where numba is installed.

May not: compute; it lays out arguments for `kernel_compiled.py`.
"""

from __future__ import annotations

import itertools

import numpy as np
from labctl.analysis.survival import kernel_compiled as loops
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.event_order import EventOrder
from labctl.analysis.survival.kernel import (
    LANES,
    Draw,
    Given,
    Moments,
    OrderProbability,
    PairValues,
    Pool,
    Redraw,
    Request,
)
from numpy.typing import ArrayLike, NDArray

_LANES = np.uint64(LANES)
Unsigned = NDArray[np.uint64]


def moments(walk: EventOrder, draw: Draw, replicates: range) -> Moments:
    """See `kernel.Moments`."""
    count, groups = len(replicates), walk.groups
    rmst, covariance = np.empty((count, groups)), np.empty((count, groups, groups))
    place = np.concatenate([np.searchsorted(held, walk.unit[a:b]) + first for held, first, (a, b) in _holdings(walk)])
    steps = np.argsort(walk.group, kind="stable")  # group after group, which keeps what one needs in the cache
    loops.singles(
        _weights(walk, draw), np.uint64(replicates.start), count, _LANES, np.uint64(walk.units), walk.first_s,
        _u(walk.unit), _u(place), walk.worth, _u(walk.rows_from), _tails(walk),
        *(_u(v[steps]) for v in (walk.start, walk.mid, walk.end, walk.group)), walk.width_s[steps],
        _u(walk.held_unit), walk.held_rows, _u(walk.held_from), *_met(walk),
        _draw(walk, draw, replicates), rmst, covariance,
    )  # fmt: skip
    return Moments(rmst, covariance)


def pair_values(walk: EventOrder, draw: Draw, replicates: range, request: Request) -> PairValues:
    """See `kernel.PairValues`."""
    count, groups, reads = len(replicates), walk.groups, len(request.reads)
    brought = request.brought if len(request.brought) else np.zeros((walk.units, 0))
    columns = brought.shape[1]
    sup_mean, out = np.zeros(count), np.empty((count, groups, 4 + 2 * reads + 2 * columns))
    loops.pairs(
        _weights(walk, draw), np.uint64(replicates.start), count, _LANES, request.compared,
        np.array(request.reads, dtype=np.int64),
        np.ascontiguousarray(brought, dtype=np.float64), walk.first_s, _u(walk.unit),
        *(_u(v) for v in (walk.start, walk.mid, walk.end, walk.group)), walk.closes, walk.width_s,
        _u(walk.held_unit), walk.held_rows, _u(walk.held_from), _draw(walk, draw, replicates), sup_mean, out,
    )  # fmt: skip
    parts = np.split(out[:, :, 4:], np.cumsum([reads, reads, columns]), axis=2)
    return PairValues(sup_mean, *(out[:, :, i] for i in range(4)), *parts)


def order_probability(walk: EventOrder, draw: Draw, replicates: range) -> OrderProbability:
    """See `kernel.OrderProbability`."""
    value, variance = np.empty(len(replicates)), np.empty(len(replicates))
    loops.order_probabilities(
        _weights(walk, draw), np.uint64(replicates.start), len(replicates), _LANES, np.uint64(walk.units),
        _u(walk.unit), _u(walk.rows_from), _tails(walk),
        *(_u(v) for v in (walk.start, walk.mid, walk.end, walk.group)), walk.closes,
        _u(walk.held_unit), walk.held_rows, _u(walk.held_from), _draw(walk, draw, replicates), value, variance,
    )  # fmt: skip
    return OrderProbability(value, variance)


def _weights(walk: EventOrder, draw: Draw) -> NDArray[np.float32] | Floats:
    """Room for the weights of both arms; whole numbers, as all drawn ones are, need half of it and are as exact."""
    given = [] if not isinstance(draw, Given) else [draw.a, *(() if draw.b is None else (draw.b,))]
    whole = all(np.array_equal(weights, np.rint(weights)) for weights in given)
    room = 2 * LANES * walk.units
    if whole:
        return np.empty(room, np.float32)
    return np.empty(room, np.float64)


def _holdings(walk: EventOrder) -> list[tuple[Ints, int, tuple[int, int]]]:
    """Of every group the units it holds, where they begin in `held_unit`, and its range of rows."""
    held, rows = walk.held_from.tolist(), walk.rows_from.tolist()
    ends = itertools.pairwise(held)
    return [(walk.held_unit[a:b], a, of) for (a, b), of in zip(ends, itertools.pairwise(rows), strict=True)]


def _met(walk: EventOrder) -> tuple[Unsigned, Unsigned]:
    """Places of the units that two groups hold, pair after pair of groups, and where each pair's begin."""
    held, found = _holdings(walk), [np.zeros((2, 0), dtype=np.int64)]
    for g, (mine, start, _) in enumerate(held):
        for theirs, other, _ in held[: g + 1]:
            _, one, two = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
            found.append(np.array([one + start, two + other]))
    return _u(np.concatenate(found, axis=1)), _u(np.cumsum([0, *(pair.shape[1] for pair in found[1:])]))


def _tails(walk: EventOrder) -> Unsigned:
    """Where the rows begin that leave after the last step of their group."""
    last = [walk.end[walk.group == g].max(initial=walk.rows_from[g]) for g in range(walk.groups)]
    return np.array(last, dtype=np.uint64)


def _draw(walk: EventOrder, draw: Draw, replicates: range) -> tuple[int | Unsigned | Floats, ...]:
    """Mode, keys, weights given, counts, members, where strata begin and how many are chosen, for any draw."""
    a = b = np.zeros((0, 0))
    mode, keys, counts = loops.GIVEN, [np.uint64(0)], np.zeros((2, 0))
    members, strata_from, chosen = np.arange(walk.units), np.zeros(1), np.zeros(0)
    if isinstance(draw, Given):
        a = draw.a[replicates.start : replicates.stop]
        b = np.ones_like(a) if draw.b is None else draw.b[replicates.start : replicates.stop]
    elif isinstance(draw, Redraw):
        mode, keys, strata_from = loops.REDRAW, list(draw.keys), np.cumsum([0, *draw.sizes])
    elif isinstance(draw, Pool):
        mode, keys, counts = loops.POOL, [draw.key_a, draw.key_b], np.array([draw.a, draw.b])
    else:
        mode = loops.MIRROR if draw.mirrored else loops.SWAP
        keys, chosen = [draw.key], np.array(draw.chosen)
        members, strata_from = np.concatenate(draw.strata), np.cumsum([0, *(len(s) for s in draw.strata)])
    given_a, given_b = (np.ascontiguousarray(v, dtype=np.float64) for v in (a, b))
    sets = (_u(counts), _u(members), _u(strata_from), _u(chosen))
    return mode, np.array(keys, dtype=np.uint64), given_a, given_b, *sets


def _u(values: ArrayLike) -> Unsigned:
    return np.ascontiguousarray(values).astype(np.uint64)
