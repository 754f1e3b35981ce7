"""P(T_arm < T_reference), the area under the P–P plot, with its tie rule and interval; P–P and Q–Q plots as arrays.

May not: draw, or rank arms by it. It ignores by how much an arm is slower, and can order arms against their HRT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import blocks_of, by_block, connected
from labctl.analysis.survival.curves import Floats, Ints, curve
from labctl.analysis.survival.event_order import EventOrder, event_order
from labctl.analysis.survival.hrt import Estimate
from labctl.analysis.survival.intervals import bootstrap_t, logit, t_interval, widest
from labctl.analysis.survival.kernel import Given, Redraw, order_probability
from labctl.analysis.survival.resample import stream_key
from labctl.analysis.table import NS


def auc(arm: Sequence[Cell], reference: Sequence[Cell], tau_ns: int, seed: int, boot: int) -> Estimate:
    """Macro mean over objects of P(T_arm < T_reference) up to tau; cells of one object at the same place.

    Equal times count one half, and so do two times that are both beyond tau or infinite: nobody was first. The interval
    has the outer ends of bootstrap-t on the logit scale with the clustered jackknife se and of logit-t: with few blocks
    either alone is too narrow (docs/statistics-calibration.md). Where both sides ran in a block
    blocks are drawn whole, each with all its objects: standard errors leave that out alike in the data and in every
    replicate, so that it cancels in the studentised interval.
    """
    value, variance, values, variances, df = 0.0, 0.0, np.zeros(boot), np.zeros(boot), [0, 0]
    drawn_by = _blocks_drawn(arm, reference)
    for mine, theirs in zip(arm, reference, strict=True):
        walk, draw, held = _pooled_draw(mine, theirs, tau_ns, seed, *drawn_by[mine.object])
        found = order_probability(walk, Given(np.ones((1, walk.units))), range(1))
        drawn = order_probability(walk, draw, range(boot))
        value, variance = value + float(found.value[0]), variance + float(found.variance[0])
        values, variances = values + drawn.value, variances + drawn.variance
        df = [d + h - 1 for d, h in zip(df, held, strict=True)]
    n = len(arm)
    value, se, values, ses = value / n, math.sqrt(variance) / n, values / n, np.sqrt(variances) / n
    twin = t_interval(value, se, min(df), logit())
    studentised = bootstrap_t(value, se, values, ses, logit()) if twin else None
    return Estimate(value, se, widest(studentised, twin), twin)


def _pooled_draw(
    mine: Cell, theirs: Cell, tau_ns: int, seed: int, names: Sequence[str], of: str
) -> tuple[EventOrder, Redraw, tuple[int, int]]:
    """Both cells as groups 0 and 1 of one event order, with the units that are drawn and how many each holds.

    names, of: what `_blocks_drawn` says of the object.
    """
    if len(names) > 1:
        draw = Redraw((stream_key(seed, "race blocks", mine.arm, theirs.arm, of),), (len(names),))
        held = len(blocks_of(mine)), len(blocks_of(theirs))
        return event_order(by_block((mine, theirs), names), tau_ns, shared=True), draw, held
    keys = [stream_key(seed, "boot", c.arm, c.object) for c in (mine, theirs)]
    draw = Redraw((keys[0], keys[1]), (mine.episodes, theirs.episodes))
    return event_order([mine.durations, theirs.durations], tau_ns), draw, (mine.episodes, theirs.episodes)


def _blocks_drawn(arm: Sequence[Cell], reference: Sequence[Cell]) -> dict[str, tuple[list[str], str]]:
    """By object, the blocks of all objects that are drawn with it, and what these are: "" for all objects there are.

    Objects are drawn together where they share a block, directly or through others; none where no block has both sides.
    """
    own = {
        ("", mine.object): blocks_of(mine) | blocks_of(theirs) if blocks_of(mine) & blocks_of(theirs) else set()
        for mine, theirs in zip(arm, reference, strict=True)
    }
    found: dict[str, tuple[list[str], str]] = {}
    for group in connected(own):
        objects = [obj for _, obj in group]
        of = "" if 1 < len(objects) == len(own) else "\x1f".join(objects)
        found |= dict.fromkeys(objects, (sorted(set[str]().union(*(own[key] for key in group))), of))
    return found


@dataclass(frozen=True)
class PPPlot(Result):
    """(F_reference(t), F_arm(t)) at the times `t` [k] in s; `area` = P(T_arm < T_reference) up to tau, ties one half.

    `gap` is the largest vertical distance to the diagonal, taken at `gap_t`; it equals the KS distance.
    """

    t: Floats
    reference: Floats
    arm: Floats
    area: float
    gap: float
    gap_t: float


@dataclass(frozen=True)
class QQPlot(Result):
    """Times in s by which both sides have done the shares `q` [k]; below the diagonal the arm is slower.

    `last` is the largest share that the slower side ever reaches up to tau: the open circle, where failures begin.
    """

    q: Floats
    reference_t: Floats
    arm_t: Floats
    last: float


def pp_plot(arm: Cell, reference: Cell, tau_ns: int) -> PPPlot:
    """One object's P–P plot up to tau, from (0, 0) on."""
    grid, f_arm, f_reference = _both(arm, reference, tau_ns)
    gaps = np.abs(f_arm - f_reference)
    most = int(np.argmax(gaps))
    walk = event_order([arm.durations, reference.durations], tau_ns)
    area = float(order_probability(walk, Given(np.ones((1, walk.units))), range(1)).value[0])
    return PPPlot(grid / NS, f_reference, f_arm, area, float(gaps[most]), float(grid[most] / NS))


def qq_plot(arm: Cell, reference: Cell, tau_ns: int) -> QQPlot:
    """One object's Q–Q plot: every share that either curve reaches and both attain up to tau."""
    grid, f_arm, f_reference = _both(arm, reference, tau_ns)
    last = float(min(f_arm[-1], f_reference[-1]))
    shares = np.unique(np.concatenate((f_arm, f_reference)))
    q = shares[(shares > 0) & (shares <= last + 1e-12)]
    times = [grid[np.searchsorted(f, q - 1e-12, side="left")] / NS for f in (f_reference, f_arm)]
    return QQPlot(q, times[0], times[1], last)


def _both(arm: Cell, reference: Cell, tau_ns: int) -> tuple[Ints, Floats, Floats]:
    curves = [curve(c.durations, tau_ns) for c in (arm, reference)]
    grid = np.unique(np.concatenate(([0], *(times for times, _ in curves))))
    read = [1.0 - np.append(1.0, surviving)[np.searchsorted(times, grid, side="right")] for times, surviving in curves]
    return grid, read[0], read[1]
