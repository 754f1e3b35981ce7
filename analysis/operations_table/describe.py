"""One cell's row of the result: counts, RMST and its alternatives, completion, rates, incidence by cause, curve.

Compares nothing: whatever needs two arms is in `analyze.py`. Aalen–Johansen incidence needs the time at which an item
was lost, and is None where that is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.results import Result, bounds
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import MOST_OF_UNSEEN, unseen
from labctl.analysis.survival.curves import (
    NEVER_NS,
    Durations,
    Floats,
    Ints,
    curve,
    distinct,
    marginal,
    quantile_ns,
    rmst,
    rmst_with_error,
    totals,
)
from labctl.analysis.survival.hrt import Estimate
from labctl.analysis.survival.intervals import RATE, Interval, as_a_mean, t_interval
from labctl.analysis.survival.result import CellResult
from labctl.analysis.table import CENSORED, GHOST, NS, SUCCESS, UNKNOWN

UNNAMED = "lost"


@dataclass(frozen=True)
class Incidence(Result):
    """Cumulative incidence up to tau, step functions from the times `t` [k] in seconds on, as fractions [k].

    `success`, each of `causes` and `still_open` add up to 1 at every time. `rmst` = tau - ∫F_success, in seconds.
    """

    t: Floats
    success: Floats
    causes: Mapping[str, Floats]
    still_open: Floats
    rmst: float


def incidence(cell: Cell, tau_ns: int) -> Incidence | None:
    """Aalen & Johansen (1978) with success and every cause of loss competing, on durations that restart at a loss.

    Unbiased under censoring that does not depend on the operation, where an event at infinity is not: it never leaves
    the risk set and gains weight (facts §4.4b, +4.6 to +18 % RMST). None where a lost item carries no time, or a row
    is earlier than the loss before it.
    """
    ghost = cell.kind == GHOST
    if (cell.ghost_ns[ghost] == UNKNOWN).any():
        return None
    time = np.where(ghost, cell.ghost_ns, cell.durations.time_ns)
    since = np.zeros_like(time)
    after = np.flatnonzero(ghost[:-1] & (cell.durations.episode[1:] == cell.durations.episode[:-1])) + 1
    since[after] = time[after - 1]
    if (time < since).any():
        return None
    time = time - since
    named = np.array([c or UNNAMED for c in cell.cause])
    success = cell.kind == SUCCESS
    grid = distinct(time[(success | ghost) & (time <= tau_ns)])
    once = np.ones(len(time))
    at_risk, ended = totals(time, success | ghost, once, grid)
    before = np.append(1.0, (1.0 - ended / at_risk).cumprod())[: len(grid)]

    def rising(which: np.ndarray) -> Floats:
        return np.cumsum(before * totals(time, which, once, grid)[1] / at_risk)

    done = rising(success)
    causes = {str(name): rising(ghost & (named == name)) for name in sorted(set(named[ghost].tolist()))}
    value = float(rmst(1.0 - done[None, :], grid, tau_ns)[0])
    still_open = np.maximum(1.0 - done - sum(causes.values(), np.zeros(len(grid))), 0.0)
    return Incidence(grid / NS, done, causes, still_open, value)


INTERVENTIONS = ("safety_stop", "intervention", "assist", "e_stop", "estop")
"""Causes by which a person touched the robot or stopped it for safety."""


def cell_row(cell: Cell, found: Estimate, tau_ns: int) -> CellResult:
    """The entry of `cells` for one (arm, object); `found` is its RMST(tau) with intervals."""
    horizon = common_budget(cell.budget_ns) or tau_ns
    grid, surviving = curve(cell.durations, max(tau_ns, horizon, 60 * NS))
    done = 1.0 - surviving
    completion = _read(grid, done, horizon)
    shown = grid <= tau_ns
    competing = incidence(cell, tau_ns)
    alike, alike_se = rmst_with_error(marginal(cell.durations), tau_ns)
    return {
        "arm": cell.arm,
        "object": cell.object,
        "episodes": cell.episodes,
        "operations": len(cell.kind),
        "successes": int((cell.kind == SUCCESS).sum()),
        "censored": int((cell.kind == CENSORED).sum()),
        "ghosts": int((cell.kind == GHOST).sum()),
        "rmst": found.value,
        "rmst_se": rmst_with_error(cell.timed, tau_ns)[1],
        "rmst_ci": bounds(found.interval),
        "rmst_ci_percentile": bounds(found.percentile),
        "rmst_kaplan_meier": rmst_with_error(cell.durations, tau_ns)[0],
        "rmst_wang_chang": alike,
        "rmst_wang_chang_ci": bounds(_alike_interval(alike, alike_se, cell.episodes, tau_ns / NS)),
        "rmst_aalen_johansen": None if competing is None else competing.rmst,
        "items_moved": int(cell.moved.sum()),
        "items_staged": None if (cell.staged == UNKNOWN).any() else int(cell.staged.sum()),
        "rmst_first_operation": first_operation(cell, tau_ns),
        "ended_early": cell.ended_early,
        "median": _seconds(quantile_ns(cell.durations)),
        "completion": completion,
        "uph": items_per_hour(cell),
        "uph_paper": items_per_hour_paper(cell),
        "mtbf": _between_failures(grid, surviving, horizon, completion),
        "rate": {"30": _read(grid, done, 30 * NS), "60": _read(grid, done, 60 * NS)},
        "curve": {
            "t": [0.0, *(grid[shown & (grid > 0)] / NS).tolist()],
            "F": [_read(grid, done, 0), *done[shown & (grid > 0)].tolist()],
        },
    }


def _alike_interval(value: float, se: float, episodes: int, tau_s: float) -> Interval | None:
    """Of a mean of so many episodes without any draw: t on the scale of rates, on half of n - 1 degrees of freedom,
    since the spread of times of which now and then one is ten times the others rests on about half of them; on no more
    than `MOST_OF_UNSEEN` where the slow ones may not have been met.
    """
    df = min((episodes - 1) / 2, MOST_OF_UNSEEN if unseen(value, episodes, tau_s) else math.inf)
    found = t_interval(value, se * as_a_mean(episodes), df, RATE)
    return found and (found[0], min(found[1], tau_s))


def common_budget(budget_ns: Ints) -> int | None:
    """The shortest budget stated by every episode, None if any is silent."""
    return None if (budget_ns == UNKNOWN).any() else int(budget_ns.min())


def items_per_hour(cell: Cell) -> float | None:
    """3600 × items moved / seconds from go to end, of a carried tail to the budget, over all episodes; None if any end
    is unknown or all are 0.
    """
    if (cell.charged_ns == UNKNOWN).any() or not cell.charged_ns.sum():
        return None
    return 3600.0 * int(cell.moved.sum()) / (int(cell.charged_ns.sum()) / NS)


def items_per_hour_paper(cell: Cell) -> float | None:
    """The paper's 3600 / mean time of successes: it averages successes only, so it flatters. None without any."""
    times = cell.observed.time_ns[cell.kind == SUCCESS]
    return 3600.0 / (float(times.mean()) / NS) if times.sum() else None


def intervention_rate(cells: Sequence[Cell], *, named: bool = True) -> float | None:
    """Share of episodes, void ones left out, that a person touched or a stop for safety ended.

    Touches are those of the column `interventions`; where an episode leaves it empty, the causes named decide,
    and None where an unfinished row of such an episode names none. named: the table names causes at all.
    """
    touched, count = 0, 0
    for cell in cells:
        causes = np.array([cause.lower().replace(" ", "_").replace("-", "_") for cause in cell.cause])
        silent = (cell.interventions == UNKNOWN)[cell.durations.episode]
        if ((cell.kind != SUCCESS) & (causes == "") & silent).any() or (silent.any() and not named):
            return None
        by_cause = np.isin(np.arange(cell.episodes), cell.durations.episode[np.isin(causes, INTERVENTIONS)])
        touched += int((by_cause | (cell.interventions > 0)).sum())
        count += cell.episodes
    return touched / count


def seconds_per_item(cells: Sequence[Cell]) -> float | str | None:
    """Seconds as of `items_per_hour` / items moved; "inf" where none was, None where an end is unknown."""
    if any((cell.charged_ns == UNKNOWN).any() for cell in cells):
        return None
    moved = sum(int(cell.moved.sum()) for cell in cells)
    return math.fsum(int(cell.charged_ns.sum()) for cell in cells) / NS / moved if moved else "inf"


def succeeded(cells: Sequence[Cell]) -> int | None:
    """Episodes in which every item staged was moved; None where items staged are unknown."""
    if any((cell.staged == UNKNOWN).any() for cell in cells):
        return None
    return sum(int((cell.moved >= cell.staged).sum()) for cell in cells)


def helped(cells: Sequence[Cell]) -> int | None:
    """Episodes that a person touched while they ran, by the column `interventions`; None where one leaves it empty."""
    touches = np.concatenate([cell.interventions for cell in cells])
    return None if (touches == UNKNOWN).any() else int((touches > 0).sum())


def first_operation(cell: Cell, tau_ns: int) -> float:
    """RMST of the first row of every episode: free of the censoring that the episode's own speed induces."""
    first, rows = np.flatnonzero(np.diff(cell.durations.episode, prepend=-1)), cell.durations
    alone = Durations(rows.time_ns[first], rows.event[first], np.arange(len(first)), len(first))
    return rmst_with_error(alone, tau_ns)[0]


def _read(grid: Ints, values: Floats, time_ns: int) -> float:
    place = int(np.searchsorted(grid, time_ns, side="right")) - 1
    return float(values[place]) if place >= 0 else 0.0


def _seconds(time_ns: int) -> float | str:
    return "inf" if time_ns == NEVER_NS else time_ns / NS


def _between_failures(grid: Ints, surviving: Floats, horizon: int, completion: float) -> float | str:
    """MTBF/A = RMST(budget) / (1 - F(budget)); infinite where nothing ever failed."""
    value = float(rmst(surviving[None, :], grid, horizon)[0])
    return "inf" if completion >= 1.0 else value / (1.0 - completion)
