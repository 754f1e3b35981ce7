"""Cases on which a plausible shortcut goes wrong, each with what is said instead."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.cohorts import NS

from labctl.analysis.episodes.sensitivity import rmst_by_operation
from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.curves import curve, rmst_with_error
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_test
from labctl.analysis.table import table_from_rows

INF = float("inf")
Rows = list[dict[str, object]]


def rows_of(arm: str, times: list[float], *, obj: str = "all", lost_at: float = 60.0) -> Rows:
    """An episode of one item for every time; infinity is an item lost at `lost_at`."""
    out: Rows = []
    for i, t in enumerate(times):
        lost = t == INF
        seconds = lost_at if lost else t
        out.append({
            "episode": f"{arm}-{obj}-{i}", "arm": arm, "object": obj, "kind": "ghost" if lost else "success",
            "time_s": seconds, "cause": "lost" if lost else "", "items_staged": 1, "end_s": seconds, "budget_s": 60.0,
        })  # fmt: skip
    return out


def analysis(*parts: Rows, reference: str | None = None) -> dict:
    table = table_from_rows([r for part in parts for r in part])
    return analyze(table, reference=reference, tau=60.0, boot=999, perm=999)


ROUND = {  # F at 10, 20 and 30 s: .1 .7 .8, .2 .5 .9, 0 .6 1
    "a": [10.0] + [20.0] * 6 + [30.0] + [INF] * 2,
    "b": [10.0] * 2 + [20.0] * 3 + [30.0] * 4 + [INF],
    "c": [20.0] * 6 + [30.0] * 4,
}


def test_the_sign_of_the_ks_distance_can_go_round_in_a_circle() -> None:
    # PhAIL, appendix: each of three arms is ahead of the next where the two are furthest apart
    cells = cells_of(table_from_rows([r for arm, times in ROUND.items() for r in rows_of(arm, times)]))

    def ahead(x: str, y: str) -> bool:
        found = [curve(cells[arm, "all"].durations, 60 * NS) for arm in (x, y)]
        grid = np.unique(np.concatenate([times for times, _ in found]))
        s = [np.append(1.0, values)[np.searchsorted(times, grid, side="right")] for times, values in found]
        gaps = np.subtract(s[1], s[0])
        return bool(gaps[np.argmax(np.abs(gaps))] > 0)

    assert ahead("a", "b") and ahead("b", "c") and ahead("c", "a")
    rmst = {arm: rmst_with_error(cells[arm, "all"].durations, 60 * NS)[0] for arm in ROUND}
    assert len(set(rmst.values())) == 3  # a scalar has an order


def test_curves_that_cross_with_scalars_that_disagree_are_not_ranked() -> None:
    # a is quick or loses the item at once; b takes 20 s and never fails: RMST is for b, items per hour for a
    found = analysis(
        rows_of("a", [5.0 + i / 100 for i in range(28)] + [INF] * 12, lost_at=6.0),
        rows_of("b", [20.0 + i / 100 for i in range(40)]),
    )
    (pair,) = found["pairs"]
    assert pair["p_holm"] < 0.01 and pair["log_rmst_ratio"] > 0 and pair["uph_difference"] > 0
    assert pair["verdict"] == "different, crossing"


def test_auc_and_hrt_can_name_different_leaders() -> None:
    # p beats the human on one item in four and never finishes the others; q takes twice the human's time on all
    found = analysis(
        rows_of("human", [10.0 + i / 10 for i in range(20)]),
        rows_of("p", [9.0] * 5 + [INF] * 15),
        rows_of("q", [20.0 + i / 5 for i in range(20)]),
        reference="human",
    )
    arms = {a["arm"]: a for a in found["arms"]}
    assert arms["p"]["auc"] > arms["q"]["auc"] and arms["p"]["hrt"] < arms["q"]["hrt"]


def opposite() -> tuple[list[Rows], list[str]]:
    rng = np.random.default_rng(1)
    pace = {("a", "cup"): 5, ("a", "pan"): 30, ("b", "cup"): 30, ("b", "pan"): 5}
    return [
        rows_of(arm, np.minimum(rng.exponential(mean, 30) + 0.1, 59).tolist(), obj=obj)
        for (arm, obj), mean in pace.items()
    ], ["cup", "pan"]


def test_arms_that_win_on_opposite_objects_differ_but_it_depends_on_the_object() -> None:
    parts, objects = opposite()
    (pair,) = analysis(*parts)["pairs"]
    assert pair["p"]["ks_macro"] < 0.01 < pair["p"]["ks_sup_mean"]  # methodology §3, 2: 1.00 against .03
    assert pair["verdict"] == "depends on object"
    cells = cells_of(table_from_rows([r for part in parts for r in part]))
    both = pair_of([cells["a", o] for o in objects], [cells["b", o] for o in objects], 60 * NS)
    ratio = permutation_test(both, 0, 999).object_ratio
    assert ratio["cup"] is not None and ratio["pan"] is not None and ratio["cup"] < 0 < ratio["pan"]


def stuck_episodes(seed: int, *, ended_early: bool) -> Rows:
    """Three items of 15 s on average; in a third of the episodes the arm is stuck, until 30 s or until the budget."""
    rng, rows = np.random.default_rng(seed), []
    for e in range(60):
        said = {"episode": f"e{e}", "arm": "a", "object": "all", "budget_s": 150.0, "items_staged": 3, "cause": ""}
        if rng.random() < 1 / 3:
            end = 30.0 if ended_early else 150.0
            cause = "futility" if ended_early else "budget"
            rows.append({**said, "kind": "censored", "time_s": end, "cause": cause, "end_s": end})
            continue
        times = rng.exponential(15.0, 3).round(3)
        rows += [
            {**said, "kind": "success", "time_s": t, "end_s": round(float(times.sum()), 3)} for t in times.tolist()
        ]
    return rows


def test_stuck_episodes_ended_early_flatter_only_the_papers_estimate() -> None:
    early, late = (cells_of(table_from_rows(stuck_episodes(2, ended_early=e)))["a", "all"] for e in (True, False))
    carried, plain = (rmst_with_error(c.durations, 150 * NS)[0] for c in (early, late))
    assert carried == pytest.approx(plain)
    # methodology §3, 5b: looked 40 % quicker
    assert rmst_with_error(early.observed, 150 * NS)[0] < 0.75 * plain


def test_an_arm_twice_as_slow_on_items_that_get_harder_reads_less_than_twice_once_pooled() -> None:
    # methodology §3, 5: 1.54; the slow arm never gets to the hard last items. First operations read it right.
    rng = np.random.default_rng(3)
    distribution = Distribution(12.0, shape=4.0, frailty=0.3, items=6, budget_s=180.0, harder=1.35)
    quick, slow = simulate(distribution, 4000, rng), simulate(distribution.slower(2.0), 4000, rng)
    pooled = [rmst_with_error(c.durations, 180 * NS)[0] for c in (quick, slow)]
    assert 1.3 < pooled[1] / pooled[0] < 1.7
    first = [rmst_by_operation(c, 180 * NS).rmst[0] for c in (quick, slow)]
    assert first[1] / first[0] == pytest.approx(2.0, abs=0.06)


def test_a_median_of_successes_would_flatter_the_arm_that_fails() -> None:
    # methodology §3, 12: never printed. a moves its easy half quickly and nothing else; b moves everything in 20 s
    found = analysis(rows_of("a", [5.0] * 9 + [INF] * 11), rows_of("b", [20.0] * 20))
    medians = {c["arm"]: c["median"] for c in found["cells"]}
    assert medians == {"a": "inf", "b": 20.0}


def test_follow_up_that_differs_is_refused_rather_than_tested() -> None:
    longer = [r | {"budget_s": 90.0} for r in rows_of("b", [20.0] * 8)]
    found = analysis(rows_of("a", [20.0] * 8), longer)
    assert found["pairs"][0]["verdict"] is None and "not compared" in found["warnings"][0]
