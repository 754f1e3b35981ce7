"""One cell's row of the result: counts, RMST and its sensitivity lines, completion, rates and the curve.

Compares nothing: whatever needs two arms lives in `compare.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import (
    NEVER_NS,
    Floats,
    Ints,
    curve,
    quantile_ns,
    rmst,
    rmst_with_error,
    weighted_rmst,
)
from labctl.analysis.survival.hrt import Estimate
from labctl.analysis.survival.incidence import incidence
from labctl.analysis.survival.intervals import Interval
from labctl.analysis.table import CENSORED, GHOST, SUCCESS, UNKNOWN

INTERVENTIONS = ("safety_stop", "intervention", "assist", "e_stop", "estop")
"""Causes that say a person touched the robot or stopped it for safety."""


def cell_row(cell: Cell, found: Estimate, tau_ns: int) -> dict[str, object]:
    """The entry of `cells` for one (arm, object); `found` is its RMST(tau) with intervals."""
    horizon = common_budget(cell.budget_ns) or tau_ns
    grid, surviving = curve(cell.spells, max(tau_ns, horizon, 60_000_000_000))
    done = 1.0 - surviving
    completion = _read(grid, done, horizon)
    shown = grid <= tau_ns
    competing = incidence(cell, tau_ns)
    return {
        "arm": cell.arm,
        "object": cell.object,
        "episodes": cell.episodes,
        "operations": len(cell.kind),
        "successes": int((cell.kind == SUCCESS).sum()),
        "censored": int((cell.kind == CENSORED).sum()),
        "ghosts": int((cell.kind == GHOST).sum()),
        "rmst": found.value,
        "rmst_se": rmst_with_error(cell.spells, tau_ns)[1],
        "rmst_ci": listed(found.interval),
        "rmst_ci_percentile": listed(found.percentile),
        "rmst_wang_chang": wang_chang(cell, tau_ns),
        "rmst_aalen_johansen": None if competing is None else competing.rmst,
        "items_moved": int(cell.moved.sum()),
        "items_staged": None if (cell.staged == UNKNOWN).any() else int(cell.staged.sum()),
        "rmst_first_operation": first_operation(cell, tau_ns),
        "ended_early": cell.ended_early,
        "median": _seconds(quantile_ns(cell.spells)),
        "completion": completion,
        "uph": items_per_hour(cell),
        "uph_paper": items_per_hour_paper(cell),
        "mtbf": _between_failures(grid, surviving, horizon, completion),
        "rate": {"30": _read(grid, done, 30_000_000_000), "60": _read(grid, done, 60_000_000_000)},
        "curve": {
            "t": [0.0, *(grid[shown & (grid > 0)] / 1e9).tolist()],
            "F": [_read(grid, done, 0), *done[shown & (grid > 0)].tolist()],
        },
    }


def common_budget(budget_ns: Ints) -> int | None:
    """The shortest budget stated by every episode, None if any is silent."""
    return None if (budget_ns == UNKNOWN).any() else int(budget_ns.min())


def items_per_hour(cell: Cell) -> float | None:
    """3600 × items moved / seconds from go to end, over all episodes; None if any end is unknown or all are 0."""
    if (cell.end_ns == UNKNOWN).any() or not cell.end_ns.sum():
        return None
    return 3600.0 * int(cell.moved.sum()) / (int(cell.end_ns.sum()) / 1e9)


def items_per_hour_paper(cell: Cell) -> float | None:
    """The paper's 3600 / mean time of successes: it averages successes only, so it flatters. None without any."""
    times = cell.observed.time_ns[cell.kind == SUCCESS]
    return 3600.0 / (float(times.mean()) / 1e9) if times.sum() else None


def intervention_rate(cells: Sequence[Cell], *, named: bool = True) -> float | None:
    """Share of episodes, void ones left out, that a person touched or a stop for safety ended.

    Touches are those of the column `interventions`; where an episode leaves it empty, the causes named have to tell,
    and None where an unfinished row of such an episode names none. named: the table names causes at all.
    """
    touched, count = 0, 0
    for cell in cells:
        said = np.array([cause.lower().replace(" ", "_").replace("-", "_") for cause in cell.cause])
        silent = (cell.interventions == UNKNOWN)[cell.spells.episode]
        if ((cell.kind != SUCCESS) & (said == "") & silent).any() or (silent.any() and not named):
            return None
        by_cause = np.isin(np.arange(cell.episodes), cell.spells.episode[np.isin(said, INTERVENTIONS)])
        touched += int((by_cause | (cell.interventions > 0)).sum())
        count += cell.episodes
    return touched / count


def wang_chang(cell: Cell, tau_ns: int) -> float:
    """RMST by Wang & Chang (1999): complete gaps weigh 1/m within their episode, a tail counts only if alone."""
    complete = np.bincount(cell.spells.episode[cell.kind != CENSORED], minlength=cell.episodes)[cell.spells.episode]
    kept = (cell.kind != CENSORED) | (complete == 0)
    weight = 1.0 / np.maximum(complete, 1)[kept]
    return weighted_rmst(cell.spells.time_ns[kept], cell.spells.event[kept], weight, tau_ns)


def first_operation(cell: Cell, tau_ns: int) -> float:
    """RMST of the first row of every episode: free of the censoring that the episode's own speed induces."""
    first = np.flatnonzero(np.diff(cell.spells.episode, prepend=-1))
    return weighted_rmst(cell.spells.time_ns[first], cell.spells.event[first], np.ones(len(first)), tau_ns)


def listed(interval: Interval | None) -> list[float] | None:
    """An interval as JSON holds it."""
    return None if interval is None else [*interval]


def _read(grid: Ints, values: Floats, time_ns: int) -> float:
    place = int(np.searchsorted(grid, time_ns, side="right")) - 1
    return float(values[place]) if place >= 0 else 0.0


def _seconds(time_ns: int) -> float | str:
    return "inf" if time_ns == NEVER_NS else time_ns / 1e9


def _between_failures(grid: Ints, surviving: Floats, horizon: int, completion: float) -> float | str:
    """MTBF/A = RMST(budget) / (1 - F(budget)); infinite where nothing ever failed."""
    value = float(rmst(surviving[None, :], grid, horizon)[0])
    return "inf" if completion >= 1.0 else value / (1.0 - completion)
