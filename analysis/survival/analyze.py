"""From an operations table to the result of `labctl analyze`: arms against the reference, every pair of arms.

Reads no file and prints nothing. Has every key of the interface, null where the table has no answer; the same table
and seed give the same bytes through `dumps`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.survival.cautions import cautions, unequal_budgets
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import Replicates, clusters, episode_replicates, rmst_replicates
from labctl.analysis.survival.curves import Durations, Floats
from labctl.analysis.survival.describe import cell_row, intervention_rate, listed
from labctl.analysis.survival.hrt import hrt, rmst
from labctl.analysis.survival.items_moved import moved_share
from labctl.analysis.survival.ks import bootstrap_p, pair_of
from labctl.analysis.survival.logrank import logrank
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.survival.permutation import permutation_test
from labctl.analysis.survival.result import AgainstReference, AnalysisResult, ArmResult, PairResult
from labctl.analysis.survival.verdicts import ALPHA, holm_by_family, verdict
from labctl.analysis.table import LONGEST_S, NS, Table

from labctl.errors import TableError

Key = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What was requested: horizon, reference arm, numbers of replicates, seed."""

    tau_ns: int
    reference: str | None
    boot: int
    perm: int
    seed: int


@dataclass(frozen=True)
class Cohort:
    """Every cell with its RMST replicates and the paper's, keyed by (arm, object)."""

    cells: Mapping[Key, Cell]
    replicates: Replicates
    paper: Mapping[Key, Floats]
    named_causes: bool

    def objects(self, *arms: str) -> list[str]:
        """Objects that every one of these arms has met, sorted."""
        return sorted(set.intersection(*({o for a, o in self.cells if a == arm} for arm in arms)))

    def arms(self) -> list[str]:
        """Arms with at least one episode, sorted."""
        return sorted({a for a, _ in self.cells})


def arm_row(cohort: Cohort, arm: str, plan: Plan) -> ArmResult:
    """The entry of `arms`: macro means over objects, equal weights; HRT over the objects shared with the reference."""
    keys = [(arm, o) for o in cohort.objects(arm)]
    cells = [cohort.cells[k] for k in keys]
    found = rmst(cohort.replicates, keys, cohort.paper, plan.tau_ns / NS)
    moved, moved_ci = moved_share(cells)
    return {
        "arm": arm,
        "rmst": found.value,
        "rmst_ci": listed(found.interval),
        **_against_reference(cohort, arm, plan),
        "moved": moved,
        "moved_ci": listed(moved_ci),
        "intervention_rate": intervention_rate(cells, named=cohort.named_causes),
        "episodes": sum(c.episodes for c in cells),
    }


def pair_rows(cohort: Cohort, plan: Plan, refused: set[Key]) -> list[PairResult]:
    """The entries of `pairs`, every pair once, the reference first; statistics are null for pairs in `refused`."""
    arms = sorted(cohort.arms(), key=lambda a: (a != plan.reference, a))
    pairs = list(itertools.combinations(arms, 2))
    rows = {p: _pair_row(cohort, *p, plan, refused=p in refused) for p in pairs}
    family = {p: v for p, (row, _) in rows.items() if (v := row["p"]["family"]) is not None}
    adjusted = holm_by_family(family, plan.reference)
    for p, (row, opposed) in rows.items():
        row["p_holm"] = adjusted.get(p)
        found = verdict(p, row["p_holm"], _scalars(cohort, p, row), opposed=opposed)
        row["verdict"] = found and found.kind
    return [row for row, _ in rows.values()]


def _against_reference(cohort: Cohort, arm: str, plan: Plan) -> AgainstReference:
    silent = AgainstReference(hrt=None, hrt_floor=None, hrt_ci=None, hrt_ci_percentile=None, auc=None, auc_ci=None)
    shared = cohort.objects(arm, plan.reference) if plan.reference else []
    if not (plan.reference and shared):
        return silent
    them, us = [(plan.reference, o) for o in shared], [(arm, o) for o in shared]
    floor = math.fsum(cohort.replicates.value[k] for k in them) / len(them) / (plan.tau_ns / NS)
    if arm == plan.reference:
        return {**silent, "hrt": 1.0, "hrt_floor": floor, "auc": 0.5}
    ratio = hrt(cohort.replicates, them, us, cohort.paper)
    area = auc([cohort.cells[k] for k in us], [cohort.cells[k] for k in them], plan.tau_ns, plan.seed, plan.boot)
    return {
        "hrt": ratio.value,
        "hrt_floor": floor,
        "hrt_ci": listed(ratio.interval),
        "hrt_ci_percentile": listed(ratio.percentile),
        "auc": area.value,
        "auc_ci": listed(area.interval),
    }


def _pair_row(cohort: Cohort, a: str, b: str, plan: Plan, *, refused: bool) -> tuple[PairResult, bool]:
    """A pair before Holm's correction, and whether its arms lead at different objects."""
    names = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph", "family", "ks_macro_bootstrap", "logrank_cluster")
    row = PairResult(
        a=a, b=b, ks_macro=None, ks_sup_mean=None, log_rmst_ratio=None, uph_difference=None, p=dict.fromkeys(names),
        p_holm=None, logrank_chi2=None, verdict=None,
    )  # fmt: skip
    shared = cohort.objects(a, b)
    if refused or not shared:
        return row, False
    of_a, of_b = ([cohort.cells[arm, o] for o in shared] for arm in (a, b))
    test = permutation_test(pair_of(of_a, of_b, plan.tau_ns), plan.seed, plan.perm)
    carried = logrank(_joined([c.durations for c in of_a]), _joined([c.durations for c in of_b]))
    plain = logrank(_joined([c.observed for c in of_a]), _joined([c.observed for c in of_b]))
    bootstrapped = bootstrap_p(pair_of(of_a, of_b, plan.tau_ns, observed=True), plan.seed, plan.boot)
    row["ks_macro"], row["ks_sup_mean"] = test.value["ks_macro"], test.value["ks_sup_mean"]
    row["log_rmst_ratio"], row["uph_difference"] = test.value["log_rmst_ratio"], test.value["uph"]
    others = {"family": test.family, "ks_macro_bootstrap": bootstrapped, "logrank_cluster": carried.p_cluster}
    row["p"], row["logrank_chi2"] = {**test.p, **others}, plain.chi2
    return row, test.opposed(ALPHA)


def _scalars(cohort: Cohort, pair: Key, row: PairResult) -> list[float | None]:
    """Macro RMST difference, log RMST ratio and UPH difference, turned so that above 0 favours the first arm."""
    shared = cohort.objects(*pair)
    if not shared:
        return []
    gap = math.fsum(cohort.replicates.value[pair[1], o] - cohort.replicates.value[pair[0], o] for o in shared)
    ratio = row["log_rmst_ratio"]
    return [gap, None if ratio is None else -ratio, row["uph_difference"]]


def _joined(parts: Sequence[Durations]) -> Durations:
    starts = np.cumsum([0, *(p.episodes for p in parts)])
    return Durations(
        np.concatenate([p.time_ns for p in parts]),
        np.concatenate([p.event for p in parts]),
        np.concatenate([p.episode + s for p, s in zip(parts, starts, strict=False)]),
        int(starts[-1]),
    )


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
) -> AnalysisResult:
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
