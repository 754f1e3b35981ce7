"""From an operations table to the result of `labctl analyze`: arms against the reference, every pair of arms.

Reads no file and prints nothing. Has every key of the interface, null where the table has no answer; the same table
and seed give the same bytes through `dumps`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

from labctl.analysis.cells_result import OverCells
from labctl.analysis.family import STATISTICS
from labctl.analysis.monte_carlo import check_draws
from labctl.analysis.operations_table.cautions import cautions, unequal_budgets
from labctl.analysis.operations_table.cohort import Cohort, Plan, exchanges_by_pair
from labctl.analysis.operations_table.describe import (
    cell_row,
    helped,
    intervention_rate,
    seconds_per_item,
    succeeded,
)
from labctl.analysis.operations_table.over_cells import over_cells
from labctl.analysis.operations_table.pair_rows import pair_rows
from labctl.analysis.results import bounds
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import clusters, episode_replicates, rmst_replicates
from labctl.analysis.survival.curves import ESTIMATORS, KAPLAN_MEIER
from labctl.analysis.survival.hrt import hrt, hrt_floor, not_below, rmst
from labctl.analysis.survival.items_moved import moved_macro, moved_share
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.survival.resample import Design
from labctl.analysis.survival.result import AgainstReference, AnalysisResult, ArmResult, Margin, PairResult
from labctl.analysis.survival.verdicts import (
    ALPHA,
    DEPENDS,
    compact_letters,
)
from labctl.analysis.table import LONGEST_S, NS, Table
from labctl.errors import TableError


def arm_row(cohort: Cohort, arm: str, plan: Plan) -> ArmResult:
    """The entry of `arms`: macro means over objects, equal weights; HRT over the objects shared with the reference."""
    keys = [(arm, o) for o in cohort.objects(arm)]
    cells = [cohort.cells[k] for k in keys]
    found = rmst(cohort.replicates, keys, cohort.paper, plan.tau_ns / NS)
    moved, moved_ci = moved_share(cells)
    return {
        "arm": arm,
        "rmst": found.value,
        "rmst_ci": bounds(found.interval),
        **_against_reference(cohort, arm, plan),
        "moved": moved,
        "moved_ci": bounds(moved_ci),
        "moved_macro": moved_macro(cells),
        "seconds_per_item": seconds_per_item(cells),
        "succeeded": succeeded(cells),
        "letters": "",
        "intervention_rate": intervention_rate(cells, named=cohort.named_causes),
        "helped": helped(cells),
        "episodes": sum(c.episodes for c in cells),
    }


def with_letters(arms: Sequence[ArmResult], pairs: Sequence[PairResult], alpha: float) -> list[ArmResult]:
    """The arms with letters: two share one unless their pair differs at `alpha`; the quickest has the first."""
    order = [arm["arm"] for arm in sorted(arms, key=lambda arm: arm["rmst"] or 0.0)]
    differ = {(p["a"], p["b"]) for p in pairs if p["p_holm"] is not None and p["p_holm"] <= alpha}
    letters = compact_letters(order, differ)
    return [{**arm, "letters": letters[arm["arm"]]} for arm in arms]


def _against_reference(cohort: Cohort, arm: str, plan: Plan) -> AgainstReference:
    silent = AgainstReference(hrt=None, hrt_floor=None, hrt_ci=None, hrt_ci_percentile=None, auc=None, auc_ci=None)
    shared = cohort.objects(arm, plan.reference) if plan.reference else []
    if not (plan.reference and shared):
        return silent
    them, us = [(plan.reference, o) for o in shared], [(arm, o) for o in shared]
    floor = hrt_floor(cohort.replicates, them, plan.tau_ns / NS)
    if arm == plan.reference:
        return {**silent, "hrt": 1.0, "hrt_floor": floor, "auc": 0.5}
    ratio = hrt(cohort.replicates, them, us, cohort.paper)
    area = auc([cohort.cells[k] for k in us], [cohort.cells[k] for k in them], plan.tau_ns, plan.seed, plan.boot)
    return {
        "hrt": ratio.value,
        "hrt_floor": floor,
        "hrt_ci": not_below(ratio.interval, floor),
        "hrt_ci_percentile": bounds(ratio.percentile),
        "auc": area.value,
        "auc_ci": bounds(area.interval),
    }


SCHEMA = "labctl.analysis/1"
DIGITS = 12
"""Significant digits kept: more than any check needs, fewer than the last bits that differ between machines."""


def analyze(
    table: Table,
    *,
    reference: str | None = None,
    tau: float | None = None,
    boot: int = 9999,
    perm: int = 9999,
    seed: int = 0,
    alpha: float = ALPHA,
    family: Sequence[str] = STATISTICS,
    design: Design | None = None,
    margin: Margin | None = None,
    estimator: str = KAPLAN_MEIER,
    say: Callable[[str], None] = lambda line: None,
) -> AnalysisResult:
    """The object that `labctl analyze --json` prints (schema labctl.analysis/1), times in seconds.

    `tau` is the RMST horizon in seconds, by default the shortest `budget_s`. Void episodes are left out,
    and those of extra blocks of an arm alone out of `pairs`. `alpha` is the
    level of verdicts, letters and adjusted intervals, `family` the statistics whose smallest p says that a pair
    differs, `design` the relabellings that the schedule could have drawn; without it labels are swapped freely within
    blocks. `margin` is what was registered as near enough; without it no pair is asked and no key is added. `estimator`
    is what RMSTs are made of (`curves.ESTIMATORS`). `say` is given how many pairs are done: "3/10 pairs".
    Raises `TableError` for a tau, reference, margin or count of replicates that makes no sense for this table.
    """
    if estimator not in ESTIMATORS:
        raise TableError(table.where, f"estimator is {estimator!r}; allowed are {' and '.join(ESTIMATORS)}")
    cells = cells_of(table, estimator)
    if not cells:
        raise TableError(table.where, "every episode is void; nothing is left to analyse")
    plan = Plan(_horizon(table, tau), reference, boot, perm, seed, alpha, tuple(family), design, margin, estimator, say)
    check_draws(table.where, alpha, boot=boot, perm=perm)
    for arm in (reference, margin and margin["non_inferior_to"]):
        if arm is not None and arm not in table.arms():
            raise TableError(table.where, f"no arm {arm!r} to refer to; the arms are {', '.join(table.arms())}")
    if margin is not None and not 1 < margin["rmst_ratio"] < math.inf:
        text = f"the margin rmst_ratio is {margin['rmst_ratio']:g}"
        raise TableError(table.where, f"{text}; allowed is a number above 1, such as 1.25")
    unknown = [name for name in family if name not in STATISTICS]
    if unknown or not family:
        found = f"{unknown[0]!r} in the family" if unknown else "an empty family"
        raise TableError(table.where, f"{found}; allowed are one or more of {', '.join(STATISTICS)}")
    cohort = _cohort(table, cells, plan)
    arms = [arm_row(cohort, arm, plan) for arm in cohort.arms()]
    together, against = cohort, arms
    compared = table.compared()
    if compared is not table:  # pairs are those of the blocks that every arm was to run in
        together = _cohort(compared, cells_of(compared, estimator), plan)
        against = [arm_row(together, arm, plan) for arm in together.arms()]
    refused = unequal_budgets(together.cells)
    exchanges = exchanges_by_pair(together.cells, plan)
    pairs = pair_rows(together, plan, set(refused), against, exchanges)
    by_cell = over_cells(compared.rigs(), together, plan, pairs) if len(table.rigs()) > 1 else None
    if by_cell:
        depending_on_cells(pairs, by_cell, alpha)
    result: AnalysisResult = {
        "schema": SCHEMA,
        "tau": plan.tau_ns / NS,
        "reference": reference,
        "seed": seed,
        "boot": boot,
        "alpha": alpha,
        "family": list(family),
        "estimator": estimator,
        "cells": [
            cell_row(c, rmst(cohort.replicates, [k], cohort.paper, plan.tau_ns / NS), plan.tau_ns)
            for k, c in cells.items()
        ],
        "arms": with_letters(arms, pairs, alpha),
        "pairs": pairs,
        "warnings": cautions(table, cells, together.cells, plan.tau_ns, refused, alpha, exchanges),
    }
    if margin is not None:
        result["margin"] = margin
    if by_cell:
        result["by_cell"] = by_cell
        result["warnings"] = [*by_cell["warnings"], *result["warnings"]]
    return result


def depending_on_cells(pairs: Sequence[PairResult], found: OverCells, alpha: float) -> None:
    """The verdict of a pair of which one arm leads in one cell and the other in another: that it depends, no order."""
    turned = {(one["a"], one["b"]) for one in found["pairs"] if one["opposed"]}
    for pair in pairs:
        if (pair["a"], pair["b"]) in turned and pair["p_holm"] is not None and pair["p_holm"] <= alpha:
            pair["verdict"], pair["leads"] = DEPENDS, None


def _cohort(table: Table, cells: Mapping[tuple[str, str], Cell], plan: Plan) -> Cohort:
    found = rmst_replicates(clusters(cells, plan.tau_ns, plan.seed), plan.boot)
    paper = {k: episode_replicates(c, plan.tau_ns, plan.seed, plan.boot, found) for k, c in cells.items()}
    return Cohort(cells, found, paper, any(table.cause))


def dumps(result: object) -> str:
    """Canonical JSON: two-space indent, keys in the interface's order, numbers to 12 significant digits, a newline."""
    return json.dumps(_rounded(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return value


def _horizon(table: Table, tau: float | None) -> int:
    if tau is None:
        budget = min((e.budget_ns for e in table.episodes if not e.void and e.budget_ns > 0), default=None)
        if budget is None:
            raise TableError(table.where, "has no budget_s to take tau from; give --tau SECONDS, in Python tau=SECONDS")
        return budget
    if not (math.isfinite(tau) and 1 / NS <= tau <= LONGEST_S):
        raise TableError(table.where, f"tau is {tau:g}; allowed is a time above 0 s, at most the episode's budget")
    return round(tau * NS)
