"""The Kaplan–Meier kernel: operations sorted once, then any number of replicates as vectors of episode weights.

Knows neither arms nor tables; a compiled block version may stand beside `survival` and must agree to 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEVER_NS = np.iinfo(np.int64).max
"""The time of a ghost: an event that is never reached, at risk for ever."""
HALF = 0.5 + 1e-12
"""S at or below this counts as one half reached: products such as 3/4 × 2/3 miss .5 by a rounding."""


@dataclass(frozen=True)
class Spells:
    """Operations of `episodes` episodes: time in ns (`NEVER_NS` for a ghost), event flag, episode 0…episodes-1."""

    time_ns: Ints
    event: NDArray[np.bool_]
    episode: Ints
    episodes: int

    def event_times(self, horizon_ns: int) -> Ints:
        """Sorted distinct finite event times up to the horizon."""
        return np.unique(self.time_ns[self.event & (self.time_ns <= horizon_ns) & (self.time_ns < NEVER_NS)])


@dataclass(frozen=True)
class Walk:
    """Per episode, what a walk over `grid_ns` [G] meets: operations still at risk and events, both [episodes, G]."""

    grid_ns: Ints
    at_risk: Floats
    events: Floats


def walk(spells: Spells, grid_ns: Ints) -> Walk:
    """Counts on a grid that holds every event time up to its end; ties are one grid point, censored at t still at risk.

    Curves are therefore known only after the last row of a tied time, as a supremum over t needs.
    """
    size = len(grid_ns)
    last = np.searchsorted(grid_ns, spells.time_ns, side="right") - 1
    leaving = np.zeros((spells.episodes, size + 1))
    np.add.at(leaving, (spells.episode, last + 1), 1.0)
    at_risk = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1][:, 1:]
    events = np.zeros((spells.episodes, size))
    if size:
        hit = spells.event & (last >= 0)
        hit &= grid_ns[np.maximum(last, 0)] == spells.time_ns
        np.add.at(events, (spells.episode[hit], last[hit]), 1.0)
    return Walk(grid_ns, at_risk, events)


def survival(steps: Walk, weights: Floats) -> Floats:
    """S just after each grid time [R, G] for episode multiplicities `weights` [R, episodes].

    Sums of whole numbers are exact in float64, so the result does not depend on the number of threads.
    Beyond the last observation S is carried flat (facts: none of the libraries drops it to zero).
    """
    at_risk = weights @ steps.at_risk
    events = weights @ steps.events
    hazard = np.divide(events, at_risk, out=np.zeros_like(at_risk), where=at_risk > 0)
    return np.cumprod(1.0 - hazard, axis=1)


def rmst(surviving: Floats, grid_ns: Ints, tau_ns: int) -> Floats:
    """∫_0^tau S dt in seconds [R], exact for a step function; grid times at or beyond tau add nothing."""
    inside = grid_ns < tau_ns
    width: Floats = np.diff(np.concatenate(([0], grid_ns[inside], [tau_ns]))) / 1e9
    steps: Floats = surviving[:, inside] * width[1:]
    return steps.sum(axis=1) + width[0]


def at(values: Floats, grid_ns: Ints, time_ns: int, before: float) -> Floats:
    """The right-continuous curve `values` [R, G] read at one time [R]; `before` is its value before the grid."""
    place = int(np.searchsorted(grid_ns, time_ns, side="right")) - 1
    return values[:, place] if place >= 0 else np.full(len(values), before)


def curve(spells: Spells, horizon_ns: int) -> tuple[Ints, Floats]:
    """Event times up to the horizon [G] and S just after each [G], every episode once."""
    grid = spells.event_times(horizon_ns)
    return grid, survival(walk(spells, grid), np.ones((1, spells.episodes)))[0]


def rmst_influence(spells: Spells, tau_ns: int) -> tuple[float, Floats]:
    """RMST(tau) and its derivative with respect to each episode's weight [episodes]: the infinitesimal jackknife.

    d log S(t) / dw_i = -sum_{s<=t} (dN_i(s) - Y_i(s) dN(s)/Y(s)) / (Y(s) - dN(s)); where the risk set dies out the
    derivative of the vanishing factor is zero. Root of the sum of squares over clusters is the clustered standard
    error; on R's kidney data 12.1615700482 (survival 3.5.3, residuals and rowsum).
    """
    grid = spells.event_times(tau_ns)
    steps = walk(spells, grid)
    ones = np.ones((1, spells.episodes))
    surviving = survival(steps, ones)
    at_risk, events = steps.at_risk.sum(axis=0), steps.events.sum(axis=0)
    inside = np.minimum(np.append(grid[1:], tau_ns), tau_ns) - grid
    remaining = np.cumsum((surviving[0] * inside / 1e9)[::-1])[::-1]
    left = at_risk - events
    pull = np.divide(remaining, left, out=np.zeros_like(remaining), where=left > 0)
    share = np.divide(events, at_risk, out=np.zeros_like(remaining), where=at_risk > 0)
    influence = -((steps.events - steps.at_risk * share) * pull).sum(axis=1)
    return float(rmst(surviving, grid, tau_ns)[0]), influence


def rmst_with_error(spells: Spells, tau_ns: int) -> tuple[float, float]:
    """RMST(tau) and its episode-clustered infinitesimal-jackknife standard error, in seconds."""
    value, influence = rmst_influence(spells, tau_ns)
    return value, float(np.sqrt((influence**2).sum()))


def median_ns(spells: Spells) -> int:
    """The first time at which S is one half or less, `NEVER_NS` if that never happens (R's midpoint rule not used)."""
    grid, surviving = curve(spells, NEVER_NS)
    reached = np.flatnonzero(surviving <= HALF)
    return int(grid[reached[0]]) if len(reached) else NEVER_NS


def weighted_rmst(time_ns: Ints, event: NDArray[np.bool_], weight: Floats, tau_ns: int) -> float:
    """RMST(tau) in seconds of single observations that each count `weight`."""
    return float(rmst(*_weighted(time_ns, event, weight, tau_ns), tau_ns)[0])


def incidence_rmst(time_ns: Ints, kind_success: NDArray[np.bool_], other: NDArray[np.bool_], tau_ns: int) -> float:
    """tau - ∫_0^tau F(t) dt in seconds, F the Aalen–Johansen incidence of success with `other` events competing."""
    grid = np.unique(time_ns[(kind_success | other) & (time_ns <= tau_ns)])
    spells = Spells(time_ns, kind_success | other, np.arange(len(time_ns)), len(time_ns))
    steps = walk(spells, grid)
    surviving = survival(steps, np.ones((1, len(time_ns))))[0]
    successes = walk(Spells(time_ns, kind_success, spells.episode, spells.episodes), grid).events.sum(axis=0)
    before = np.concatenate(([1.0], surviving[:-1])) if len(grid) else surviving
    incidence = np.cumsum(before * successes / steps.at_risk.sum(axis=0))
    return float(rmst(1.0 - incidence[None, :], grid, tau_ns)[0])


def _weighted(time_ns: Ints, event: NDArray[np.bool_], weight: Floats, tau_ns: int) -> tuple[Floats, Ints]:
    spells = Spells(time_ns, event, np.arange(len(time_ns)), len(time_ns))
    grid = spells.event_times(tau_ns)
    return survival(walk(spells, grid), weight[None, :]), grid
