"""The kernel in plain numpy: what every statistic means, and what runs where there is no C compiler.

May not: be clever. Rows lie in order of time, so a curve is two cumulative sums and a cumulative product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    together,
)
from labctl.analysis.survival.resample import multiplicities, random_swaps

AT_ONCE = 1_000_000
"""Replicates × rows walked at once: some 50 MB of temporaries."""


@dataclass(frozen=True)
class _Curve:
    """One group under weights [R, units]: its weight [R]; left after each step of it, hazard and S [R, steps]."""

    steps: Ints
    weight: Floats
    left: Floats
    hazard: Floats
    surviving: Floats


def moments(walk: EventOrder, draw: Draw, replicates: range) -> Moments:
    """RMST(tau) and its infinitesimal-jackknife covariance (see `kernel.Moments`)."""
    return together([_moments(walk, weights_of(walk, draw, part)[0]) for part in _chunks(walk, replicates)])


def pair_values(walk: EventOrder, draw: Draw, replicates: range, request: Request) -> PairValues:
    """The statistics of two arms (see `kernel.PairValues`)."""
    return together([_pair(walk, *weights_of(walk, draw, part), request) for part in _chunks(walk, replicates)])


def weights_of(walk: EventOrder, draw: Draw, part: range) -> tuple[Floats, Floats]:
    """The weights of both arms [len(part), units]."""
    if isinstance(draw, Given):
        a = draw.a[part.start : part.stop]
        return a, np.ones_like(a) if draw.b is None else draw.b[part.start : part.stop]
    if isinstance(draw, Redraw):
        a = np.concatenate([multiplicities(k, part, n, n) for k, n in zip(draw.keys, draw.sizes, strict=True)], axis=1)
        return a, np.ones_like(a)
    if isinstance(draw, Pool):
        return _pooled(walk, part, draw.key_a, draw.a), _pooled(walk, part, draw.key_b, draw.b)
    own = walk.units // 2 if draw.mirrored else walk.units
    a = random_swaps(draw.key, part, draw.strata, draw.chosen, own).astype(np.float64)
    a = np.concatenate((a, 1.0 - a), axis=1) if draw.mirrored else a
    return a, 1.0 - a


def _pooled(walk: EventOrder, part: range, key: np.uint64, draws: Ints) -> Floats:
    out, first = np.zeros((len(part), walk.units)), 0
    for g in range(walk.groups):
        held = walk.held_unit[walk.held_from[g] : walk.held_from[g + 1]]
        out[:, held] = multiplicities(key, part, len(held), int(draws[g]), first_draw=first)
        first += int(draws[g])
    return out


def _chunks(walk: EventOrder, replicates: range) -> list[range]:
    size = max(1, AT_ONCE // max(len(walk.unit), 1))
    starts = range(replicates.start, replicates.stop, size)
    return [range(s, min(s + size, replicates.stop)) for s in starts]


def _curve(walk: EventOrder, group: int, weights: Floats) -> _Curve:
    first, last = walk.rows_from[group], walk.rows_from[group + 1]
    steps = np.flatnonzero(walk.group == group)
    gone = np.zeros((len(weights), last - first + 1))
    np.cumsum(weights[:, walk.unit[first:last]] * walk.worth[first:last], axis=1, out=gone[:, 1:])
    at_risk = gone[:, -1:] - gone[:, walk.mid[steps] - first]
    events = gone[:, walk.end[steps] - first] - gone[:, walk.mid[steps] - first]
    hazard = events / np.where(at_risk > 0, at_risk, 1.0)
    surviving = np.asarray(np.cumprod(1.0 - hazard, axis=1), np.float64)
    return _Curve(steps, gone[:, -1], at_risk - events, hazard, surviving)


def _area(walk: EventOrder, group: int, curve: _Curve) -> Floats:
    """∫S dt from 0 to each step of a group and, last, to tau, in seconds [R, steps + 1]."""
    first = np.full((len(curve.surviving), 1), walk.first_s[group])
    return np.cumsum(np.concatenate((first, curve.surviving * walk.width_s[curve.steps]), axis=1), axis=1)


def _moments(walk: EventOrder, weights: Floats) -> Moments:
    rmst = np.empty((len(weights), walk.groups))
    influence = np.zeros((walk.groups, len(weights), walk.units))
    for g in range(walk.groups):
        curve = _curve(walk, g, weights)
        area = np.where(curve.weight[:, None] > 0, _area(walk, g, curve), np.nan)
        rmst[:, g] = area[:, -1]
        influence[g] = _influence(walk, g, curve, area[:, -1:] - area[:, :-1])
    return Moments(rmst, np.einsum("gru,ru,hru->rgh", influence, weights, influence))


def _influence(walk: EventOrder, group: int, curve: _Curve, remaining: Floats) -> Floats:
    """Derivative with respect to every unit's weight [R, units] of a number that depends on the curve S of a group.

    `remaining` [R, steps] is its derivative with respect to log S from each step on (all later values move along).
    d log S(t) / dw_i = -sum_{s<=t} (dN_i(s) - Y_i(s) dN(s)/Y(s)) / (Y(s) - dN(s)), so a row gains, at every step it
    is at risk at, `remaining` × hazard / left, and loses `remaining` / left at its own event. Where the risk set dies
    out the derivative of the vanishing factor is zero.
    """
    start = np.zeros((len(remaining), 1))
    pull = np.concatenate((start, remaining / np.where(curve.left > 0, curve.left, np.inf)), axis=1)
    drift = np.concatenate((start, np.cumsum(pull[:, 1:] * curve.hazard, axis=1)), axis=1)
    first, last = walk.rows_from[group], walk.rows_from[group + 1]
    rows = np.arange(first, last)
    passed = np.searchsorted(walk.mid[curve.steps], rows, side="right")  # steps at or before a row's time
    happened = rows < np.append(0, walk.end[curve.steps])[passed]
    by_row = (drift[:, passed] - np.where(happened, pull[:, passed], 0.0)) * walk.worth[first:last]
    unit = walk.unit[first:last]
    order = np.argsort(unit, kind="stable")
    held, at = np.unique(unit[order], return_index=True)
    influence = np.zeros((len(remaining), walk.units))
    influence[:, held] = np.add.reduceat(by_row[:, order], at, axis=1)
    return influence


def order_probability(walk: EventOrder, draw: Draw, replicates: range) -> OrderProbability:
    """P(T_0 < T_1) of groups 0 and 1 (see `kernel.OrderProbability`)."""
    return together([_order_probability(walk, weights_of(walk, draw, part)[0]) for part in _chunks(walk, replicates)])


def _order_probability(walk: EventOrder, weights: Floats) -> OrderProbability:
    """sum over times of dF_0 × (S_1(t-) + S_1(t)) / 2, and half of what both never reach."""
    sides = [_curve(walk, g, weights) for g in (0, 1)]
    times, place = np.unique(walk.time_ns, return_inverse=True)
    start = np.ones((len(weights), 1))
    s0, s1 = (_filled(c, place, len(times)) for c in sides)
    step = -np.diff(s0, axis=1, prepend=start)
    middle = (np.concatenate((start, s1[:, :-1]), axis=1) + s1) / 2 if len(times) else s1
    nobody = np.where((sides[0].weight > 0) & (sides[1].weight > 0), 0.0, np.nan)
    done = nobody[:, None] + np.cumsum(step * middle, axis=1)
    ends = [s[:, -1] if len(times) else start[:, 0] for s in (s0, s1)]
    value = (done[:, -1] if len(times) else nobody) + ends[0] * ends[1] / 2
    remaining = (value[:, None] - done - s0 * middle, value[:, None] - done + step * s1 / 2)
    influence = sum(_influence(walk, g, sides[g], remaining[g][:, place[sides[g].steps]]) for g in (0, 1))
    return OrderProbability(value, (weights * influence**2).sum(axis=1))


def _filled(curve: _Curve, place: Ints, times: int) -> Floats:
    """S of one group at all times [R, times], carried on where only the other group has a step."""
    here = np.searchsorted(place[curve.steps], np.arange(times), side="right")
    return np.concatenate((np.ones((len(curve.surviving), 1)), curve.surviving), axis=1)[:, here]


def _pair(walk: EventOrder, wa: Floats, wb: Floats, request: Request) -> PairValues:
    replicates, objects = len(wa), walk.groups
    compared = np.arange(len(walk.group)) < request.compared
    jumps = np.zeros((replicates, len(walk.group)))
    sup, area, rmst_a, rmst_b = (np.zeros((replicates, objects)) for _ in range(4))
    read_a, read_b = (np.zeros((replicates, objects, len(request.reads))) for _ in range(2))
    columns = request.brought.shape[1]
    sum_a, sum_b = (np.zeros((replicates, objects, columns)) for _ in range(2))
    for o in range(objects):
        of_a, of_b = _curve(walk, o, wa), _curve(walk, o, wb)
        gap, width = of_b.surviving - of_a.surviving, walk.width_s[of_a.steps]
        jumps[:, of_a.steps] = np.diff(gap, axis=1, prepend=0.0)
        sup[:, o] = np.abs(gap[:, compared[of_a.steps]]).max(axis=1, initial=0.0)
        area[:, o] = np.cumsum(np.abs(gap) * width, axis=1)[:, -1] if len(width) else 0.0
        for rmst, read, curve in ((rmst_a, read_a, of_a), (rmst_b, read_b, of_b)):
            rmst[:, o] = _area(walk, o, curve)[:, -1]
            padded = np.concatenate((np.ones((replicates, 1)), curve.surviving), axis=1)
            read[:, o] = 1.0 - padded[:, np.searchsorted(curve.steps, np.array(request.reads, dtype=int))]
        if columns:
            held = walk.held_unit[walk.held_from[o] : walk.held_from[o + 1]]
            sum_a[:, o] = (wa[:, held, None] * request.brought[held]).sum(axis=1)
            sum_b[:, o] = (wb[:, held, None] * request.brought[held]).sum(axis=1)
    path = np.cumsum(jumps, axis=1)[:, compared & walk.closes] / objects
    sup_mean = np.abs(path).max(axis=1, initial=0.0)
    return PairValues(sup_mean, sup, area, rmst_a, rmst_b, read_a, read_b, sum_a, sum_b)
