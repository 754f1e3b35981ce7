"""The kernel's loops, compiled by numba: 16 replicates abreast in the inner, contiguous dimension, one forward walk.

May not: be imported before a replicate is needed (`kernel.backend` sees to it), or decide anything: what is
computed is written plainly in `kernel_reference.py`. All of it stands in one file, since numba's cache on disk only
notices changes of the file a function stands in. Arrays are flat and offsets unsigned constants times 16, so that
the compiler can prove that no two lanes overlap and uses vector instructions; the trip count `n` is passed in
because a constant one would be unrolled into single lanes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba
import numpy as np
from labctl.analysis.survival.kernel import LANES
from labctl.analysis.survival.resample import DRAW_BITS, GOLDEN, MIX_1, MIX_2

U = np.uint64
L, TWO = U(LANES), U(2 * LANES)
ONE, BITS, HALF = U(1), U(DRAW_BITS), U(32)
_GOLDEN, _M1, _M2, _S1, _S2, _S3 = U(GOLDEN), U(MIX_1), U(MIX_2), U(30), U(27), U(31)
# What a lane holds per group while two arms walk: at risk, events, S, gap, sums; each at its own multiple of LANES.
AT_A, AT_B, EV_A, EV_B, S_A, S_B, GAP, JUMP, AREA, SUP, RMST_A, RMST_B = (U(i * LANES) for i in range(12))
PAIR = U(12 * LANES)
# What it holds while one arm walks; PULL = 1 / left and LEAD = area / left are the two halves of the jackknife's pull.
AT, EV, S, SUM, RISE, RISE_LEAD, PULL, LEAD = (U(i * LANES) for i in range(8))
SINGLE = U(8 * LANES)
# Two arms raced: each as above, and in an array of its own what both share.
HAZARD = S
NOW, WAS, OWN, STEP, TOTAL = U(0), TWO, U(4 * LANES), U(6 * LANES), U(7 * LANES)
GIVEN, REDRAW, POOL, SWAP, MIRROR = range(5)
T = TypeVar("T")


def compiled(function: Callable[..., T]) -> Callable[..., T]:
    """Compile at the first call, without the interpreter lock; keep the code on disk where a folder can be written."""
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba finds no folder for its cache
        return numba.njit(nogil=True, error_model="numpy")(function)


@compiled
def _word(key, replicate, draw) -> np.uint64:
    z = key + ((replicate << BITS) + draw + ONE) * _GOLDEN
    z = (z ^ (z >> _S1)) * _M1
    z = (z ^ (z >> _S2)) * _M2
    return z ^ (z >> _S3)


@compiled
def _redraw(w, column, key, replicate, lane, units, draws, first_draw) -> None:
    """Add the draws of one replicate, with replacement, to lane `lane` of column `column`."""
    bound = U(len(units))
    for j in range(U(0), draws):
        pick = ((_word(key, replicate, first_draw + j) >> HALF) * bound) >> HALF
        w[units[pick] * TWO + column + lane] += 1.0


@compiled
def _swap(w, key, replicate, lane, members, strata_from, chosen, pool) -> None:
    """Mark the chosen members of every stratum as the first arm (column 0)."""
    for i in range(len(chosen)):
        start, size = strata_from[i], strata_from[i + 1] - strata_from[i]
        for j in range(U(0), size):
            pool[j] = members[start + j]
        for j in range(U(0), chosen[i]):
            pick = j + (((_word(key, replicate, start + j) >> HALF) * (size - j)) >> HALF)
            w[pool[pick] * TWO + lane] = 1.0
            pool[pick] = pool[j]


@compiled
def _fill(w, pool, block, first, held_unit, held_from, draw) -> None:
    """Weights of both arms for the 16 replicates from `first`; `block` numbers them in what was given."""
    mode, keys, given_a, given_b, counts, members, strata_from, chosen = draw
    units = U(len(w)) // TWO
    w[:] = 0.0
    for lane in range(U(0), L):
        replicate = first + lane
        if mode == GIVEN:
            row = block * LANES + np.int64(lane)
            if row < given_a.shape[0]:
                for u in range(U(0), units):
                    w[u * TWO + lane] = given_a[row, u]
                    w[u * TWO + L + lane] = given_b[row, u]
        elif mode == REDRAW:
            for i in range(len(keys)):
                own = members[strata_from[i] : strata_from[i + 1]]
                _redraw(w, U(0), keys[i], replicate, lane, own, U(len(own)), U(0))
        elif mode == POOL:
            for side in range(2):
                drawn = U(0)
                for g in range(counts.shape[1]):
                    held = held_unit[held_from[g] : held_from[g + 1]]
                    _redraw(w, U(side) * L, keys[side], replicate, lane, held, counts[side, g], drawn)
                    drawn += counts[side, g]
        else:
            _swap(w, keys[0], replicate, lane, members, strata_from, chosen, pool)
    half = units // U(2)
    for u in range(half, units if mode == MIRROR else U(0)):
        for i in range(u * TWO, u * TWO + L):
            w[i] = 1.0 - w[i - half * TWO]
    for u in range(U(0), units if mode in (SWAP, MIRROR, REDRAW) else U(0)):
        for i in range(u * TWO, u * TWO + L):
            w[i + L] = 1.0 if mode == REDRAW else 1.0 - w[i]


@compiled
def _walk_pair(x, m, w, step_from, step_to, compared, unit, start, mid, end, group, closes, width, n) -> None:
    """Carry both arms over some steps; `m` holds the sum of gaps over objects and its largest value so far."""
    for s in range(step_from, step_to):
        g = group[s] * PAIR
        for r in range(start[s], mid[s]):
            v = unit[r] * TWO
            for i in range(U(0), n):
                x[g + AT_A + i] -= w[v + i]
                x[g + AT_B + i] -= w[v + L + i]
        v = unit[mid[s]] * TWO
        for i in range(U(0), n):
            x[g + EV_A + i] = w[v + i]
            x[g + EV_B + i] = w[v + L + i]
        for r in range(mid[s] + ONE, end[s]):
            v = unit[r] * TWO
            for i in range(U(0), n):
                x[g + EV_A + i] += w[v + i]
                x[g + EV_B + i] += w[v + L + i]
        wide, counted = width[s], 1.0 if s < compared else 0.0
        for i in range(U(0), n):
            at_a, at_b, ev_a, ev_b = x[g + AT_A + i], x[g + AT_B + i], x[g + EV_A + i], x[g + EV_B + i]
            s_a = x[g + S_A + i] * (1.0 - ev_a / (at_a if at_a > 0.0 else 1.0))
            s_b = x[g + S_B + i] * (1.0 - ev_b / (at_b if at_b > 0.0 else 1.0))
            x[g + S_A + i] = s_a
            x[g + S_B + i] = s_b
            x[g + AT_A + i] = at_a - ev_a
            x[g + AT_B + i] = at_b - ev_b
            gap = s_b - s_a
            x[g + JUMP + i] = gap - x[g + GAP + i]
            x[g + GAP + i] = gap
            size = abs(gap)
            sup = x[g + SUP + i]
            x[g + SUP + i] = size * counted if size * counted > sup else sup
            x[g + AREA + i] += size * wide
            x[g + RMST_A + i] += s_a * wide
            x[g + RMST_B + i] += s_b * wide
        for i in range(U(0), n):
            m[i] += x[g + JUMP + i]
        if closes[s] and s < compared:
            for i in range(U(0), n):
                size = abs(m[i])
                m[L + i] = size if size > m[L + i] else m[L + i]


@compiled
def pairs(
    w, first, count, n, compared, stops, brought, first_s, unit, start, mid, end, group, closes, width,
    held_unit, held_rows, held_from, draw, sup_mean, out,
) -> None:  # fmt: skip
    """Every block of 16 replicates from `first`; `out` [count, groups, 4 + 2 × stops + 2 × brought]."""
    groups, columns = len(first_s), brought.shape[1]
    units = brought.shape[0]
    x, m, pool = np.empty(groups * 12 * LANES), np.empty(2 * LANES), np.empty(units, np.uint64)
    for block in range((count + LANES - 1) // LANES):
        replicate, here = first + U(block * LANES), min(LANES, count - block * LANES)
        _fill(w, pool, block, replicate, held_unit, held_from, draw)
        x[:] = 0.0
        m[:] = 0.0
        for g in range(groups):
            base = U(g) * PAIR
            for i in range(U(0), n):
                x[base + S_A + i] = 1.0
                x[base + S_B + i] = 1.0
                x[base + RMST_A + i] = first_s[g]
                x[base + RMST_B + i] = first_s[g]
            for h in range(held_from[g], held_from[g + 1]):
                v, rows = held_unit[h] * TWO, held_rows[h]
                for i in range(U(0), n):
                    x[base + AT_A + i] += rows * w[v + i]
                    x[base + AT_B + i] += rows * w[v + L + i]
        done = np.int64(0)
        for k in range(len(stops) + 1):
            stop = stops[k] if k < len(stops) else len(group)
            _walk_pair(x, m, w, done, stop, compared, unit, start, mid, end, group, closes, width, n)
            done = stop
            if k < len(stops):
                for g in range(groups):
                    for i in range(here):
                        out[block * LANES + i, g, 4 + k] = 1.0 - x[U(g) * PAIR + S_A + U(i)]
                        out[block * LANES + i, g, 4 + len(stops) + k] = 1.0 - x[U(g) * PAIR + S_B + U(i)]
        for i in range(here):
            sup_mean[block * LANES + i] = m[L + U(i)] / groups
            for g in range(groups):
                base = U(g) * PAIR + U(i)
                to = out[block * LANES + i, g]
                to[0], to[1], to[2], to[3] = x[base + SUP], x[base + AREA], x[base + RMST_A], x[base + RMST_B]
                for c in range(columns):
                    a, b = 0.0, 0.0
                    for h in range(held_from[g], held_from[g + 1]):
                        v = held_unit[h]
                        a += w[v * TWO + U(i)] * brought[v, c]
                        b += w[v * TWO + L + U(i)] * brought[v, c]
                    to[4 + 2 * len(stops) + c] = a
                    to[4 + 2 * len(stops) + columns + c] = b


@compiled
def _walk_single(x, rise, lead, w, unit, place, worth, start, mid, end, group, width, n) -> None:
    """Carry every group over all steps, summing RMST and, per unit, the two halves of its influence."""
    for s in range(len(group)):
        g = group[s] * SINGLE
        for i in range(U(0), n):
            x[g + EV + i] = 0.0
        for r in range(start[s], mid[s]):
            v, p, rows = unit[r] * TWO, place[r] * L, worth[r]
            for i in range(U(0), n):
                x[g + AT + i] -= rows * w[v + i]
                rise[p + i] += rows * x[g + RISE + i]
                lead[p + i] += rows * x[g + RISE_LEAD + i]
        for r in range(mid[s], end[s]):
            v, rows = unit[r] * TWO, worth[r]
            for i in range(U(0), n):
                x[g + EV + i] += rows * w[v + i]
        wide = width[s]
        for i in range(U(0), n):
            at, ev = x[g + AT + i], x[g + EV + i]
            hazard = ev / (at if at > 0.0 else 1.0)
            left = at - ev
            pull = (1.0 if left > 0.0 else 0.0) / (left if left > 0.0 else 1.0)
            area = x[g + SUM + i]
            x[g + PULL + i] = pull
            x[g + LEAD + i] = pull * area
            x[g + RISE + i] += pull * hazard
            x[g + RISE_LEAD + i] += pull * area * hazard
            surviving = x[g + S + i] * (1.0 - hazard)
            x[g + S + i] = surviving
            x[g + AT + i] = left
            x[g + SUM + i] = area + surviving * wide
        for r in range(mid[s], end[s]):
            p, rows = place[r] * L, worth[r]
            for i in range(U(0), n):
                rise[p + i] += rows * (x[g + RISE + i] - x[g + PULL + i])
                lead[p + i] += rows * (x[g + RISE_LEAD + i] - x[g + LEAD + i])


@compiled
def singles(
    w, first, count, n, units, first_s, unit, place, worth, rows_from, tail_from, start, mid, end, group, width,
    held_unit, held_rows, held_from, met, met_from, draw, rmst, covariance,
) -> None:  # fmt: skip
    """Every block of 16 replicates from `first`; influences are finished once the whole area is known.

    `place` [rows] is where a row's unit stands among `held_unit`; `met` [2, m] lists places of one unit in two groups,
    `met_from` where those of each pair of groups begin, (0, 0), (1, 0), (1, 1), (2, 0), …
    """
    groups = len(first_s)
    x = np.empty(groups * 8 * LANES)
    rise, lead = np.empty(len(held_unit) * LANES), np.empty(len(held_unit) * LANES)
    pool = np.empty(units, np.uint64)
    for block in range((count + LANES - 1) // LANES):
        replicate, here = first + U(block * LANES), min(LANES, count - block * LANES)
        _fill(w, pool, block, replicate, held_unit, held_from, draw)
        x[:] = 0.0
        rise[:] = 0.0
        lead[:] = 0.0
        for g in range(groups):
            base = U(g) * SINGLE
            for h in range(held_from[g], held_from[g + 1]):
                v, rows = held_unit[h] * TWO, held_rows[h]
                for i in range(U(0), n):
                    x[base + AT + i] += rows * w[v + i]
            for i in range(U(0), n):
                x[base + S + i] = 1.0
                x[base + SUM + i] = first_s[g] if x[base + AT + i] > 0.0 else np.nan
        _walk_single(x, rise, lead, w, unit, place, worth, start, mid, end, group, width, n)
        for g in range(groups):
            base = U(g) * SINGLE
            for r in range(tail_from[g], rows_from[g + 1]):
                p, rows = place[r] * L, worth[r]
                for i in range(U(0), n):
                    rise[p + i] += rows * x[base + RISE + i]
                    lead[p + i] += rows * x[base + RISE_LEAD + i]
            for h in range(held_from[g], held_from[g + 1]):
                p = h * L
                for i in range(U(0), n):
                    rise[p + i] = x[base + SUM + i] * rise[p + i] - lead[p + i]
        for i in range(here):
            row = block * LANES + i
            for g in range(groups):
                rmst[row, g] = x[U(g) * SINGLE + SUM + U(i)]
                for k in range(g + 1):
                    pair, total = g * (g + 1) // 2 + k, 0.0
                    for h in range(met_from[pair], met_from[pair + 1]):
                        one, two = met[0, h], met[1, h]
                        total += w[held_unit[one] * TWO + U(i)] * rise[one * L + U(i)] * rise[two * L + U(i)]
                    covariance[row, g, k] = total
                    covariance[row, k, g] = total


@compiled
def _walk_order(x, m, rise, lead, w, unit, start, mid, end, group, closes, n) -> None:
    """Carry two groups over all steps, summing P(T_0 < T_1) and, per unit, the halves of its influence.

    Steps of both groups at one time are taken together (the first closes nothing), so that equal times count half.
    `m` holds both curves now and before the time, what either's influence hangs on, and the sum so far.
    """
    s = 0
    while s < len(group):
        last = s if closes[s] else s + 1
        for i in range(U(0), n):
            m[WAS + i] = m[NOW + i]
            m[WAS + L + i] = m[NOW + L + i]
        for k in range(s, last + 1):
            g, side = group[k] * SINGLE, group[k] * L
            for r in range(start[k], mid[k]):
                v, p = unit[r] * TWO, unit[r] * L
                for i in range(U(0), n):
                    x[g + AT + i] -= w[v + i]
                    rise[p + i] += x[g + RISE + i]
                    lead[p + i] += x[g + RISE_LEAD + i]
            v = unit[mid[k]] * TWO
            for i in range(U(0), n):
                x[g + EV + i] = w[v + i]
            for r in range(mid[k] + ONE, end[k]):
                v = unit[r] * TWO
                for i in range(U(0), n):
                    x[g + EV + i] += w[v + i]
            for i in range(U(0), n):
                at, ev = x[g + AT + i], x[g + EV + i]
                left = at - ev
                hazard = ev / (at if at > 0.0 else 1.0)
                pull = (1.0 if left > 0.0 else 0.0) / (left if left > 0.0 else 1.0)
                x[g + HAZARD + i] = hazard
                x[g + PULL + i] = pull
                x[g + RISE + i] += pull * hazard
                x[g + AT + i] = left
            for i in range(U(0), n):
                m[NOW + side + i] *= 1.0 - x[g + HAZARD + i]
        for i in range(U(0), n):
            step = m[WAS + i] - m[NOW + i]
            middle = (m[WAS + L + i] + m[NOW + L + i]) / 2.0
            total = m[TOTAL + i] + step * middle
            m[TOTAL + i] = total
            m[OWN + i] = total + m[NOW + i] * middle
            m[OWN + L + i] = total - step * m[NOW + L + i] / 2.0
        for k in range(s, last + 1):
            g, side = group[k] * SINGLE, group[k] * L
            for i in range(U(0), n):
                pulled = x[g + PULL + i] * m[OWN + side + i]
                x[g + LEAD + i] = pulled
                x[g + RISE_LEAD + i] += pulled * x[g + HAZARD + i]
            for r in range(mid[k], end[k]):
                p = unit[r] * L
                for i in range(U(0), n):
                    rise[p + i] += x[g + RISE + i] - x[g + PULL + i]
                    lead[p + i] += x[g + RISE_LEAD + i] - x[g + LEAD + i]
        s = last + 1


@compiled
def order_probabilities(
    w, first, count, n, units, unit, rows_from, tail_from, start, mid, end, group, closes,
    held_unit, held_rows, held_from, draw, value, variance,
) -> None:  # fmt: skip
    """Every block of 16 replicates from `first`: P(T_0 < T_1) and its clustered jackknife variance."""
    x, m = np.empty(16 * LANES), np.empty(8 * LANES)
    rise, lead, pool = np.empty(units * L), np.empty(units * L), np.empty(1, np.uint64)
    for block in range((count + LANES - 1) // LANES):
        _fill(w, pool, block, first + U(block * LANES), held_unit, held_from, draw)
        x[:] = 0.0
        m[:] = 0.0
        rise[:] = 0.0
        lead[:] = 0.0
        for g in range(2):
            base, side = U(g) * SINGLE, U(g) * L
            for h in range(held_from[g], held_from[g + 1]):
                v, rows = held_unit[h] * TWO, held_rows[h]
                for i in range(U(0), n):
                    x[base + AT + i] += rows * w[v + i]
            for i in range(U(0), n):
                m[NOW + side + i] = 1.0
                m[TOTAL + i] += 0.0 if x[base + AT + i] > 0.0 else np.nan
        _walk_order(x, m, rise, lead, w, unit, start, mid, end, group, closes, n)
        for g in range(2):
            base = U(g) * SINGLE
            for r in range(tail_from[g], rows_from[g + 1]):
                p = unit[r] * L
                for i in range(U(0), n):
                    rise[p + i] += x[base + RISE + i]
                    lead[p + i] += x[base + RISE_LEAD + i]
        for i in range(U(0), U(min(LANES, count - block * LANES))):
            total = m[TOTAL + i] + m[NOW + i] * m[NOW + L + i] / 2.0
            spread = 0.0
            for u in range(U(0), units):
                influence = total * rise[u * L + i] - lead[u * L + i]
                spread += w[u * TWO + i] * influence * influence
            value[U(block * LANES) + i] = total
            variance[U(block * LANES) + i] = spread
