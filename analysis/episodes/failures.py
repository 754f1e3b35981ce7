"""How arms fail: shares by cause, and throughput against time between failures as the time allowed is swept.

May not: explain why a cause occurred; causes are the table's own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.operations_table.describe import common_budget
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Floats, curve, rmst
from labctl.analysis.table import CENSORED, GHOST, NS, SUCCESS, WRONG_END

STEP_S, LEAST_S, MOST_S = 15.0, 30.0, 240.0
"""The paper's sweep of the time allowed for an operation."""
FEWEST = 8
"""Points of a sweep where the budget leaves no room for the paper's."""
TIMED_OUT, LOST = "timed out", "lost"


@dataclass(frozen=True)
class FailureModes(Result):
    """Operations of an arm by what became of them: counts, and shares of all operations, by cause.

    `episodes_with` is the share of episodes in which a cause occurred at least once.
    """

    operations: int
    successes: int
    counts: Mapping[str, int]
    shares: Mapping[str, float]
    episodes_with: Mapping[str, float]


@dataclass(frozen=True)
class Sweep(Result):
    """Throughput against time between failures on one object, as operations are allowed `tau` [k] seconds.

    `charged` = 3600 F(tau) / RMST(tau), items per hour where whatever was not done within tau, a loss among it, costs
    the whole of tau, and an end for futility or by an interlock is carried to the budget as in every RMST of labctl.
    `uph` is the paper's 3600 / mean time of the successes within tau: what failed costs nothing, so
    an arm that loses items looks quick; NaN where nothing succeeded. `mtbf` = RMST(tau) / (1 - F(tau)) in seconds,
    infinite where nothing failed.
    """

    tau: Floats
    charged: Floats
    uph: Floats
    mtbf: Floats


def failure_modes(cells: Sequence[Cell]) -> FailureModes:
    """Decompose an arm's operations over its cells; a cause that is not named is "timed out" or "lost". What was open
    when a device ended an episode by mistake did not fail.
    """
    counts: dict[str, int] = {}
    touched: dict[str, int] = {}
    for c in cells:
        unnamed = np.where(c.kind == GHOST, LOST, np.where(c.kind == CENSORED, TIMED_OUT, ""))
        causes = np.array([cause or default for cause, default in zip(c.cause, unnamed, strict=True)])
        failed = (c.kind != SUCCESS) & (causes != WRONG_END)
        for cause in sorted(set(causes[failed].tolist())):
            here = failed & (causes == cause)
            counts[cause] = counts.get(cause, 0) + int(here.sum())
            touched[cause] = touched.get(cause, 0) + len(np.unique(c.durations.episode[here]))
    operations, episodes = sum(len(c.kind) for c in cells), sum(c.episodes for c in cells)
    order = sorted(counts, key=lambda cause: (-counts[cause], cause))
    return FailureModes(
        operations,
        sum(int((c.kind == SUCCESS).sum()) for c in cells),
        {cause: counts[cause] for cause in order},
        {cause: counts[cause] / operations for cause in order},
        {cause: touched[cause] / episodes for cause in order},
    )


def allowed(budget_s: float) -> list[float]:
    """Times in s at which a sweep is read, none beyond the budget: the paper's 30, 45 … 240 s, then the budget where
    it is shorter; eighths of a budget below 60 s."""
    if budget_s < 2 * LEAST_S:
        return [budget_s * (i + 1) / FEWEST for i in range(FEWEST)]
    most = min(budget_s, MOST_S)
    steps = [LEAST_S + STEP_S * i for i in range(int((most - LEAST_S) / STEP_S) + 1)]
    return steps if steps[-1] == most else [*steps, most]


def sweep(cell: Cell, tau_ns: int, taus_s: Sequence[float] | None = None) -> Sweep:
    """One arm's trajectory in the plane of throughput and reliability on one object, to its budget (tau if unknown)."""
    at = allowed((common_budget(cell.budget_ns) or tau_ns) / NS) if taus_s is None else list(taus_s)
    charged, uph, mtbf = (np.empty(len(at)) for _ in range(3))
    times = cell.observed.time_ns[cell.kind == SUCCESS]
    for j, tau in enumerate(at):
        limit = round(tau * NS)
        within = times[times < limit]
        uph[j] = 3600.0 * NS / within.mean() if within.sum() else np.nan
        grid, surviving = curve(cell.durations, limit)
        left = float(surviving[-1]) if len(grid) else 1.0
        area = float(rmst(surviving[None, :], grid, limit)[0])
        charged[j] = 3600.0 * (1.0 - left) / area if area else np.nan
        mtbf[j] = area / left if left > 1e-12 else np.inf
    return Sweep(np.array(at, dtype=float), charged, uph, mtbf)
