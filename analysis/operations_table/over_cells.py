"""Is a difference the same in every robot's cell: each pair by cell, their heterogeneity, and what a further one shows.

May not: compare arms of different cells, or pool anything over them that the pair's own analysis does not: that one is
stratified by object and cell already (`table.in_cell`). Below five cells they are fixed: nothing is said of another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from labctl.analysis.cells_result import ArmInCell, OverCells, PairInCell, PairOverCells
from labctl.analysis.operations_table.cohort import Cohort, Key, Plan
from labctl.analysis.operations_table.pair_effects import ratio_interval, rmst_ratio
from labctl.analysis.results import bounds
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.hrt import hrt, hrt_floor, not_below, rmst
from labctl.analysis.survival.intervals import FEWEST_TO_PREDICT, IDENTITY, Interval, as_a_mean, t_interval
from labctl.analysis.survival.result import PairResult
from labctl.analysis.survival.verdicts import holm
from labctl.analysis.table import AT, NS


def over_cells(rigs: Sequence[str], cohort: Cohort, plan: Plan, pairs: Sequence[PairResult]) -> OverCells:
    """Every pair and every arm by cell; rigs: the cells' names, cohort: of a table of them, pairs: of the same."""
    cells = list(rigs)
    found = [_pair(cohort, cells, pair, plan) for pair in pairs if pair["objects"]]
    return {
        "cells": cells,
        "sample": len(cells) >= FEWEST_TO_PREDICT,
        "fewest": FEWEST_TO_PREDICT,
        "pairs": found,
        "arms": [row for arm in cohort.arms() for row in _arm(cohort, cells, arm, plan)],
        "warnings": _warnings(cohort, cells, plan),
    }


def _pair(cohort: Cohort, cells: Sequence[str], pair: PairResult, plan: Plan) -> PairOverCells:
    a, b = pair["a"], pair["b"]
    rows = [_in_cell(cohort, cell, pair) for cell in cells]
    ratios = [(row, ratio) for row in rows if (ratio := row["log_rmst_ratio"]) is not None]
    known, values = [row for row, _ in ratios], np.array([ratio for _, ratio in ratios])
    for row in known:
        others = [ratio for one, ratio in ratios if one is not row]
        row["without"] = float(np.mean(others)) if others else None
    made: PairOverCells = {
        "a": a, "b": b, "mean": float(values.mean()) if len(values) else None, "f": None, "df": None, "p_alike": None,
        "tau2": None, "tau2_ci": None, "i2": None, "opposed": False,
        "fixed_ci": pair["log_rmst_ratio_ci"], "ci": None, "prediction": None, "cells": rows,
    }  # fmt: skip
    sure = [row for row in known if row["se"]]
    if len(sure) == len(known) and len(known) > 1:
        from labctl.analysis.survival.random_effects import (  # a report of one cell does without scipy.stats
            q_profile,
            reml,
        )

        variance = np.array([(row["se"] or 0.0) ** 2 for row in known])
        df = np.array([float(row["df"]) for row in known])
        spread = reml(values, variance, [np.arange(len(known))])
        made["f"], freedom, made["p_alike"] = welch(values, variance, df)
        made["df"] = [*freedom]
        made["tau2"], made["i2"] = spread.tau2[0], spread.i2[0]
        made["tau2_ci"] = bounds(q_profile(values, variance))
        made["opposed"] = opposed(values, variance, df, plan.alpha)
    if len(known) >= FEWEST_TO_PREDICT:
        ci, ahead = further(values)
        made["ci"], made["prediction"] = bounds(ci), bounds(ahead)
    return made


def _in_cell(cohort: Cohort, cell: str, pair: PairResult) -> PairInCell:
    """A pair at the objects of one cell."""
    shared = [o for o in pair["objects"] if o.endswith(f"{AT}{cell}")]
    keys: list[tuple[Key, Key]] = [((pair["a"], o), (pair["b"], o)) for o in shared]
    ratio = rmst_ratio(cohort.replicates, [a for a, _ in keys], [b for _, b in keys]) if keys else None
    units = min((cohort.replicates.held[k] for two in keys for k in two), default=0)
    return {
        "cell": cell,
        "units": units,
        "log_rmst_ratio": None if ratio is None else ratio.value,
        "se": ratio.se * as_a_mean(ratio.units) if ratio is not None and ratio.units > 1 and ratio.se > 0 else None,
        "df": max(units - 1, 0),
        "ci": bounds(ratio_interval(ratio)),
        "without": None,
    }


def welch(y: Floats, v: Floats, df: Floats) -> tuple[float, tuple[float, float], float]:
    """F, its degrees of freedom and p of k means being alike, each with its own estimated variance `v` on `df`.

    B. L. Welch, Biometrika 38 (1951) 330: of sample means R's `oneway.test`; of two, the square of Welch's t.
    """
    k, weight = len(y), 1 / v
    whole = float(weight.sum())
    mean = float(weight @ y) / whole
    lost = float((((1 - weight / whole) ** 2) / df).sum())
    f = float(weight @ (y - mean) ** 2) / (k - 1) / (1 + 2 * (k - 2) / (k * k - 1) * lost)
    second = (k * k - 1) / (3 * lost)
    return f, (k - 1.0, second), float(special.fdtrc(k - 1, second, f))


def opposed(y: Floats, v: Floats, df: Floats, alpha: float) -> bool:
    """Whether one mean is above 0 and another below, each by t at `alpha` after Holm over the means."""
    p = 2 * special.stdtr(df, -np.abs(y) / np.sqrt(v))
    adjusted: Mapping[int, float] = holm({i: float(one) for i, one in enumerate(p)})
    signs = {float(np.sign(y[i])) for i, one in adjusted.items() if one <= alpha}
    return len(signs) > 1


def further(y: Floats) -> tuple[Interval | None, Interval | None]:
    """Intervals of the mean over cells like these, and of one further cell, from the spread of cells' means themselves
    by t on cells less one, as of sites (`blocks.sites`).
    """
    k, mean, spread = len(y), float(y.mean()), float(y.std(ddof=1))
    return (
        t_interval(mean, spread / math.sqrt(k), k - 1, IDENTITY),
        t_interval(mean, spread * math.sqrt(1 + 1 / k), k - 1, IDENTITY),
    )


def _arm(cohort: Cohort, cells: Sequence[str], arm: str, plan: Plan) -> list[ArmInCell]:
    rows: list[ArmInCell] = []
    for cell in cells:
        own = [o for o in cohort.objects(arm) if o.endswith(f"{AT}{cell}")]
        if not own:
            continue
        found = rmst(cohort.replicates, [(arm, o) for o in own], cohort.paper, plan.tau_ns / NS)
        shared = [o for o in own if plan.reference and (plan.reference, o) in cohort.cells]
        relative, least = None, 0.0
        if plan.reference and shared and arm != plan.reference:
            sides = [(plan.reference, o) for o in shared], [(arm, o) for o in shared]
            relative = hrt(cohort.replicates, *sides, cohort.paper)
            least = hrt_floor(cohort.replicates, sides[0], plan.tau_ns / NS)
        rows.append(
            {
                "arm": arm,
                "cell": cell,
                "episodes": sum(cohort.cells[arm, o].episodes for o in own),
                "rmst": found.value,
                "rmst_ci": bounds(found.interval),
                "hrt": 1.0 if arm == plan.reference else relative and relative.value,
                "hrt_ci": not_below(relative.interval, least) if relative else None,
            }
        )
    return rows


def _warnings(cohort: Cohort, cells: Sequence[str], plan: Plan) -> list[str]:
    """Arms that a cell lacks, and policies that have no person on their rig to be held against."""
    lines: list[str] = []
    for arm in cohort.arms():
        met = {o.rsplit(AT, 1)[-1] for o in cohort.objects(arm)}
        if lacking := [cell for cell in cells if cell not in met]:
            text = f"arm {arm} was not run in {', '.join(lacking)}: its numbers are of the other cells alone"
            against = "; policies there have nobody on their rig to be held against" if arm == plan.reference else ""
            lines.append(text + against)
    return lines
