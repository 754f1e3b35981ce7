"""One kernel: weights of episodes in, Kaplan–Meier statistics out, for any number of replicates.

`kernel_reference.py` is plain numpy and defines what is meant; `compiled/` (C, made by this machine's compiler) walks
16 replicates at once and agrees to 1e-12. Both take the random numbers of `resample.py`. May not: handle arms, tables
or tests, nor look for a compiler before the first replicate is needed.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import TypeVar

import numpy as np

from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.event_order import EventOrder

LANES = 16
"""Replicates that walk together; a range of replicates is cut at multiples of it."""
WORTH_A_THREAD = 4096


@dataclass(frozen=True)
class Given:
    """Weights as they are: [R, units], and of the second arm where a pair walks."""

    a: Floats
    b: Floats | None = None


@dataclass(frozen=True)
class Redraw:
    """Sets of consecutive units, each drawn anew with replacement, as many as it has; a second arm keeps weights 1."""

    keys: tuple[np.uint64, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Pool:
    """Both arms drawn anew from the units of each group: `a[g]` and `b[g]` draws with replacement."""

    key_a: np.uint64
    key_b: np.uint64
    a: Ints
    b: Ints


@dataclass(frozen=True)
class Swap:
    """`chosen[i]` members of `strata[i]` become the first arm, the others the second.

    `mirrored`: strata hold the first half of the units; each of the second half weighs what its twin lacks to 1.
    """

    key: np.uint64
    strata: tuple[Ints, ...]
    chosen: tuple[int, ...]
    mirrored: bool = False


Draw = Given | Redraw | Pool | Swap


@dataclass(frozen=True)
class Moments:
    """RMST(tau) in seconds [R, groups] and its clustered infinitesimal-jackknife covariance [R, groups, groups].

    Groups on units of their own have covariance zero. A group none of whose units was drawn has NaN.
    """

    rmst: Floats
    covariance: Floats


@dataclass(frozen=True)
class PairValues:
    """What one walk of two arms over common objects gives per replicate; F is a success curve, a and b the arms.

    `sup_mean` [R] = sup_t |mean_o (F_a - F_b)|; `sup` [R, objects] = sup_t |F_a - F_b|, both over the compared steps;
    `area` [R, objects] = ∫_0^tau |F_a - F_b| dt in seconds; `rmst_a`, `rmst_b` [R, objects]; `read_a`, `read_b`
    [R, objects, times] the curves F at the times requested; `sum_a`, `sum_b` [R, objects, columns] weighted sums of
    what every episode brings along.
    """

    sup_mean: Floats
    sup: Floats
    area: Floats
    rmst_a: Floats
    rmst_b: Floats
    read_a: Floats
    read_b: Floats
    sum_a: Floats
    sum_b: Floats


@dataclass(frozen=True)
class OrderProbability:
    """P(T_0 < T_1) up to tau of two groups [R], equal times counting one half, and its clustered jackknife variance.

    So do two times that are both beyond tau or infinite (two ghosts): nobody was first. NaN where a group has no unit.
    """

    value: Floats
    variance: Floats


T = TypeVar("T")
Values = TypeVar("Values", Moments, PairValues, OrderProbability)


@dataclass(frozen=True)
class Request:
    """What a walk of two arms is to compare and read.

    The first `compared` steps count for suprema; `reads` are numbers of steps (`EventOrder.steps_until`), rising;
    `brought` [units, columns] is summed by weight.
    """

    compared: int
    reads: tuple[int, ...] = ()
    brought: Floats = field(default_factory=lambda: np.zeros((0, 0)))


@functools.cache
def backend() -> ModuleType:
    """The compiled kernel where a C compiler made it, else the reference; loaded, and made, at the first call."""
    try:
        return importlib.import_module("labctl.analysis.survival.kernel_fast")
    except ImportError:
        return importlib.import_module("labctl.analysis.survival.kernel_reference")


def moments(walk: EventOrder, draw: Given | Redraw | Swap, replicates: range, *, threads: int | None = None) -> Moments:
    """RMST and its clustered covariance for every replicate of a draw; `Given` has as many as its weights."""
    return together(spread(lambda part: backend().moments(walk, draw, part), _cut(replicates, threads), threads))


def pair_values(
    walk: EventOrder, draw: Draw, replicates: range, request: Request, *, threads: int | None = None
) -> PairValues:
    """The statistics of two arms for every replicate of a draw; of an event order whose rows count alike."""
    _counted_alike(walk)
    parts = _cut(replicates, threads)
    return together(spread(lambda part: backend().pair_values(walk, draw, part, request), parts, threads))


def order_probability(
    walk: EventOrder, draw: Given | Redraw, replicates: range, *, threads: int | None = None
) -> OrderProbability:
    """How often group 0 is first of the two, for every replicate of a draw; where rows count alike."""
    _counted_alike(walk)
    parts = _cut(replicates, threads)
    return together(spread(lambda part: backend().order_probability(walk, draw, part), parts, threads))


def together(parts: Sequence[Values]) -> Values:
    """The replicates of each part, one after the other; one part or more."""
    arrays = (np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(parts[0]))
    return type(parts[0])(*arrays)


def _counted_alike(walk: EventOrder) -> None:
    if (walk.worth != 1.0).any():
        raise ValueError("rows count unequally (curves.marginal): RMST is made of those, and no other statistic")


def spread(work: Callable[[range], T], parts: Sequence[range], threads: int | None = None) -> list[T]:
    """`work` of every part, in order, on as many threads as requested (default: one per core)."""
    if len(parts) < 2 or (threads := min(len(parts), threads or os.cpu_count() or 1)) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


def _cut(replicates: range, threads: int | None) -> list[range]:
    """One part per thread, cut at whole blocks; a range too short to be worth a thread stays whole."""
    count = threads or (1 if len(replicates) < WORTH_A_THREAD else os.cpu_count() or 1)
    size = -(-len(replicates) // count // LANES) * LANES if count > 1 else len(replicates)
    return [range(s, min(s + size, replicates.stop)) for s in range(replicates.start, replicates.stop, max(size, 1))]
