"""Everything that stands beside the headline numbers of a result, computed in one go.

May not: change or repeat a number of `labctl analyze`. Each entry is a result object's dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.analysis.episodes.covariate_balance import sessions, spatial, trend
from labctl.analysis.episodes.failures import failure_modes, sweep
from labctl.analysis.episodes.operators import people
from labctl.analysis.episodes.sensitivity import hrt_bounds, rmst_by_operation, teleoperators, timeout_bounds
from labctl.analysis.operations_table.cohort import Plan, exchanges_by_pair
from labctl.analysis.operations_table.describe import incidence
from labctl.analysis.results import Computed, plain_in
from labctl.analysis.supplement_result import Supplement
from labctl.analysis.survival.bands import simultaneous_band
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.curves import KAPLAN_MEIER
from labctl.analysis.survival.items_moved import moved_difference
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.logrank import logrank_permutation, stratified
from labctl.analysis.survival.order_probability import pp_plot, qq_plot
from labctl.analysis.survival.permutation import p_error
from labctl.analysis.survival.resample import Design, Exchange, stream_key
from labctl.analysis.survival.result import AnalysisResult, PairResult
from labctl.analysis.table import NS, Table

SCHEMA = "labctl.supplement/1"
Key = tuple[str, str]


def supplement(table: Table, result: AnalysisResult, *, perm: int = 9999, design: Design | None = None) -> Supplement:
    """The sensitivity lines, checks and plot data that belong to `result`, the analysis of the same table.

    `cells`: timeout bounds, RMST by order of operation, incidence by cause, a simultaneous band, P–P and Q–Q plots, the
    sweep of allowed time. `arms`: HRT bounds, failures by cause, trend over blocks, sessions, compact letters.
    `pairs`: items moved, paired; P–P plots; RMST ratio per object; logrank stratified by object, robust and by
    permutation. design: as `analyze` had it.
    `spatial`, `teleoperators` and `people` as their functions have them.
    """
    cells, reference = cells_of(table, result.get("estimator", KAPLAN_MEIER)), result.get("reference")
    tau_ns, seed = round(float(result["tau"]) * NS), int(result["seed"])
    plan = Plan(tau_ns, reference, 1, perm, seed, float(result["alpha"]), tuple(result["family"]), design)
    together = cells_of(table.compared(), result.get("estimator", KAPLAN_MEIER))
    exchanges = exchanges_by_pair(together, plan)
    found: dict[str, Computed] = {
        "schema": SCHEMA,
        "cells": [_cell(c, cells.get((reference or "", c.object)), tau_ns, seed) for c in cells.values()],
        "arms": [
            {**_arm(table, cells, arm["arm"], reference, tau_ns, seed, perm), "letters": arm["letters"]}
            for arm in result["arms"]
        ],
        "pairs": [_pair(together, p, plan, exchanges[p["a"], p["b"]]) for p in result["pairs"] if p["objects"]],
        "spatial": spatial(table, seed, perm),
        "teleoperators": teleoperators(table, reference),
        "people": _people(table, reference),
    }
    return plain_in(found, Supplement)


def _cell(cell: Cell, reference: Cell | None, tau_ns: int, seed: int) -> dict[str, Computed]:
    other = reference if reference is not None and reference.arm != cell.arm else None
    return {
        "arm": cell.arm,
        "object": cell.object,
        "bounds": timeout_bounds(cell, tau_ns),
        "by_operation": rmst_by_operation(cell, tau_ns),
        "incidence": incidence(cell, tau_ns),
        "band": simultaneous_band(cell.durations, tau_ns, stream_key(seed, "curve band", cell.arm, cell.object)),
        "pp": other and pp_plot(cell, other, tau_ns),
        "qq": other and qq_plot(cell, other, tau_ns),
        "sweep": sweep(cell, tau_ns),
    }


def _arm(
    table: Table, cells: Mapping[Key, Cell], arm: str, reference: str | None, tau_ns: int, seed: int, perm: int
) -> dict[str, Computed]:
    own = [c for (a, _), c in cells.items() if a == arm]
    shared = [] if reference is None or reference == arm else [c for c in own if (reference, c.object) in cells]
    theirs = [cells[reference or "", c.object] for c in shared]
    return {
        "arm": arm,
        "hrt_bounds": hrt_bounds(theirs, shared, tau_ns) if shared else None,
        "failures": failure_modes(own),
        "trend": trend(table, arm, tau_ns, seed, perm),
        **_trend_by_cell(table, arm, tau_ns, seed, perm),
        "sessions": sessions(table, arm, seed, perm),
    }


def _trend_by_cell(table: Table, arm: str, tau_ns: int, seed: int, perm: int) -> dict[str, Computed]:
    """Nothing in a table of one cell."""
    if not (rigs := table.rigs()):
        return {}
    found = ((rig, trend(table, arm, tau_ns, seed, perm, rig)) for rig in rigs)
    return {
        "trend_by_cell": [
            {"cell": rig, "blocks": len(one.block), "slope": one.slope, "p": one.p, "p_error": one.p_error}
            for rig, one in found
            if one is not None
        ]
    }


def _people(table: Table, reference: str | None) -> Computed:
    """`people`, in a table of several cells with learning and fatigue in each."""
    found, rigs = people(table, reference), table.rigs()
    if found is None or not rigs:
        return found
    in_cells = ((rig, people(table, reference, rig)) for rig in rigs)
    each = [{"cell": rig, "learning": one.learning, "fatigue": one.fatigue} for rig, one in in_cells if one is not None]
    return {**found.as_dict(), "by_cell": each}


def _pair(cells: Mapping[Key, Cell], row: PairResult, plan: Plan, exchanges: Sequence[Exchange]) -> dict[str, Computed]:
    of_a, of_b = ([cells[arm, o] for o in row["objects"]] for arm in (row["a"], row["b"]))
    pair = pair_of(of_a, of_b, plan.tau_ns, exchanges=exchanges)
    robust = stratified([(x.durations, y.durations) for x, y in zip(of_a, of_b, strict=True)])
    logrank = logrank_permutation(pair, plan.seed, plan.perm)
    return {
        "a": row["a"],
        "b": row["b"],
        "moved": moved_difference(of_a, of_b, pair, plan.seed, plan.perm),
        "object_log_rmst_ratio": {one["object"]: one["log_rmst_ratio"] for one in row["by_object"]},
        "object_p": {one["object"]: one["p"] for one in row["by_object"]},
        "object_p_error": {one["object"]: one.get("p_error") for one in row["by_object"]},
        "pp": [{"object": x.object, **pp_plot(x, y, plan.tau_ns).as_dict()} for x, y in zip(of_a, of_b, strict=True)],
        "logrank_stratified_cluster": robust.p_cluster,
        "logrank_stratified_permutation": logrank,
        "logrank_stratified_permutation_error": p_error(pair, plan.perm, logrank),
    }
