"""One cell's row of the result: counts, RMST and its sensitivity lines, completion, rates and the curve.

Compares nothing: whatever needs two arms lives in `compare.py`.
"""

from __future__ import annotations

import numpy as np
from labctl.analysis.cells import Cell
from labctl.analysis.hrt import Interval, Mean, cell_key, percentile, rmst_interval, rmst_replicates
from labctl.analysis.survival import NEVER_NS, Floats, Ints, curve, incidence_rmst, median_ns, rmst, weighted_rmst
from labctl.analysis.table import CENSORED, GHOST, SUCCESS, UNKNOWN


def cell_row(cell: Cell, mean: Mean, tau_ns: int, replicates: Floats) -> dict[str, object]:
    """The entry of `cells` for one (arm, object); `replicates` are the paper's bootstrap RMSTs [boot]."""
    horizon = common_budget(cell.budget_ns) or tau_ns
    grid, surviving = curve(cell.spells, max(tau_ns, horizon, 60_000_000_000))
    done = 1.0 - surviving
    completion = _read(grid, done, horizon)
    shown = grid <= tau_ns
    return {
        "arm": cell.arm,
        "object": cell.object,
        "episodes": cell.episodes,
        "operations": len(cell.kind),
        "successes": int((cell.kind == SUCCESS).sum()),
        "censored": int((cell.kind == CENSORED).sum()),
        "ghosts": int((cell.kind == GHOST).sum()),
        "rmst": mean.rmst,
        "rmst_se": mean.se,
        "rmst_ci": listed(rmst_interval([mean], tau_ns / 1e9)[1]),
        "rmst_ci_percentile": listed(percentile(replicates)),
        "rmst_wang_chang": wang_chang(cell, tau_ns),
        "rmst_aalen_johansen": aalen_johansen(cell, tau_ns),
        "items_moved": int(cell.moved.sum()),
        "items_staged": None if (cell.staged == UNKNOWN).any() else int(cell.staged.sum()),
        "rmst_first_operation": first_operation(cell, tau_ns),
        "ended_early": cell.ended_early,
        "median": _seconds(median_ns(cell.spells)),
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


def cell_replicates(cell: Cell, seed: int, boot: int, tau_ns: int) -> Floats:
    """The paper's RMST replicates of the cell [boot], on tails as observed."""
    return rmst_replicates(cell.observed, cell_key(seed, cell), boot, tau_ns)


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


def wang_chang(cell: Cell, tau_ns: int) -> float:
    """RMST by Wang & Chang (1999): complete gaps weigh 1/m within their episode, a tail counts only if alone."""
    complete = np.bincount(cell.spells.episode[cell.kind != CENSORED], minlength=cell.episodes)[cell.spells.episode]
    kept = (cell.kind != CENSORED) | (complete == 0)
    weight = 1.0 / np.maximum(complete, 1)[kept]
    return weighted_rmst(cell.spells.time_ns[kept], cell.spells.event[kept], weight, tau_ns)


def aalen_johansen(cell: Cell, tau_ns: int) -> float | None:
    """tau - ∫F of success with lost items competing, on durations that restart at a ghost.

    None where a ghost carries no time, or a row is earlier than the ghost before it.
    """
    ghost = cell.kind == GHOST
    if (cell.ghost_ns[ghost] == UNKNOWN).any():
        return None
    time = np.where(ghost, cell.ghost_ns, cell.spells.time_ns)
    since = np.zeros_like(time)
    after_ghost = np.flatnonzero(ghost[:-1] & (cell.spells.episode[1:] == cell.spells.episode[:-1])) + 1
    since[after_ghost] = time[after_ghost - 1]
    if (time < since).any():
        return None
    return incidence_rmst(time - since, cell.kind == SUCCESS, ghost, tau_ns)


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
