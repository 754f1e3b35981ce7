"""From an operations table to the result of `labctl analyze`: every key of the interface, null where it cannot say.

Reads no file and prints nothing; the same table and seed give the same bytes through `dumps`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from labctl.analysis.survival.cautions import cautions, unequal_budgets
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.clusters import clusters, episode_replicates, rmst_replicates
from labctl.analysis.survival.compare import Cohort, Plan, arm_row, pair_rows
from labctl.analysis.survival.describe import cell_row
from labctl.analysis.survival.hrt import rmst
from labctl.analysis.table import LONGEST_S, NS, Table

from labctl.errors import TableError

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
) -> dict[str, Any]:
    """The object that `labctl analyze --json` prints (schema labctl.analysis/1), times in seconds.

    `tau` is the RMST horizon in seconds, by default the shortest `budget_s`. Void episodes are left out.
    Raises `TableError` for a tau, reference or count of replicates that makes no sense for this table.
    """
    cells = cells_of(table)
    if not cells:
        raise TableError(table.where, "every episode is void; nothing is left to analyse")
    plan = Plan(_horizon(table, tau), _known(table, reference), boot, perm, seed)
    for name, count in (("boot", boot), ("perm", perm)):
        if count < 1:
            raise TableError(table.where, f"{name} is {count}; allowed is a whole number, 1 or more")
    found = rmst_replicates(clusters(cells, plan.tau_ns, seed), boot)
    paper = {k: episode_replicates(c, plan.tau_ns, seed, boot, found) for k, c in cells.items()}
    cohort = Cohort(cells, found, paper, any(table.cause))
    refused = unequal_budgets(cells)
    return {
        "schema": SCHEMA,
        "tau": plan.tau_ns / NS,
        "reference": reference,
        "seed": seed,
        "cells": [cell_row(c, rmst(found, [k], paper, plan.tau_ns / NS), plan.tau_ns) for k, c in cells.items()],
        "arms": [arm_row(cohort, arm, plan) for arm in cohort.arms()],
        "pairs": pair_rows(cohort, plan, set(refused)),
        "warnings": cautions(table, cells, plan.tau_ns, refused),
    }


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
            raise TableError(table.where, "has no budget_s to take tau from; give --tau SECONDS")
        return budget
    if not (math.isfinite(tau) and 1 / NS <= tau <= LONGEST_S):
        raise TableError(table.where, f"tau is {tau:g}; allowed is a time above 0 s, at most the episode's budget")
    return round(tau * NS)


def _known(table: Table, reference: str | None) -> str | None:
    if reference is not None and reference not in table.arms():
        raise TableError(table.where, f"no arm {reference!r} to refer to; the arms are {', '.join(table.arms())}")
    return reference
