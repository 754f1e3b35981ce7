"""Lines that stand beside the headline: competing causes, bounds, order of items, budgets, voids, P–P, Q–Q, sweeps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.statistics.cohorts import NS, TAU_NS

from labctl.analysis.episodes.failures import allowed, failure_modes, sweep
from labctl.analysis.episodes.sensitivity import (
    hrt_bounds,
    rmst_by_operation,
    teleoperators,
    timeout_bounds,
    to_common_budget,
    truncated,
)
from labctl.analysis.operations_table.describe import incidence, intervention_rate
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.curves import rmst_with_error
from labctl.analysis.survival.ks import observed_statistics, pair_of
from labctl.analysis.survival.order_probability import pp_plot, qq_plot
from labctl.analysis.table import table_from_rows
from labctl.errors import TableError


def row(episode: str, kind: str, time_s: object, **more: object) -> dict[str, object]:
    return {"episode": episode, "arm": "a", "object": "cup", "kind": kind, "time_s": time_s, "cause": "", **more}


def cell(*rows: dict[str, object]) -> Cell:
    (found,) = cells_of(table_from_rows(rows)).values()
    return found


MIXED = [
    row("e1", "success", 10, budget_s=60, items_staged=3),
    row("e1", "ghost", 20, cause="drop", budget_s=60, items_staged=3),
    row("e1", "success", 25, budget_s=60, items_staged=3),
    row("e2", "success", 30, budget_s=60, items_staged=3),
    row("e2", "censored", 30, cause="budget", budget_s=60, items_staged=3),
    row("e3", "ghost", 40, cause="safety_stop", budget_s=60, items_staged=3),
]


def test_competing_causes_by_hand() -> None:
    # durations: 10 success, 20 drop, 25 - 20 = 5 success (restarts at the drop), 30 success, 30 open, 40 stop
    found = incidence(cell(*MIXED), 60 * NS)
    assert found is not None
    assert found.t.tolist() == [5, 10, 20, 30, 40]
    assert found.success == pytest.approx([1 / 6, 2 / 6, 2 / 6, 2 / 6 + 1 / 6, 3 / 6])
    assert found.causes["drop"] == pytest.approx([0, 0, 1 / 6, 1 / 6, 1 / 6])
    assert found.causes["safety_stop"] == pytest.approx([0, 0, 0, 0, 1 / 3])
    total = found.success + sum(found.causes.values()) + found.still_open
    assert total == pytest.approx(np.ones(5))
    assert found.rmst == pytest.approx(5 + 5 * 5 / 6 + 20 * 4 / 6 + 30 * 3 / 6)
    assert json.dumps(found.as_dict()) and "rmst" in str(found)


def test_without_censoring_a_lost_item_costs_the_same_by_incidence_as_at_infinity() -> None:
    whole = cell(*(row(f"e{i}", "ghost" if i == 2 else "success", i) for i in (1, 2, 3, 4)))
    found = incidence(whole, 10 * NS)
    assert found is not None and found.rmst == pytest.approx(rmst_with_error(whole.durations, 10 * NS)[0])


def test_incidence_needs_to_know_when_an_item_was_lost() -> None:
    assert incidence(cell(row("e1", "ghost", "", cause="drop")), 60 * NS) is None
    early = [row("e1", "ghost", 20, cause="drop"), row("e1", "success", 10)]
    assert incidence(cell(*early), 60 * NS) is None
    nothing = incidence(cell(row("e1", "censored", 60)), 60 * NS)
    assert nothing is not None and nothing.rmst == 60.0 and len(nothing.t) == 0


@pytest.mark.thorough
def test_under_censoring_an_event_at_infinity_is_biased_and_incidence_is_not() -> None:
    # facts §4.4b: exponential 60 s, exponential censoring of mean 60 s, 5 % lost: F(240) .8351 at infinity, .9338 by
    # Aalen-Johansen, truth .9326
    rng = np.random.default_rng(1)
    n = 60_000
    time, censoring, lost = rng.exponential(60, n), rng.exponential(60, n), rng.random(n) < 0.05
    seen = np.minimum(time, censoring)
    kinds = np.where(seen < time, "censored", np.where(lost, "ghost", "success"))
    whole = cell(*(row(f"e{i}", k, t) for i, (k, t) in enumerate(zip(kinds.tolist(), seen.tolist(), strict=True))))
    found = incidence(whole, 240 * NS)
    assert found is not None
    assert found.success[-1] == pytest.approx(0.9326, abs=0.006)
    assert 1 - rmst_with_error(whole.durations, 240 * NS)[0] / 67.96 == pytest.approx(-0.14, abs=0.02)
    assert found.rmst == pytest.approx(67.96, rel=0.01)


def test_bounds_by_hand() -> None:
    one = cell(row("e1", "success", 10), row("e2", "censored", 30))
    found = timeout_bounds(one, 60 * NS)
    assert (found.worst, found.best) == (10 + 50 / 2, 10 + 20 / 2)
    sure = cell(row("h1", "success", 5), row("h2", "success", 5))
    ratio = hrt_bounds([sure], [one], 60 * NS)
    assert (ratio.worst, ratio.best) == (5 / 35, 5 / 20)


def test_bounds_hold_the_estimate_between_them() -> None:
    whole = simulate(Distribution(90.0, lost=0.05), 30, np.random.default_rng(3))
    found, value = timeout_bounds(whole, TAU_NS), rmst_with_error(whole.durations, TAU_NS)[0]
    assert found.best < value < found.worst


def test_items_that_get_harder_show_by_their_order() -> None:
    whole = simulate(Distribution(20.0, frailty=0.2, harder=1.4, budget_s=400.0), 300, np.random.default_rng(4))
    found = rmst_by_operation(whole, 400 * NS)
    assert found.index[:6].tolist() == [1, 2, 3, 4, 5, 6] and found.episodes[0] == 300
    assert (np.diff(found.rmst[:6]) > 0).all() and (np.diff(found.episodes) <= 0).all()


def test_truncation_by_hand() -> None:
    whole = cell(*[r | {"budget_s": 60, "end_s": 60} for r in MIXED])
    cut = truncated(whole, 28 * NS)
    assert cut.kind.tolist() == [0, 1, 1, 1]  # the drop at 30 s, and what came after, is no longer seen
    assert (cut.observed.time_ns / NS).tolist() == [10, 18, 28, 28]
    assert cut.moved.tolist() == [1, 0, 0] and cut.cause == ("", "budget", "budget", "budget")
    assert set(cut.budget_ns.tolist()) == set(cut.charged_ns.tolist()) == {28 * NS}
    assert truncated(whole, 60 * NS).kind.tolist() == whole.kind.tolist()


def test_truncating_is_the_same_as_having_stopped_earlier() -> None:
    distribution = Distribution(50.0, lost=0.1, budget_s=360.0)
    long = simulate(distribution, 80, np.random.default_rng(5))
    short = simulate(Distribution(50.0, lost=0.1, budget_s=180.0), 80, np.random.default_rng(5))
    cut = truncated(long, 180 * NS)
    for name in ("time_ns", "event", "episode"):
        assert np.array_equal(getattr(cut.durations, name), getattr(short.durations, name)), name
    assert cut.moved.tolist() == short.moved.tolist() and cut.charged_ns.tolist() == short.charged_ns.tolist()


@pytest.mark.parametrize(("cause", "by_a_person"), [("futility", 1), ("interlock", 0)])
def test_what_is_carried_to_the_budget_is_carried_to_the_one_it_was_cut_to(cause: str, by_a_person: int) -> None:
    whole = cell(row("e1", "success", 10, budget_s=90), row("e1", "censored", 5, cause=cause, budget_s=90))
    cut = truncated(whole, 60 * NS)
    assert (whole.durations.time_ns[1], whole.ended_early) == (80 * NS, by_a_person)
    assert (whole.charged_ns.tolist(), cut.charged_ns.tolist()) == ([90 * NS], [60 * NS])
    assert (cut.durations.time_ns[1], cut.observed.time_ns[1], cut.ended_early) == (50 * NS, 5 * NS, by_a_person)


def test_unequal_budgets_are_cut_to_the_shortest_and_it_is_said() -> None:
    rng = np.random.default_rng(6)
    cells = {
        ("a", "cup"): simulate(Distribution(50.0, budget_s=360.0), 9, rng, arm="a", obj="cup"),
        ("b", "cup"): simulate(Distribution(50.0, budget_s=180.0), 9, rng, arm="b", obj="cup"),
        ("a", "pan"): simulate(Distribution(50.0, budget_s=180.0), 9, rng, arm="a", obj="pan"),
    }
    cut, said = to_common_budget(cells)
    assert said == "every arm was cut to the shortest budget: 180 s at cup"
    assert {int(c.budget_ns.max()) // NS for c in cut.values()} == {180} and cut["a", "pan"] is cells["a", "pan"]
    assert to_common_budget(cut) == (cut, None)
    silent = cell(row("e1", "success", 5))
    with pytest.raises(ValueError, match="no budget_s for a on cup"):
        to_common_budget({("a", "cup"): silent})
    with pytest.raises(ValueError, match="lost an item at an unknown time"):
        truncated(cell(row("e1", "ghost", "")), NS)


def test_interventions_are_read_from_causes_or_not_at_all() -> None:
    assert intervention_rate([cell(*MIXED)]) == pytest.approx(1 / 3)  # one safety stop
    assert intervention_rate([cell(*(r | {"cause": ""} if r["kind"] == "censored" else r for r in MIXED))]) is None
    assert intervention_rate([cell(row("e1", "success", 1, cause="assist"), row("e2", "success", 1))]) == 0.5


def test_interventions_that_were_recorded_need_no_causes() -> None:
    touched = [row("e1", "success", 1, interventions=2), row("e2", "censored", 9, interventions=0)]
    assert intervention_rate([cell(*touched)], named=False) == 0.5
    assert intervention_rate([cell(*touched, row("e3", "ghost", 1, interventions="0", cause="safety_stop"))]) == (
        pytest.approx(2 / 3)
    )
    assert intervention_rate([cell(*touched, row("e3", "success", 1))], named=False) is None, "e3 says nothing"
    with pytest.raises(TableError, match="interventions is '-1'"):
        table_from_rows([row("e1", "success", 1, interventions=-1)])


def test_pp_and_qq_by_hand() -> None:
    arm = cell(row("e1", "success", 4), row("e2", "success", 8), row("e3", "ghost", 1), row("e4", "ghost", 1))
    human = cell(*(row(f"h{i}", "success", t) for i, t in enumerate((2, 4, 6, 8))))
    pp = pp_plot(arm, human, 10 * NS)
    assert pp.t.tolist() == [0, 2, 4, 6, 8]
    assert pp.reference == pytest.approx([0, 0.25, 0.5, 0.75, 1]) and pp.arm == pytest.approx([0, 0, 0.25, 0.25, 0.5])
    # 4 s beats 6 and 8 and ties with 4; 8 s ties with 8
    assert pp.area == pytest.approx((2.5 + 0.5) / 16)
    assert (pp.gap, pp.gap_t) == (0.5, 6.0)
    both = pair_of([arm], [human], 10 * NS)
    assert observed_statistics(both)["ks_macro"] == pytest.approx(pp.gap)
    qq = qq_plot(arm, human, 10 * NS)
    assert (qq.q.tolist(), qq.last) == ([0.25, 0.5], 0.5)
    assert (qq.reference_t.tolist(), qq.arm_t.tolist()) == ([2, 4], [4, 8])


def test_failures_by_cause() -> None:
    found = failure_modes([cell(*MIXED), cell(row("x", "censored", 60), row("y", "ghost", 2))])
    assert (found.operations, found.successes) == (8, 3)
    assert dict(found.counts) == {"budget": 1, "drop": 1, "lost": 1, "safety_stop": 1, "timed out": 1}
    assert found.shares["drop"] == pytest.approx(1 / 8) and found.episodes_with["safety_stop"] == pytest.approx(1 / 5)


def test_the_sweep_by_hand() -> None:
    # allowed 30 s: successes within are 10 and 25; S(30) = 5/6 · 4/5 · 1/2 as the success at 30 counts for F
    one = cell(row("e1", "success", 10), row("e2", "success", 40), row("e3", "ghost", 5))
    found = sweep(one, 60 * NS, (30, 60))
    assert found.uph == pytest.approx([360, 3600 / 25])
    areas = (10 + 20 * 2 / 3), (10 + 30 * 2 / 3 + 20 / 3)
    assert found.mtbf == pytest.approx([areas[0] / (2 / 3), areas[1] / (1 / 3)])
    assert found.charged == pytest.approx([3600 / 3 / areas[0], 3600 * 2 / 3 / areas[1]])
    sure = sweep(cell(row("e1", "success", 10)), 60 * NS, (5, 30))
    assert np.isnan(sure.uph[0]) and sure.charged[0] == 0
    assert sure.mtbf[1] == np.inf and sure.as_dict()["mtbf"][1] == "inf"


@pytest.mark.parametrize("cause", ["futility", "interlock"])
def test_a_sweep_carries_an_end_to_the_budget_so_that_no_arm_is_reliable_for_having_been_ended(cause: str) -> None:
    went = [row(f"e{i}", "success", 10, budget_s=90, end_s=10) for i in range(2)]
    ended = sweep(cell(*went, row("s", "censored", 30, cause=cause, budget_s=90, end_s=30)), 90 * NS, (45, 90))
    waited = sweep(cell(*went, row("s", "censored", 90, cause="budget", budget_s=90, end_s=90)), 90 * NS, (45, 90))
    assert ended.mtbf.tolist() == waited.mtbf.tolist() == pytest.approx([(10 + 35 / 3) * 3, (10 + 80 / 3) * 3])
    assert ended.charged.tolist() == waited.charged.tolist() and ended.uph.tolist() == waited.uph.tolist()


def test_an_arm_that_loses_items_looks_quick_only_where_losses_cost_nothing() -> None:
    careful = cell(*(row(f"e{i}", "success", 20) for i in range(4)))
    careless = cell(*(row(f"e{i}", "success", 10) for i in range(2)), *(row(f"g{i}", "ghost", 5) for i in range(2)))
    one, other = (sweep(c, 60 * NS, (60,)) for c in (careful, careless))
    assert other.uph[0] > one.uph[0] and other.charged[0] < one.charged[0]
    assert (one.charged[0], other.charged[0]) == pytest.approx((180, 3600 * 0.5 / 35))


@pytest.mark.parametrize(
    ("budget", "first", "last", "points"), [(40, 5, 40, 8), (100, 30, 100, 6), (120, 30, 120, 7), (360, 30, 240, 15)]
)
def test_no_point_of_a_sweep_lies_beyond_the_budget(budget: float, first: float, last: float, points: int) -> None:
    at = allowed(budget)
    assert (at[0], at[-1], len(at)) == (first, last, points) and at == sorted(set(at))
    one = cell({**row("e1", "success", 10), "budget_s": budget})
    assert sweep(one, 240 * NS).tau.tolist() == at


def test_the_reference_names_its_people() -> None:
    rows = [
        {**row("e1", "success", 1), "arm": "human", "operator": "p1+p2"},
        {**row("e2", "success", 1), "arm": "human", "operator": "p3"},
        {**row("e3", "success", 1), "operator": "p4"},
    ]
    assert teleoperators(table_from_rows(rows), "human") == ("p1", "p2", "p3")


def test_an_episode_is_staged_once() -> None:
    with pytest.raises(TableError, match=r"table:2: episode 'e1' has tote_side 'right' here and 'left' in line 1"):
        table_from_rows([row("e1", "success", 1, tote_side="left"), row("e1", "success", 1, tote_side="right")])
