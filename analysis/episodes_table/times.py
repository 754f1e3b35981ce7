"""Time to success, by the estimators and the kernel of the operations table: one operation an episode.

May not: take an early end for an observed time: without success an episode is censored at its full budget; or leave
out a failure: an arm that has one with neither time nor budget has no RMST.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labctl.analysis import table as operations
from labctl.analysis.episodes_table.cohort import Cohort, Plan
from labctl.analysis.episodes_table.result import SuccessCurve
from labctl.analysis.numerals import counted
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.clusters import clusters, rmst_replicates
from labctl.analysis.survival.curves import Durations, curve
from labctl.analysis.survival.hrt import hrt, rmst
from labctl.analysis.survival.intervals import Interval
from labctl.analysis.table import NS
from labctl.errors import TableError

ALL = "all"
UNTIMED = 0.2
"""Share of an arm's successes beyond which it has no RMST where so many have no time."""


@dataclass(frozen=True)
class Time:
    """RMST in s, HRT as a fraction, and the share done by each time, of one arm; None where the table cannot say."""

    rmst: float | None = None
    rmst_interval: Interval | None = None
    hrt: float | None = None
    hrt_interval: Interval | None = None
    curve: SuccessCurve | None = None


@dataclass(frozen=True)
class Times:
    """What is known of each arm, up to `tau_s`; None for a table without times."""

    by_arm: dict[str, Time]
    tau_s: float | None
    warnings: tuple[str, ...] = ()

    def of(self, arm: str) -> Time:
        """One arm's."""
        return self.by_arm.get(arm, Time())


def times_of(cohort: Cohort, plan: Plan) -> Times:
    """RMST(tau) and HRT of every arm, intervals by whole units (`survival/hrt.py`).

    Raises `TableError` for a tau that cannot be.
    """
    table = cohort.table
    time, success, budget = (table.number[name] for name in ("time_s", "success", "budget_s"))
    timed = (success == 1) & np.isfinite(time)
    timed |= (success == 0) & (np.isfinite(budget) | np.isfinite(time))
    if not (np.isfinite(time) & np.isfinite(success)).any():
        return Times({}, None)
    lacks, warnings = _without_time(cohort, timed)
    timed &= ~np.isin(table.arm, list(lacks))
    if not timed.any():
        return Times({}, None, warnings)
    until = np.where(success == 1, time, np.where(np.isfinite(budget), budget, time))
    tau = _horizon(plan.tau_s, budget[timed], until[timed], table.where)
    rows = [
        {
            "episode": str(i), "arm": table.arms[table.arm[i]], "object": ALL, "time_s": float(until[i]),
            "kind": "success" if success[i] == 1 else "censored", "block": str(cohort.unit[table.block[i]]),
        }
        for i in np.flatnonzero(timed)
    ]  # fmt: skip
    cells = cells_of(operations.table_from_rows(rows, source=table.where))
    found = rmst_replicates(clusters(cells, round(tau * NS), plan.seed), plan.boot)
    by_arm: dict[str, Time] = {}
    reference = (plan.reference, ALL) if plan.reference else None
    for key in cells:
        own = rmst(found, [key], found.values, tau)
        ratio = None
        if reference in cells and key != reference:
            ratio = hrt(found, [reference], [key], found.values)
        by_arm[key[0]] = Time(
            own.value,
            own.interval,
            1.0 if key == reference else None if ratio is None else ratio.value,
            None if ratio is None else ratio.interval,
            _done(cells[key].durations, round(tau * NS)),
        )
    unknown = int((timed & (success == 0) & ~np.isfinite(budget)).sum())
    if unknown:
        text = f"{counted(unknown, 'episode')} without success and without budget_s, censored where they ended"
        warnings = (*warnings, f"{text}; if they were ended early, RMST flatters their arms")
    short = int((timed & (success == 0) & (until < tau)).sum())
    if short and not unknown:
        text = f"{counted(short, 'episode')} had a budget below tau ({tau:g} s)"
        warnings = (*warnings, f"{text}; arms with unequal budgets compare badly")
    return Times(by_arm, tau, warnings)


def _without_time(cohort: Cohort, timed: np.ndarray) -> tuple[set[int], tuple[str, ...]]:
    """The places of arms that have no RMST, as it would be of those episodes that happen to be timed, and what is said
    of episodes that are in none.
    """
    table = cohort.table
    success = table.number["success"]
    lacks: set[int] = set()
    found: list[str] = []
    for at, arm in enumerate(table.arms):
        own = table.arm == at
        failed, done = (int((own & ~timed & (success == one)).sum()) for one in (0, 1))
        all_done = int((own & (success == 1)).sum())
        if failed:
            text = (
                f"{arm} has no RMST: {counted(failed, 'episode')} without success and with neither budget_s nor time_s"
            )
            found.append(f"{text}; the others would flatter it")
            lacks.add(at)
        elif done > UNTIMED * all_done:
            found.append(f"{arm} has no RMST: {done} of its {all_done} successes have no time (time_s)")
            lacks.add(at)
        elif done:
            way = "slower than it is" if (own & (success == 0)).any() else "slower or faster than it is"
            text = f"{counted(done, 'episode')} without a time (time_s) and in no RMST, in which {arm} succeeded"
            found.append(f"{text}; without them it can look {way}")
    return lacks, tuple(found)


def _done(durations: Durations, tau_ns: int) -> SuccessCurve:
    grid, surviving = curve(durations, tau_ns)
    shown = (grid > 0) & (grid <= tau_ns)
    at_once = [float(1 - s) for s in surviving[grid == 0]] or [0.0]
    return {"t": [0.0, *(grid[shown] / NS).tolist()], "F": [at_once[0], *(1.0 - surviving[shown]).tolist()]}


def _horizon(asked: float | None, budget: np.ndarray, until: np.ndarray, where: str) -> float:
    known = budget[np.isfinite(budget)]
    if asked is None:
        return float(known.min() if len(known) else until.max())
    most = float(max(known.max(), until[~np.isfinite(budget)].max(initial=0.0))) if len(known) else math.inf
    if not (math.isfinite(asked) and 0 < asked <= most):
        longest = f" ({most:g} s)" if len(known) else ""
        raise TableError(where, f"tau is {asked:g}; allowed is a time above 0 s, at most the episode's budget{longest}")
    return asked
