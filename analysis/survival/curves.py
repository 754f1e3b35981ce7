"""Kaplan–Meier and what is read off it, for one sample of clustered operations.

May not: handle arms or tables, or resample; `kernel.py` computes the same for any number of replicates. Times are whole
nanoseconds, so that near ties (0.1 + 0.2 and 0.3) are ties; an event and a censored row at one instant count as if the
event came first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labctl.analysis.table import NS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEVER_NS = np.iinfo(np.int64).max
"""The time of a ghost: an event that is never reached, at risk for ever."""


@dataclass(frozen=True)
class Durations:
    """Operations of `episodes` episodes: time in ns (`NEVER_NS` for a ghost), event flag, episode 0…episodes-1.

    `worth` [rows] is how much each counts where they do not count alike (`marginal`): whole numbers, so that what is
    left of a risk set is exact.
    """

    time_ns: Ints
    event: NDArray[np.bool_]
    episode: Ints
    episodes: int
    worth: Floats | None = None

    @property
    def weight(self) -> Floats:
        """How much every row counts [rows]."""
        return np.ones(len(self.time_ns)) if self.worth is None else self.worth

    def event_times(self, horizon_ns: int) -> Ints:
        """Sorted distinct finite event times up to the horizon."""
        return distinct(self.time_ns[self.event & (self.time_ns <= horizon_ns) & (self.time_ns < NEVER_NS)])


def distinct(values: Ints) -> Ints:
    """Sorted distinct values; of many times as quick as `numpy.unique`, whose table of hashes waits for memory."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def joined(*parts: Durations) -> Durations:
    """The episodes of each, one after the other."""
    starts = np.cumsum([0, *(p.episodes for p in parts)])
    return Durations(
        np.concatenate([p.time_ns for p in parts]),
        np.concatenate([p.event for p in parts]),
        np.concatenate([p.episode + start for p, start in zip(parts, starts, strict=False)]),
        int(starts[-1]),
        None if all(p.worth is None for p in parts) else np.concatenate([p.weight for p in parts]),
    )


def rmst(surviving: Floats, grid_ns: Ints, tau_ns: int) -> Floats:
    """∫_0^tau S dt in seconds [R], exact for a step function; grid times at or beyond tau add nothing."""
    inside = grid_ns < tau_ns
    width: Floats = np.diff(np.concatenate(([0], grid_ns[inside], [tau_ns]))) / NS
    steps: Floats = surviving[:, inside] * width[1:]
    return steps.sum(axis=1) + width[0]


def curve(durations: Durations, horizon_ns: int) -> tuple[Ints, Floats]:
    """Event times up to the horizon [G] and S just after each [G], every episode once."""
    grid = durations.event_times(horizon_ns)
    at_risk, events = totals(durations.time_ns, durations.event, durations.weight, grid)
    return grid, (1.0 - events / at_risk).cumprod()


def totals(time_ns: Ints, event: NDArray[np.bool_], weight: Floats, grid_ns: Ints) -> tuple[Floats, Floats]:
    """Weight still at risk and weight of events at each grid time, both [G]; needs no memory per episode."""
    order = np.argsort(time_ns, kind="stable")
    ordered, weighed = time_ns[order], weight[order]
    staying = np.append(np.cumsum(weighed[::-1])[::-1], 0.0)
    at_risk = staying[np.searchsorted(ordered, grid_ns, side="left")]
    happening = event[order]
    times, place = ordered[happening], np.searchsorted(grid_ns, ordered[happening])
    hit = np.append(grid_ns, -1)[place] == times
    events = np.bincount(place[hit], weighed[happening][hit], len(grid_ns))
    return at_risk, events.astype(np.float64)


def rmst_influence(durations: Durations, tau_ns: int) -> tuple[float, Floats]:
    """RMST(tau) and its derivative with respect to each episode's weight [episodes]: the infinitesimal jackknife.

    Root of the sum of squares over clusters is the clustered standard error; on R's kidney data 12.1615700482
    (survival 3.5.3, residuals and rowsum).
    """
    grid, surviving = curve(durations, tau_ns)
    width = (np.append(grid[1:], tau_ns) - grid) / NS
    remaining = np.cumsum((surviving * width)[::-1])[::-1]
    return float(rmst(surviving[None, :], grid, tau_ns)[0]), influence(durations, grid, remaining)


def influence(durations: Durations, grid: Ints, remaining: Floats) -> Floats:
    """Derivative, with respect to each episode's weight [episodes], of a number that depends on the curve S.

    `remaining` [G] is its derivative with respect to log S from each of the event times `grid` on. Since
    d log S(t) / dw_i = -sum_{s<=t} (dN_i(s) - Y_i(s) dN(s)/Y(s)) / (Y(s) - dN(s)); where the risk set dies out the
    derivative of the vanishing factor is zero.
    """
    at_risk, events = totals(durations.time_ns, durations.event, durations.weight, grid)
    left = at_risk - events
    pull = np.append(0.0, np.divide(remaining, left, out=np.zeros_like(remaining), where=left > 0))
    drift = np.cumsum(pull * np.append(0.0, events / at_risk))
    place = np.searchsorted(grid, durations.time_ns, side="right")
    happened = durations.event & (place > 0) & (durations.time_ns == np.append(-1, grid)[place])
    by_row = (drift[place] - np.where(happened, pull[place], 0.0)) * durations.weight
    return np.bincount(durations.episode, by_row, durations.episodes).astype(np.float64)


def rmst_with_error(durations: Durations, tau_ns: int) -> tuple[float, float]:
    """RMST(tau) and its episode-clustered infinitesimal-jackknife standard error, in seconds."""
    value, influence = rmst_influence(durations, tau_ns)
    return value, float(np.sqrt((influence**2).sum()))


def quantile_ns(durations: Durations, share: float = 0.5) -> int:
    """The first time by which `share` of operations are done, `NEVER_NS` if that never happens.

    R's midpoint rule, where S stays at exactly 1 - share for a while, is not used: it takes the left end.
    """
    grid, surviving = curve(durations, NEVER_NS)
    reached = np.flatnonzero(surviving <= 1.0 - share + 1e-12)
    return int(grid[reached[0]]) if len(reached) else NEVER_NS


KAPLAN_MEIER, WANG_CHANG = "kaplan_meier", "wang_chang"
ESTIMATORS = (KAPLAN_MEIER, WANG_CHANG)
"""What RMSTs are made of: every operation counts once, or every episode does."""
WHOLE = math.lcm(*range(1, 21))
"""What an episode counts: 1/m of it is a whole number up to twenty operations, and next to one (5e-8) beyond."""


def marginal(durations: Durations) -> Durations:
    """The rows of Wang & Chang's estimator, those of an episode counting `WHOLE` together; episodes keep their numbers.

    A budget ends a slow episode after few operations and a quick one after many, so that operations thrown together
    are mostly of quick episodes and what is left of the budget censors the slow ones first. Here an episode counts
    once: each of its m operations that ended counts 1/m, and the one that the end cut short only where it is all there
    is, since given how many ended those are exchangeable and the last is not (M.-C. Wang & S.-H. Chang, J. Amer.
    Statist. Assoc. 94 (1999) 146). Where later operations are harder it is of a mixture of them, and
    `rmst_first_operation` stands beside it.
    """
    ended = np.bincount(durations.episode[durations.event], minlength=durations.episodes)[durations.episode]
    kept = durations.event | (ended == 0)
    rows = np.bincount(durations.episode[kept], minlength=durations.episodes)[durations.episode[kept]]
    worth = np.round(WHOLE / rows)
    return Durations(durations.time_ns[kept], durations.event[kept], durations.episode[kept], durations.episodes, worth)
