"""The compiled kernel behind the reference's three functions; imported only where the C compiler made it.

May not: compute; it lays out arguments for `kernel.c`, whose structs it mirrors field for field.
"""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.event_order import EventOrder
from labctl.analysis.survival.kernel import (
    Draw,
    Given,
    Moments,
    OrderProbability,
    PairValues,
    Pool,
    Redraw,
    Request,
)
from labctl.analysis.survival.kernel_build import library

library("uint8_t")  # what draws need; made here, so that whoever imports this knows that there is one
GIVEN, REDRAW, POOL, SWAP, MIRROR = range(5)
_whole, _address = ctypes.c_int64, ctypes.c_void_p
Array = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.bool_] | Floats


class _Walk(ctypes.Structure):
    _fields_ = (
        *((name, _whole) for name in ("units", "groups", "steps", "held")),
        *((name, _address) for name in ("unit", "start", "mid", "end", "group", "closes", "width_s", "first_s")),
        *((name, _address) for name in ("worth", "held_unit", "held_from", "held_rows", "rows_from")),
        *((name, _address) for name in ("tail_from", "place")),
    )


class _Draw(ctypes.Structure):
    _fields_ = (
        *((name, _whole) for name in ("mode", "count", "given_rows", "sets")),
        ("first", ctypes.c_uint64),
        *((name, _address) for name in ("keys", "given_a", "given_b", "counts", "members", "sets_from", "chosen")),
    )


class _Call:
    """One call of the library: keeps what it points to alive until the code has run."""

    def __init__(self, walk: EventOrder, draw: Draw, replicates: range) -> None:
        self._kept: list[Array] = []
        self.library = library("uint8_t" if _small(draw) else "double")
        self.walk = _Walk(
            walk.units, walk.groups, len(walk.group), len(walk.held_unit),
            *(self.whole(v) for v in (walk.unit, walk.start, walk.mid, walk.end, walk.group)),
            self.kept(np.ascontiguousarray(walk.closes, dtype=np.bool_)),
            *(self.real(v) for v in (walk.width_s, walk.first_s, walk.worth)),
            self.whole(walk.held_unit), self.whole(walk.held_from), self.real(walk.held_rows),
            self.whole(walk.rows_from), self.whole(_tails(walk)), None,
        )  # fmt: skip
        self.draw = self._drawn(walk, draw, replicates)

    def kept(self, values: Array) -> int:
        """The address of an array that is now kept."""
        self._kept.append(values)
        return values.ctypes.data

    def whole(self, values: ArrayLike) -> int:
        """The address of whole numbers."""
        return self.kept(np.ascontiguousarray(values).astype(np.int64, copy=False))

    def real(self, values: ArrayLike) -> int:
        """The address of doubles."""
        return self.kept(np.ascontiguousarray(values, dtype=np.float64))

    def run(self, name: str, *arguments: int | float | ctypes.c_int64 | ctypes.c_void_p | None) -> None:
        """Call a function of the library. Raises MemoryError where it found no room."""
        if not getattr(self.library, name)(ctypes.byref(self.walk), ctypes.byref(self.draw), *arguments):
            raise MemoryError(f"no memory for the weights of {self.walk.units} units")

    def _drawn(self, walk: EventOrder, draw: Draw, replicates: range) -> _Draw:
        """Mode, keys, weights given, counts, members, where sets begin and how many are chosen, for any draw."""
        count, members, first = len(replicates), np.arange(walk.units), replicates.start
        if isinstance(draw, Given):
            a = draw.a[replicates.start : replicates.stop]
            b = np.ones_like(a) if draw.b is None else draw.b[replicates.start : replicates.stop]
            return _Draw(GIVEN, count, len(a), 0, 0, None, self.real(a), self.real(b), None, None, None, None)
        if isinstance(draw, Pool):
            keys, counts = self.keys(draw.key_a, draw.key_b), self.whole(np.array([draw.a, draw.b]))
            return _Draw(POOL, count, 0, 0, first, keys, None, None, counts, None, None, None)
        if isinstance(draw, Redraw):
            sets = self.whole(members), self.whole(np.cumsum([0, *draw.sizes]))
            return _Draw(REDRAW, count, 0, len(draw.sizes), first, self.keys(*draw.keys), None, None, None, *sets, None)
        mode, sizes = MIRROR if draw.mirrored else SWAP, [len(s) for s in draw.strata]
        sets = self.whole(np.concatenate(draw.strata)), self.whole(np.cumsum([0, *sizes])), self.whole(draw.chosen)
        return _Draw(mode, count, 0, len(sizes), first, self.keys(draw.key), None, None, None, *sets)

    def keys(self, *keys: np.uint64) -> int:
        """The address of the keys of a draw."""
        return self.kept(np.array(keys, dtype=np.uint64))


def moments(walk: EventOrder, draw: Draw, replicates: range) -> Moments:
    """See `kernel.Moments`."""
    count, groups = len(replicates), walk.groups
    rmst, covariance = np.empty((count, groups)), np.empty((count, groups, groups))
    call = _Call(walk, draw, replicates)
    call.walk.place = call.whole(_places(walk))
    order = np.argsort(walk.group, kind="stable")  # group after group, which keeps what one needs in the cache
    order_from = np.searchsorted(walk.group[order], np.arange(groups + 1))
    one, two, met_from = _met(walk)
    steps = (_address(call.whole(v)) for v in (order, order_from, one, two, met_from))
    call.run("singles", *steps, _address(rmst.ctypes.data), _address(covariance.ctypes.data))
    return Moments(rmst, covariance)


def pair_values(walk: EventOrder, draw: Draw, replicates: range, request: Request) -> PairValues:
    """See `kernel.PairValues`."""
    count, groups, reads = len(replicates), walk.groups, len(request.reads)
    brought = request.brought if len(request.brought) else np.zeros((walk.units, 0))
    columns = brought.shape[1]
    sup_mean, out = np.zeros(count), np.empty((count, groups, 4 + 2 * reads + 2 * columns))
    call = _Call(walk, draw, replicates)
    stops, sums = _address(call.whole(np.array(request.reads, dtype=np.int64))), _address(call.real(brought))
    sizes = (_whole(request.compared), _whole(reads), stops, _whole(columns), sums)
    call.run("pairs", *sizes, _address(sup_mean.ctypes.data), _address(out.ctypes.data))
    parts = np.split(out[:, :, 4:], np.cumsum([reads, reads, columns]), axis=2)
    return PairValues(sup_mean, *(out[:, :, i] for i in range(4)), *parts)


def order_probability(walk: EventOrder, draw: Draw, replicates: range) -> OrderProbability:
    """See `kernel.OrderProbability`."""
    value, variance = np.empty(len(replicates)), np.empty(len(replicates))
    call = _Call(walk, draw, replicates)
    call.run("order_probabilities", _address(value.ctypes.data), _address(variance.ctypes.data))
    return OrderProbability(value, variance)


def _small(draw: Draw) -> bool:
    """Whether all weights are whole numbers up to 255, as all drawn ones are: those need an eighth of the room and are
    as exact. (No more than as many are drawn as there are, so that one is drawn 256 times in less than 1 of 256!.)
    """
    given = [] if not isinstance(draw, Given) else [draw.a, *(() if draw.b is None else (draw.b,))]
    return all(np.array_equal(weights, np.rint(weights).clip(0, 255)) for weights in given)


def _holdings(walk: EventOrder) -> list[tuple[Ints, int, tuple[int, int]]]:
    """Of every group the units it holds, where they begin in `held_unit`, and its range of rows."""
    held, rows = walk.held_from.tolist(), walk.rows_from.tolist()
    ends = itertools.pairwise(held)
    return [(walk.held_unit[a:b], a, of) for (a, b), of in zip(ends, itertools.pairwise(rows), strict=True)]


def _places(walk: EventOrder) -> Ints:
    """Where in `held_unit` the unit of every row stands [rows]."""
    at, found = np.zeros(walk.units, dtype=np.int64), np.empty(len(walk.unit), dtype=np.int64)
    for held, first, (a, b) in _holdings(walk):
        at[held] = np.arange(first, first + len(held))
        found[a:b] = at[walk.unit[a:b]]
    return found


def _met(walk: EventOrder) -> tuple[Ints, Ints, Ints]:
    """Places of the units that two groups hold, in either, pair after pair of groups, and where each pair's begin."""
    held, found = _holdings(walk), [np.zeros((2, 0), dtype=np.int64)]
    for g, (mine, start, _) in enumerate(held):
        for theirs, other, _ in held[: g + 1]:
            _, one, two = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
            found.append(np.array([one + start, two + other]))
    one, two = np.concatenate(found, axis=1)
    return one, two, np.cumsum([0, *(pair.shape[1] for pair in found[1:])])


def _tails(walk: EventOrder) -> Ints:
    """Where the rows begin that leave after the last step of their group."""
    last = [walk.end[walk.group == g].max(initial=walk.rows_from[g]) for g in range(walk.groups)]
    return np.array(last, dtype=np.int64)
