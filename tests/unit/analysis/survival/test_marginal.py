"""Wang & Chang's estimator: what counts how much, in both kernels, as the primary of a result, near the truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.statistics.cohorts import NS, TAU_NS, durations, random_durations
from support.statistics.marginals import Paced, biases, coverage

from labctl.analysis.episodes.random_factors import anew
from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.operations_table.cautions import _of_cell
from labctl.analysis.operations_table.pair_effects import against_margin, ratio_interval, rmst_ratio
from labctl.analysis.survival import kernel_reference as reference
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import MOST_OF_UNSEEN, Replicates, clusters, few, rmst_replicates, unseen
from labctl.analysis.survival.curves import (
    KAPLAN_MEIER,
    WANG_CHANG,
    WHOLE,
    joined,
    marginal,
    rmst_influence,
    rmst_with_error,
)
from labctl.analysis.survival.event_order import event_order
from labctl.analysis.survival.hrt import hrt, rmst
from labctl.analysis.survival.kernel import Given, Redraw, Request, moments, pair_values
from labctl.analysis.survival.resample import stream_key
from labctl.analysis.table import table_from_rows
from labctl.errors import TableError

KEY = stream_key(0, "marginal")


def test_an_episode_counts_once_and_its_tail_only_where_nothing_else_ended() -> None:
    # 0: 10, 30 and a tail of 50; 1: nothing but a tail of 90; 2: a loss
    s = marginal(durations([10, 30, 50, 90, np.inf], [1, 1, 0, 0, 1], [0, 0, 0, 1, 2]))
    assert (s.time_ns[:3] / NS).tolist() == [10, 30, 90]
    assert s.episode.tolist() == [0, 0, 1, 2] and (s.weight / WHOLE).tolist() == [0.5, 0.5, 1, 1]
    # S: 5/6 from 10 s, 2/3 from 30 s on, the tail at 90 s no event
    assert rmst_with_error(s, 100 * NS)[0] == pytest.approx(10 + 20 * 5 / 6 + 70 * 2 / 3)


def test_its_error_is_the_derivative_with_respect_to_how_much_every_episode_counts() -> None:
    s = marginal(random_durations(np.random.default_rng(2), 9))
    value, by_episode = rmst_influence(s, TAU_NS)
    for episode in range(9):
        nudged = [replace(s, worth=s.weight * np.where(s.episode == episode, 1 + h, 1.0)) for h in (1e-5, -1e-5)]
        up, down = (rmst_with_error(each, TAU_NS)[0] for each in nudged)
        assert by_episode[episode] == pytest.approx((up - down) / 2e-5, abs=1e-5 * value)


@pytest.mark.parametrize("shared", [False, True])
def test_both_kernels_carry_rows_that_count_unequally(shared: bool) -> None:
    compiled = pytest.importorskip(
        "labctl.analysis.survival.kernel_fast", reason="no C compiler here", exc_type=ImportError
    )
    rng = np.random.default_rng(3)
    groups = [marginal(random_durations(rng, n, rounded=True)) for n in (11, 11, 11)]
    draw = Redraw((KEY,), (11,)) if shared else Redraw((KEY,) * 3, (11,) * 3)
    walk = event_order(groups, TAU_NS, shared=shared)
    slow, fast = (k.moments(walk, draw, range(40)) for k in (reference, compiled))
    assert fast.rmst == pytest.approx(slow.rmst, abs=1e-10)
    assert fast.covariance == pytest.approx(slow.covariance, rel=1e-10, abs=1e-8)


def test_a_replicate_is_the_estimate_of_the_episodes_written_out() -> None:
    s = random_durations(np.random.default_rng(4), 7)
    counts = [2, 0, 1, 3, 0, 1, 0]
    parts = [_only(s, episode) for episode, n in enumerate(counts) for _ in range(n)]
    value, se = rmst_with_error(marginal(joined(*parts)), TAU_NS)
    found = moments(event_order([marginal(s)], TAU_NS), Given(np.array([counts], float)), range(1))
    assert found.rmst[0, 0] == pytest.approx(value, abs=1e-10)
    assert math.sqrt(found.covariance[0, 0, 0]) == pytest.approx(se, abs=1e-10)


def test_no_other_statistic_is_made_of_rows_that_count_unequally() -> None:
    walk = event_order([marginal(random_durations(np.random.default_rng(5), 6))], TAU_NS)
    labels = np.array([[1.0, 1, 1, 0, 0, 0]])
    with pytest.raises(ValueError, match="count unequally"):
        pair_values(walk, Given(labels, 1 - labels), range(1), Request(0))


def rows(cells: dict[tuple[str, str], Cell]) -> list[dict[str, object]]:
    kinds = ("success", "censored", "ghost")
    return [
        {"episode": f"{arm}{obj}{e}", "arm": arm, "object": obj, "kind": kinds[k], "time_s": t / NS,
         "block": f"{obj}{e}", "session": f"s{e % 5}", "items_staged": 6,
         "end_s": cell.charged_ns[e] / NS, "budget_s": 360}
        for (arm, obj), cell in cells.items()
        for e, k, t in zip(cell.durations.episode, cell.kind, cell.durations.time_ns, strict=True)
    ]  # fmt: skip


def cohort(episodes: int = 12) -> dict[tuple[str, str], Cell]:
    rng = np.random.default_rng(6)
    laws = {"human": Paced(12.0), "policy": Paced(60.0), "other": Paced(75.0)}
    return {(arm, obj): law.cell(episodes, rng, arm, obj) for arm, law in laws.items() for obj in ("bolts", "nuts")}


def test_as_the_primary_everything_that_rests_on_rmst_is_made_of_it_and_the_pooled_one_stands_beside_it() -> None:
    table = table_from_rows(rows(cohort()))
    plan = {"reference": "human", "tau": 240.0, "boot": 199, "perm": 199}
    pooled, alike = (analyze(table, **plan, estimator=e) for e in (KAPLAN_MEIER, WANG_CHANG))  # type: ignore[arg-type]
    assert (pooled["estimator"], alike["estimator"]) == ("kaplan_meier", "wang_chang")
    for one, two in zip(pooled["cells"], alike["cells"], strict=True):
        assert one["rmst"] == pytest.approx(one["rmst_kaplan_meier"]) == two["rmst_kaplan_meier"]
        assert two["rmst"] == pytest.approx(two["rmst_wang_chang"]) == one["rmst_wang_chang"]
        if one["arm"] != "human":  # whose episodes all ended with as many operations
            assert two["rmst_se"] != one["rmst_se"] and two["rmst_ci"] != one["rmst_ci"]
        assert one["curve"] == two["curve"] and one["rmst_ci_percentile"] == two["rmst_ci_percentile"]
        low, high = two["rmst_wang_chang_ci"] or (0, 0)
        assert low < two["rmst_wang_chang"] < high
    by_arm = {arm["arm"]: arm["rmst"] or 0.0 for arm in alike["arms"]}
    for pair in alike["pairs"]:
        cells = {(c["arm"], c["object"]): c["rmst_wang_chang"] for c in alike["cells"]}
        ratios = [math.log(cells[pair["a"], o] / cells[pair["b"], o]) for o in pair["objects"]]
        assert pair["log_rmst_ratio"] == pytest.approx(sum(ratios) / 2, abs=1e-9)
        assert [at["log_rmst_ratio"] for at in pair["by_object"]] == pytest.approx(ratios, abs=1e-9)
        low, high = pair["log_rmst_ratio_ci"] or (0, 0)
        assert low < (pair["log_rmst_ratio"] or 0) < high
        assert (pair["rmst_a"], pair["rmst_b"]) == pytest.approx((by_arm[pair["a"]], by_arm[pair["b"]]))
    for one, two in zip(pooled["pairs"], alike["pairs"], strict=True):
        assert one["log_rmst_ratio"] != two["log_rmst_ratio"] and one["p"]["uph"] == two["p"]["uph"]
    assert [arm["hrt"] for arm in alike["arms"]] != [arm["hrt"] for arm in pooled["arms"]]
    further = [anew(table, result, ["session"])[0]["log_rmst_ratio"] for result in (pooled, alike)]
    assert further == pytest.approx([result["pairs"][0]["log_rmst_ratio"] for result in (pooled, alike)], abs=1e-9)


def test_blocks_are_drawn_whole_and_keep_what_arms_share() -> None:
    cells = cells_of(table_from_rows(rows(cohort())), WANG_CHANG)
    found = rmst_replicates(clusters(cells, TAU_NS, 0), 99)
    keys = [("policy", "bolts"), ("other", "bolts")]
    for key in keys:
        value, se = rmst_with_error(cells[key].timed, TAU_NS)
        assert (found.value[key], math.sqrt(found.covariance[key, key])) == pytest.approx((value, se), abs=1e-9)
    by_block = [rmst_influence(cells[key].timed, TAU_NS)[1] for key in keys]
    assert found.covariance[keys[0], keys[1]] == pytest.approx(float(by_block[0] @ by_block[1]), abs=1e-8)


def test_an_estimator_that_is_not_offered_is_refused() -> None:
    with pytest.raises(TableError, match="estimator is 'mean'; allowed are kaplan_meier and wang_chang"):
        analyze(table_from_rows(rows(cohort(2))), tau=240.0, estimator="mean")


def test_under_gamma_frailty_it_is_within_two_percent_where_the_pooled_one_is_not() -> None:
    # the truth is a formula: ∫ (1 + v t / m)^(-1/v), v = .5. 300 cells of 60 episodes; errors are Monte Carlo's
    for mean_s in (40.0, 90.0):
        found = biases(Paced(mean_s), 60, 300)
        bias, error = found[WANG_CHANG]
        assert abs(bias) < 0.02 + 2 * error and error < 0.01
        assert found[KAPLAN_MEIER][0] < -0.1


def test_its_intervals_reach_as_far_as_t_on_half_the_degrees_of_freedom_of_the_cell_of_fewest_episodes() -> None:
    # by hand, n = 7 and 9 episodes: t(.975, 6 / 2) = 3.182446, error x sqrt(7 / 6)
    laws = {("human", "bolts"): (Paced(12.0), 9), ("policy", "bolts"): (Paced(60.0), 7)}
    cells = {key: law.cell(n, np.random.default_rng(n), *key) for key, (law, n) in laws.items()}
    drawn = rmst_replicates(clusters(cells, TAU_NS, 0), 999)
    assert drawn.by_episode
    human, policy = ("human", "bolts"), ("policy", "bolts")
    error = {key: 3.182446 * math.sqrt(7 / 6 * drawn.covariance[key, key]) for key in cells}
    a, b = (drawn.value[key] for key in (human, policy))

    own = rmst(drawn, [policy], drawn.values, 240.0)
    rate = (1 / b + error[policy] / b**2, 1 / b - error[policy] / b**2)
    ends = own.interval or (0.0, 0.0)
    assert ends[0] <= 1 / rate[0] + 1e-4 and ends[1] >= min(1 / rate[1] if rate[1] > 0 else 240.0, 240.0) - 1e-3

    reach = math.hypot(error[human] / a, error[policy] / b)
    low, high = ratio_interval(rmst_ratio(drawn, [human], [policy])) or (0.0, 0.0)
    assert low <= math.log(a / b) - reach + 1e-4 and high >= math.log(a / b) + reach - 1e-4
    low, high = hrt(drawn, [human], [policy], drawn.values).interval or (0.0, 0.0)
    assert low <= a / b * math.exp(-reach) + 1e-4 and high >= a / b * math.exp(reach) - 1e-4


def test_over_several_objects_degrees_of_freedom_are_those_of_one_cell_which_may_carry_all_the_error() -> None:
    cells = {("a", o): Paced(60.0).cell(n, np.random.default_rng(n), "a", o) for o, n in (("x", 7), ("y", 9), ("z", 9))}
    drawn = rmst_replicates(clusters(cells, TAU_NS, 0), 9)
    keys = list(cells)
    assert [few(drawn, keys[:n]) for n in (1, 2, 3)] == [3, 6, 6]


def test_where_operations_count_alike_intervals_are_as_they_were() -> None:
    cell = Paced(60.0).cell(9, np.random.default_rng(1), "a", "bolts")
    cells = {("a", "bolts"): replace(cell, estimator=KAPLAN_MEIER)}
    drawn = rmst_replicates(clusters(cells, TAU_NS, 0), 999)
    assert not drawn.by_episode
    wide = replace(drawn, by_episode=True)
    one, two = (rmst(found, [("a", "bolts")], found.values, 240.0).interval or (0, 0) for found in (drawn, wide))
    assert two[0] <= one[0] and two[1] > one[1]


def test_a_margin_is_shown_exactly_where_the_wider_interval_lies_within_it() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        cells = {(arm, "bolts"): Paced(30.0).cell(8, rng, arm, "bolts") for arm in "ab"}
        drawn = rmst_replicates(clusters(cells, TAU_NS, seed), 999)
        ratio = rmst_ratio(drawn, [("a", "bolts")], [("b", "bolts")])
        for width in (1.5, 2.0, 3.0):
            (found,) = against_margin(
                {("a", "b"): ratio}, {"rmst_ratio": width, "non_inferior_to": None}, 240.0, 0.05, None
            ).values()
            low, high = found["ci"] or (-9.0, 9.0)
            within = -math.log(width) <= low and high <= math.log(width)
            assert found["shown"] == within or found["unable"]


def test_its_intervals_hold_the_truth_at_ten_episodes_a_cell() -> None:
    found = coverage((Paced(90.0), Paced(117.0)), 10, range(150))
    for name in ("RMST over four objects", "ratio over four objects"):
        assert found[name] >= 0.94 - 4 * math.sqrt(0.94 * 0.06 / 150), name


@pytest.mark.thorough
def test_at_ten_episodes_they_hold_the_truth_of_the_quickest_arm_too() -> None:
    # RMST 18.5 s: bootstrap-t alone holds it in .908 of cells, .928 over four objects, the ratio in .910 (2,000 runs)
    found = coverage((Paced(10.0), Paced(13.0)), 10, range(600))
    for name, share in found.items():
        assert share >= 0.94 - 2 * math.sqrt(0.94 * 0.06 / 600), name


def _only(s, episode: int):
    kept = s.episode == episode
    return replace(s, time_ns=s.time_ns[kept], event=s.event[kept], episode=np.zeros(kept.sum(), int), episodes=1)


def test_a_quick_arm_of_few_episodes_has_few_degrees_of_freedom_since_it_may_have_met_no_slow_one() -> None:
    # 20 episodes of 18.5 s of tau 240 s held the truth in .939 of 3,000 cells by (n - 1) / 2 degrees, in .953 by 6
    assert unseen(18.5, 20, 240.0) and unseen(18.5, 40, 240.0) and not unseen(60.0, 20, 240.0)
    keys = [("a", "x"), ("a", "y")]
    value, held = dict.fromkeys(keys, 18.5), dict.fromkeys(keys, 20)
    found = Replicates(value, {}, {}, {}, held, frozenset(), True, 240.0)
    assert few(found, keys[:1]) == MOST_OF_UNSEEN and few(found, keys) == 2 * MOST_OF_UNSEEN
    slow = replace(found, value=dict.fromkeys(keys, 60.0))
    assert few(slow, keys[:1]) == 9.5 and few(slow, keys) == 19


def test_the_caution_of_such_an_arm_says_what_one_more_episode_would_do() -> None:
    cell = replace(Paced(10.0).cell(20, np.random.default_rng(5)), budget_ns=np.full(20, 360 * NS))
    said = [text for text in _of_cell(cell, TAU_NS) if "stuck until tau" in text]
    assert len(said) == 1 and "20 may have met none of that kind" in said[0]
    assert not [text for text in _of_cell(replace(cell, estimator="kaplan_meier"), TAU_NS) if "stuck" in text]
