"""The funnel of an arm: how many of its episodes reached each stage, and when.

May not: know what a stage is worth; the score is a column of its own. An episode that ends before a stage competes with
reaching it: it never will, so it stays in the denominator, and no curve is carried on as if it might have.
"""

from __future__ import annotations

import math

import numpy as np

from labctl.analysis.binary.rates import clopper_pearson
from labctl.analysis.episodes_table.result import StageReached
from labctl.analysis.episodes_table.table import EpisodesTable
from labctl.analysis.survival.curves import Floats


def stage_count(table: EpisodesTable) -> int:
    """How many stages the table speaks of."""
    stage = table.number["stage"]
    return max(table.stage_s.shape[1], int(np.nanmax(stage)) if np.isfinite(stage).any() else 0)


def stages_reached(table: EpisodesTable) -> Floats:
    """How many stages each row reached [rows]: `stage`, else the last with a time; NaN where its task has no stages.

    Where some rows say how many, one that says nothing has none to reach; else one without a time reached none, if any
    row of its task has one.
    """
    stage = table.number["stage"]
    if not table.stage_s.shape[1]:
        return stage
    timed = np.isfinite(table.stage_s)
    last = np.where(timed, np.arange(1, timed.shape[1] + 1), 0).max(axis=1).astype(np.float64)
    staged = {task for task, number in zip(table.words["task"], last.tolist(), strict=True) if number}
    silent = np.isfinite(stage).any() | np.array([task not in staged for task in table.words["task"]])
    return np.where(np.isfinite(stage), stage, np.where((last == 0) & silent, np.nan, last))


def stages_of(table: EpisodesTable, arm: str, level: float = 0.95) -> list[StageReached]:
    """Each stage of an arm: episodes that reached it with the Clopper-Pearson interval of their share, and the time by
    which half of all its episodes had, the median of the cumulative incidence (Aalen & Johansen 1978), in s since go.
    """
    reached = stages_reached(table)
    own = (table.arm == table.arms.index(arm)) & np.isfinite(reached)
    count = int(own.sum())
    found: list[StageReached] = []
    for stage in range(1, stage_count(table) + 1):
        there = own & (reached >= stage)
        done = int(there.sum())
        times = table.stage_s[there, stage - 1] if stage <= table.stage_s.shape[1] else np.full(done, np.nan)
        ci = [*clopper_pearson(done, count, level)] if count else None
        median = incidence_median(times, count)
        seen = np.sort(times[np.isfinite(times)]).tolist()
        found.append(
            {"stage": stage, "reached": done, "episodes": count, "ci": ci, "median_s": median, "times_s": seen}
        )
    return found if count else []


def incidence_median(times: Floats, episodes: int) -> float | str | None:
    """When half of all episodes had reached it, "inf" if they never had; None where a time is missing."""
    needed = math.ceil(episodes / 2)
    if not episodes:
        return None
    if len(times) < needed:
        return "inf"
    return None if np.isnan(times).any() else float(np.sort(times)[needed - 1])
