"""From an operations table to the result of `labctl analyze`: arms against the reference, every pair of arms.

Reads no file and prints nothing. Has every key of the interface, null where the table has no answer; the same table
and seed give the same bytes through `dumps`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.survival.cautions import cautions, unequal_budgets
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import Replicates, clusters, episode_replicates, rmst_replicates
from labctl.analysis.survival.curves import ESTIMATORS, KAPLAN_MEIER, Floats, joined
from labctl.analysis.survival.describe import cell_row, helped, intervention_rate, listed, seconds_per_item, succeeded
from labctl.analysis.survival.hrt import hrt, rmst
from labctl.analysis.survival.items_moved import moved_columns, moved_difference, moved_macro, moved_share
from labctl.analysis.survival.ks import STATISTICS, bootstrap_p, pair_of
from labctl.analysis.survival.logrank import logrank
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.survival.pair_effects import (
    RatioReplicates,
    against_margin,
    hourly_interval,
    ratio_interval,
    rmst_ratio,
    simultaneous,
)
from labctl.analysis.survival.permutation import PairTest, permutation_test, relabellings
from labctl.analysis.survival.resample import Design, Exchange, exchanges_of
from labctl.analysis.survival.result import AgainstReference, AnalysisResult, ArmResult, Bounds, Margin, PairResult
from labctl.analysis.survival.verdicts import (
    ALPHA,
    InView,
    compact_letters,
    holm_by_family,
    holm_errors_by_family,
    of_one_family,
    verdict,
)
from labctl.analysis.table import LONGEST_S, NS, Table

from labctl.errors import TableError

Key = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What was requested: horizon, reference, replicates, seed, level, family, schedule, margin, estimator."""

    tau_ns: int
    reference: str | None
    boot: int
    perm: int
    seed: int
    alpha: float = ALPHA
    family: tuple[str, ...] = STATISTICS
    design: Design | None = None
    margin: Margin | None = None
    estimator: str = KAPLAN_MEIER
    say: Callable[[str], None] = lambda line: None


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
        "moved_macro": moved_macro(cells),
        "seconds_per_item": seconds_per_item(cells),
        "succeeded": succeeded(cells),
        "letters": "",
        "intervention_rate": intervention_rate(cells, named=cohort.named_causes),
        "helped": helped(cells),
        "episodes": sum(c.episodes for c in cells),
    }


def pair_rows(cohort: Cohort, plan: Plan, refused: set[Key], arms: Sequence[ArmResult]) -> list[PairResult]:
    """The entries of `pairs`, every pair once, the reference first; statistics are null for pairs in `refused`.

    `arms` are the entries of `arms`: how each fares against the reference.
    """
    against = {row["arm"]: row for row in arms}
    pairs = pairs_of(cohort.arms(), plan.reference)
    tested, known = [p for p in pairs if p not in refused and cohort.objects(*p)], {}
    for done, p in enumerate(tested):
        plan.say(f"{done}/{len(tested)} pairs")
        known[p] = _known_pair(cohort, p, plan, against)
    rows = {p: known[p][0] if p in known else _silent(p) for p in pairs}
    adjusted = holm_by_family(
        {p: v for p, row in rows.items() if (v := row["p"]["family"]) is not None}, plan.reference
    )
    drawn = holm_errors_by_family(
        {p: rows[p]["p"]["family"] or 0.0 for p in adjusted},
        {p: rows[p]["p_error"]["family"] or 0.0 for p in adjusted},
        plan.reference,
    )
    for p, (row, ratio, test) in known.items():
        row["p_holm_error"] = drawn.get(p)
        together = {o: found for o, (_, found, _) in known.items() if of_one_family(p, o, plan.reference)}
        time = simultaneous(together, 1 - plan.alpha)[p] if ratio else None
        row["p_holm"], row["log_rmst_ratio_adjusted_ci"] = adjusted.get(p), listed(time)
        seen = _in_view(row, against, plan.reference)
        found = verdict(p, row["p_holm"], seen, opposed=test.opposed(plan.alpha), alpha=plan.alpha)
        row["verdict"], row["leads"] = (found.kind, found.leads) if found else (None, None)
    for p, row in rows.items():
        row["holm_over"] = [[*o] for o in adjusted if p in adjusted and of_one_family(p, o, plan.reference)]
    if plan.margin is not None:
        ratios = {p: ratio for p, (_, ratio, _) in known.items()}
        for p, shown in against_margin(ratios, plan.margin, plan.tau_ns / NS, plan.alpha, plan.reference).items():
            rows[p]["margin"] = shown
    return list(rows.values())


def pairs_of(arms: Sequence[str], reference: str | None) -> list[Key]:
    """Every pair of arms once, the reference first."""
    return list(itertools.combinations(sorted(arms, key=lambda a: (a != reference, a)), 2))


def exchanges_by_pair(cells: Mapping[Key, Cell], plan: Plan) -> dict[Key, tuple[Exchange, ...]]:
    """What the schedule allows for every pair whose test is to draw from it; nothing for the others."""
    pairs = pairs_of(sorted({a for a, _ in cells}), plan.reference)
    blocks = {arm: {b for (a, _), c in cells.items() if a == arm for b in c.blocks} for arm, _ in cells}
    family = {p: sum(of_one_family(p, other, plan.reference) for other in pairs) for p in pairs}
    return {p: exchanges_of(plan.design, *p, blocks[p[0]] | blocks[p[1]], family[p], plan.alpha) for p in pairs}


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
    floor = math.fsum(cohort.replicates.value[k] for k in them) / len(them) / (plan.tau_ns / NS)
    if arm == plan.reference:
        return {**silent, "hrt": 1.0, "hrt_floor": floor, "auc": 0.5}
    ratio = hrt(cohort.replicates, them, us, cohort.paper)
    area = auc([cohort.cells[k] for k in us], [cohort.cells[k] for k in them], plan.tau_ns, plan.seed, plan.boot)
    return {
        "hrt": ratio.value,
        "hrt_floor": floor,
        "hrt_ci": [max(end, floor) for end in ratio.interval] if ratio.interval else None,
        "hrt_ci_percentile": listed(ratio.percentile),
        "auc": area.value,
        "auc_ci": listed(area.interval),
    }


def _silent(pair: Key) -> PairResult:
    names = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph", "family", "ks_macro_bootstrap", "logrank_cluster")
    return PairResult(
        a=pair[0], b=pair[1], objects=[], rmst_a=None, rmst_b=None, ks_macro=None, ks_sup_mean=None,
        log_rmst_ratio=None, log_rmst_ratio_ci=None, log_rmst_ratio_adjusted_ci=None, uph_difference=None,
        uph_difference_ci=None, moved_difference=None, moved_difference_ci=None, moved_p=None,
        moved_p_error=None, auc=None, auc_ci=None, by_object=[], relabelled_by=None, relabellings=None,
        p=dict.fromkeys(names), p_error=dict.fromkeys(names), p_holm=None, p_holm_error=None, logrank_chi2=None,
        verdict=None, leads=None,
    )  # fmt: skip


def _known_pair(
    cohort: Cohort, pair: Key, plan: Plan, against: Mapping[str, ArmResult]
) -> tuple[PairResult, RatioReplicates | None, PairTest]:
    """A pair before anything is adjusted over pairs, its RMST ratio's replicates and its tests."""
    a, b = pair
    shared = cohort.objects(a, b)
    of_a, of_b = ([cohort.cells[arm, o] for o in shared] for arm in pair)
    exchanges = exchanges_by_pair(cohort.cells, plan)[pair]
    laid = pair_of(of_a, of_b, plan.tau_ns, exchanges=exchanges)
    made = relabellings(laid, plan.seed, plan.perm, moved_columns(of_a, of_b, laid))
    test = permutation_test(laid, plan.seed, plan.perm, plan.family, made)
    ratio = rmst_ratio(cohort.replicates, [(a, o) for o in shared], [(b, o) for o in shared])
    moved = moved_difference(of_a, of_b, laid, plan.seed, plan.perm, made=made)
    area, area_ci = _pair_auc(of_a, of_b, plan, against)
    carried = logrank(joined(*(c.durations for c in of_a)), joined(*(c.durations for c in of_b)))
    plain = logrank(joined(*(c.observed for c in of_a)), joined(*(c.observed for c in of_b)))
    bootstrapped = bootstrap_p(pair_of(of_a, of_b, plan.tau_ns, observed=True), plan.seed, plan.boot)
    others = {"family": test.family, "ks_macro_bootstrap": bootstrapped, "logrank_cluster": carried.p_cluster}
    errors = {
        "family": test.family_error,
        "ks_macro_bootstrap": share_error(bootstrapped, plan.boot),
        "logrank_cluster": None if carried.p_cluster is None else 0.0,
    }
    rmst_a, rmst_b = (math.fsum(cohort.replicates.value[arm, o] for o in shared) / len(shared) for arm in pair)
    row: PairResult = {
        **_silent(pair),
        "objects": shared,
        "rmst_a": rmst_a,
        "rmst_b": rmst_b,
        "ks_macro": test.value["ks_macro"],
        "ks_sup_mean": test.value["ks_sup_mean"],
        "log_rmst_ratio": test.value["log_rmst_ratio"],
        "log_rmst_ratio_ci": listed(ratio_interval(ratio)),
        "uph_difference": test.value["uph"],
        "uph_difference_ci": listed(hourly_interval(laid)),
        "moved_difference": moved and moved.difference,
        "moved_difference_ci": listed(moved.interval) if moved else None,
        "moved_p": moved and moved.p,
        "moved_p_error": moved and moved.p_error,
        "auc": area,
        "auc_ci": area_ci,
        "by_object": [
            {
                "object": o,
                "log_rmst_ratio": test.object_ratio[o],
                "p": test.object_p[o],
                "p_error": test.object_error[o],
            }
            for o in shared
        ],
        "relabelled_by": test.relabelled_by,
        "relabellings": test.relabellings,
        "p": {**test.p, **others},
        "p_error": {**test.error, **errors},
        "logrank_chi2": plain.chi2,
    }
    return row, ratio, test


def _pair_auc(
    of_a: Sequence[Cell], of_b: Sequence[Cell], plan: Plan, against: Mapping[str, ArmResult]
) -> tuple[float | None, Bounds]:
    """P(T_a < T_b) with its interval; against the reference it is what stands in the other arm's row, turned round."""
    if of_a[0].arm == plan.reference:
        row = against[of_b[0].arm]
        value, bounds = row["auc"], row["auc_ci"]
        return None if value is None else 1 - value, None if bounds is None else [1 - bounds[1], 1 - bounds[0]]
    found = auc(of_a, of_b, plan.tau_ns, plan.seed, plan.boot)
    return found.value, listed(found.interval)


def _in_view(row: PairResult, against: Mapping[str, ArmResult], reference: str | None) -> InView:
    """What a verdict looks at, turned so that above 0 favours the first arm.

    P(T < T_reference) of both arms, as the paper ranks by: the second's interval taken from the first's, end from end.
    """
    time, area, area_ci = row["log_rmst_ratio_adjusted_ci"], row["auc"], row["auc_ci"]
    intervals = [row["uph_difference_ci"], row["moved_difference_ci"], area_ci and [end - 0.5 for end in area_ci]]
    if reference not in (row["a"], row["b"]):
        of_a, of_b = (_auc_bounds(against[row[side]]) for side in ("a", "b"))
        intervals.append([of_a[0] - of_b[1], of_a[1] - of_b[0]] if of_a and of_b else None)
    return InView(
        (-time[1], -time[0]) if time else None,
        [row["uph_difference"], None if area is None else area - 0.5],
        [(bounds[0], bounds[1]) if bounds else None for bounds in intervals],
    )


def _auc_bounds(arm: ArmResult) -> Bounds:
    """The interval of an arm's P(T < T_reference); where it is 0 or 1 throughout, and has none, that value."""
    return arm["auc_ci"] or (None if arm["auc"] is None else [arm["auc"], arm["auc"]])


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

    `tau` is the RMST horizon in seconds, by default the shortest `budget_s`. Void episodes are left out. `alpha` is the
    level of verdicts, letters and adjusted intervals, `family` the statistics whose smallest p says that a pair
    differs, `design` the relabellings that the schedule could have drawn; without it labels are swapped freely within
    blocks. `margin` is what was registered as near enough; without it no pair is asked and no key is added. `estimator`
    is what RMSTs are made of (`curves.ESTIMATORS`). `say` is told how many pairs are done: "3/10 pairs".
    Raises `TableError` for a tau, reference, margin or count of replicates that makes no sense for this table.
    """
    if estimator not in ESTIMATORS:
        raise TableError(table.where, f"estimator is {estimator!r}; allowed are {' and '.join(ESTIMATORS)}")
    cells = cells_of(table, estimator)
    if not cells:
        raise TableError(table.where, "every episode is void; nothing is left to analyse")
    tau_ns, known = _horizon(table, tau), _known(table, reference)
    plan = Plan(tau_ns, known, boot, perm, seed, alpha, tuple(family), design, margin, estimator, say)
    if margin is not None:
        if not 1 < margin["rmst_ratio"] < math.inf:
            told = f"the margin rmst_ratio is {margin['rmst_ratio']:g}"
            raise TableError(table.where, f"{told}; allowed is a number above 1, such as 1.25")
        _known(table, margin["non_inferior_to"])
    if not 0 < alpha < 1:
        raise TableError(table.where, f"alpha is {alpha:g}; allowed is a level between 0 and 1, such as 0.05")
    unknown = [name for name in family if name not in STATISTICS]
    if unknown or not family:
        found = f"{unknown[0]!r} in the family" if unknown else "an empty family"
        raise TableError(table.where, f"{found}; allowed are one or more of {', '.join(STATISTICS)}")
    for name, count in (("boot", boot), ("perm", perm)):
        if count < 1:
            raise TableError(table.where, f"{name} is {count}; allowed is a whole number, 1 or more")
    found = rmst_replicates(clusters(cells, plan.tau_ns, seed), boot)
    paper = {k: episode_replicates(c, plan.tau_ns, seed, boot, found) for k, c in cells.items()}
    cohort = Cohort(cells, found, paper, any(table.cause))
    refused = unequal_budgets(cells)
    arms = [arm_row(cohort, arm, plan) for arm in cohort.arms()]
    pairs = pair_rows(cohort, plan, set(refused), arms)
    result: AnalysisResult = {
        "schema": SCHEMA,
        "tau": plan.tau_ns / NS,
        "reference": reference,
        "seed": seed,
        "boot": boot,
        "alpha": alpha,
        "family": list(family),
        "estimator": estimator,
        "cells": [cell_row(c, rmst(found, [k], paper, plan.tau_ns / NS), plan.tau_ns) for k, c in cells.items()],
        "arms": with_letters(arms, pairs, alpha),
        "pairs": pairs,
        "warnings": cautions(table, cells, plan.tau_ns, refused, alpha, exchanges_by_pair(cells, plan)),
    }
    if margin is not None:
        result["margin"] = margin
    return result


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
