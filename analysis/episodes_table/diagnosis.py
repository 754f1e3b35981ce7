"""Where arms are weak and how sure that is: tasks by arms, breaks along a stress, axes together, fewer blocks.

May not: compute a statistic; `analysis/blocks/` does. It lays columns out as that folder takes them.
"""

from __future__ import annotations

import numpy as np

from labctl.analysis.blocks import axes, heatmap, stress
from labctl.analysis.blocks.enough import enough
from labctl.analysis.episodes_table.cohort import Cohort, Plan
from labctl.analysis.episodes_table.further import measure_of_rows, perturbed_rows, stressed_rows
from labctl.analysis.episodes_table.pairs import by_unit
from labctl.analysis.episodes_table.result import AxesTogether, Cliff, FewerBlocks, Tasks
from labctl.analysis.results import bounds
from labctl.analysis.survival.verdicts import pairs_of

SIZES = (6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000)
"""Five blocks can give no p below .0625."""
DRAWS, SWAPS = 300, 499
MOST_NUMBERS = 10_000_000
"""Permuted scores that are held at once."""


def tasks(cohort: Cohort, plan: Plan) -> tuple[Tasks | None, tuple[str, ...]]:
    """The entry `tasks`: by the first of the columns task, condition and object that is filled and has two or more; and
    a warning where no pair could have been found.
    """
    table = cohort.table
    columns = [c for c in ("task", "condition", "object") if all(table.words[c]) and len({*table.words[c]}) > 1]
    if not columns:
        return None, ()
    blocks = [table.blocks[i] for i in table.block]
    arms = [table.arms[i] for i in table.arm]
    units = None if cohort.single else [str(cohort.unit[i]) for i in table.block]
    found = heatmap.heatmap(
        table.words[columns[0]], blocks, arms, measure_of_rows(cohort), plan.alpha, plan.level, units, plan.draws,
        plan.perm,
    )  # fmt: skip
    warned = (
        f"no pair’s difference can be shown to depend on the {columns[0]}: by {plan.perm} permutations Holm’s p over "
        f"the pairs is at least {found.least_p:.3f}, above alpha {plan.alpha:g}; raise --perm"
    )
    entry: Tasks = {
        "by": columns[0],
        "cells": [
            {"task": task, "arm": arm, "episodes": cell.episodes, "mean": cell.mean, "ci": bounds(cell.ci)}
            for task, row in zip(found.tasks, found.cells, strict=True)
            for arm, cell in zip(found.arms, row, strict=True)
        ],
        "hard": [
            {"task": hard.task, "best_arm": hard.best_arm, "best": hard.best, "ci": bounds(hard.ci)}
            for hard in found.hard
        ],
        "complementary": [
            {
                "a": pair.a, "b": pair.b, "a_leads": [*pair.a_leads], "b_leads": [*pair.b_leads],
                "together": pair.together, "single": pair.single, "p_holm": pair.p_holm,
            }
            for pair in found.complementary
        ],
    }  # fmt: skip
    return entry, (warned,) if found.least_p > plan.alpha else ()


def breaks(cohort: Cohort, plan: Plan) -> list[Cliff]:
    """The entry `cliffs`: the clearest break of each arm along each family."""
    rows = stressed_rows(cohort)
    most = max(199, MOST_NUMBERS // max(1, len(rows)))
    return [
        {
            "family": cliff.family, "arm": cliff.arm, "holds": cliff.holds, "breaks": cliff.breaks,
            "before": cliff.before, "after": cliff.after, "p": cliff.p, "p_error": cliff.error, "same": cliff.same,
        }
        for cliff in stress.cliffs(rows, min(plan.perm, stress.PERM, most), plan.seed)
    ]  # fmt: skip


def together(cohort: Cohort, plan: Plan) -> list[AxesTogether]:
    """The entry `compositions`: several axes at once against each by itself."""
    return [
        {
            "axis": one.axis, "arm": one.arm, "drop": one.drop, "singles": one.singles, "beyond": one.beyond,
            "ci": bounds(one.ci), "p": one.p, "pairs": one.pairs,
        }
        for one in axes.compositions(perturbed_rows(cohort), plan.alpha, plan.perm, plan.seed)
    ]  # fmt: skip


def fewer(cohort: Cohort, plan: Plan) -> list[FewerBlocks]:
    """The entry `enough`: each pair on fewer of its own units than it has."""
    found: list[FewerBlocks] = []
    for a, b in pairs_of(cohort.table.arms, plan.reference):
        units = by_unit(cohort, cohort.difference(cohort.measure, (a, b)))
        sizes = [size for size in SIZES if size < len(units)]
        if not np.any(units):
            continue
        for one in enough(units, sizes, plan.alpha, DRAWS, min(plan.perm, SWAPS), plan.seed):
            row: FewerBlocks = {
                "a": a, "b": b, "blocks": one.blocks, "detected": one.detected, "error": one.error,
                "wrong_found": one.wrong_found, "wrong_sign": one.wrong_sign,
            }  # fmt: skip
            found.append(row)
    return found
