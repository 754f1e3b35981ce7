"""The entries of `pairs`: two arms on the objects both met, their differences, tests and verdict.

May not: read a table; it gets cells whose replicates are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.operations_table.cohort import Cohort, Key, Plan
from labctl.analysis.operations_table.pair_effects import (
    RatioReplicates,
    against_margin,
    hourly_interval,
    ratio_interval,
    rmst_ratio,
    simultaneous,
)
from labctl.analysis.results import bounds
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import joined
from labctl.analysis.survival.items_moved import moved_columns, moved_difference
from labctl.analysis.survival.ks import bootstrap_p, pair_of
from labctl.analysis.survival.logrank import logrank
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.survival.permutation import PairTest, permutation_test, relabellings
from labctl.analysis.survival.resample import Exchange
from labctl.analysis.survival.result import ArmResult, Bounds, PairResult
from labctl.analysis.survival.verdicts import (
    InView,
    holm_by_family,
    holm_errors_by_family,
    of_one_family,
    pairs_of,
    verdict,
)
from labctl.analysis.table import NS


def pair_rows(
    cohort: Cohort,
    plan: Plan,
    refused: set[Key],
    arms: Sequence[ArmResult],
    exchanges: Mapping[Key, Sequence[Exchange]],
) -> list[PairResult]:
    """The entries of `pairs`, every pair once, the reference first; statistics are null for pairs in `refused`.

    arms: the entries of `arms`, how each fares against the reference; exchanges: of every pair, those of the schedule.
    """
    against = {row["arm"]: row for row in arms}
    pairs = pairs_of(cohort.arms(), plan.reference)
    tested, known = [p for p in pairs if p not in refused and cohort.objects(*p)], {}
    for done, p in enumerate(tested):
        plan.say(f"{done}/{len(tested)} pairs")
        known[p] = _known_pair(cohort, p, plan, against, exchanges[p])
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
        row["p_holm"], row["log_rmst_ratio_adjusted_ci"] = adjusted.get(p), bounds(time)
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


def _silent(pair: Key) -> PairResult:
    names = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph", "family", "ks_macro_bootstrap", "logrank_cluster")
    return PairResult(
        a=pair[0], b=pair[1], objects=[], rmst_a=None, rmst_b=None, ks_macro=None, ks_sup_mean=None,
        log_rmst_ratio=None, log_rmst_ratio_ci=None, log_rmst_ratio_adjusted_ci=None, uph_difference=None,
        uph_difference_ci=None, moved_difference=None, moved_difference_ci=None, moved_p=None,
        moved_p_error=None, auc=None, auc_ci=None, by_object=[], relabelled_by=None, relabellings=None,
        p=dict.fromkeys(names), p_error=dict.fromkeys(names), p_holm=None, p_holm_error=None, holm_over=[],
        logrank_chi2=None, verdict=None, leads=None,
    )  # fmt: skip


def _known_pair(
    cohort: Cohort, pair: Key, plan: Plan, against: Mapping[str, ArmResult], exchanges: Sequence[Exchange]
) -> tuple[PairResult, RatioReplicates | None, PairTest]:
    """A pair before anything is adjusted over pairs, its RMST ratio's replicates and its tests."""
    a, b = pair
    shared = cohort.objects(a, b)
    of_a, of_b = ([cohort.cells[arm, o] for o in shared] for arm in pair)
    laid = pair_of(of_a, of_b, plan.tau_ns, exchanges=exchanges)
    made = relabellings(laid, plan.seed, plan.perm, moved_columns(of_a, of_b, laid))
    test = permutation_test(laid, plan.seed, plan.perm, plan.family, made)
    ratio = rmst_ratio(cohort.replicates, [(a, o) for o in shared], [(b, o) for o in shared])
    moved = moved_difference(of_a, of_b, laid, plan.seed, plan.perm, made=made)
    area, area_ci = _pair_auc(of_a, of_b, plan, against)
    carried = logrank(joined(*(c.durations for c in of_a)), joined(*(c.durations for c in of_b)))
    if all(c.durations is c.observed for c in (*of_a, *of_b)):  # no tail was carried on: what follows is of the same
        plain, as_seen = carried, laid
    else:
        plain = logrank(joined(*(c.observed for c in of_a)), joined(*(c.observed for c in of_b)))
        as_seen = pair_of(of_a, of_b, plan.tau_ns, observed=True)
    bootstrapped = bootstrap_p(as_seen, plan.seed, plan.boot)
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
        "log_rmst_ratio_ci": bounds(ratio_interval(ratio)),
        "uph_difference": test.value["uph"],
        "uph_difference_ci": bounds(hourly_interval(laid)),
        "moved_difference": moved and moved.difference,
        "moved_difference_ci": bounds(moved.interval) if moved else None,
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
        value, ci = row["auc"], row["auc_ci"]
        return None if value is None else 1 - value, None if ci is None else [1 - ci[1], 1 - ci[0]]
    found = auc(of_a, of_b, plan.tau_ns, plan.seed, plan.boot)
    return found.value, bounds(found.interval)


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
        [_seconds_fewer(row), row["uph_difference"], None if area is None else area - 0.5],
        [(ends[0], ends[1]) if ends else None for ends in intervals],
    )


def _seconds_fewer(row: PairResult) -> float | None:
    """By how many seconds the first arm's mean time per item is shorter: means over objects of unlike length may say
    otherwise than the mean of their ratios, beside which a claim prints them.
    """
    return None if row["rmst_a"] is None or row["rmst_b"] is None else row["rmst_b"] - row["rmst_a"]


def _auc_bounds(arm: ArmResult) -> Bounds:
    """The interval of an arm's P(T < T_reference); where it is 0 or 1 throughout, and has none, that value."""
    return arm["auc_ci"] or (None if arm["auc"] is None else [arm["auc"], arm["auc"]])
