"""P–P and Q–Q plots of an arm against a reference, as arrays.

May not: draw, or test: the gap to the diagonal is the KS distance, its p-value is `permutation.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Floats, Ints, curve
from labctl.analysis.survival.event_order import route
from labctl.analysis.survival.kernel import Given, precedence
from labctl.analysis.table import NS


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
    walk = route([arm.spells, reference.spells], tau_ns)
    area = float(precedence(walk, Given(np.ones((1, walk.units))), range(1)).value[0])
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
    curves = [curve(c.spells, tau_ns) for c in (arm, reference)]
    grid = np.unique(np.concatenate(([0], *(times for times, _ in curves))))
    read = [1.0 - np.append(1.0, surviving)[np.searchsorted(times, grid, side="right")] for times, surviving in curves]
    return grid, read[0], read[1]
