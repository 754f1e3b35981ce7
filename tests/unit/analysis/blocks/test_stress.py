"""Responses along levels with exact intervals, cliffs that luck does not make, lateness by rank, tasks by arms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.blocks.heatmap import depends, heatmap
from labctl.analysis.blocks.means import mean_score
from labctl.analysis.blocks.stress import Stressed, cliffs, level_order, responses


def episodes(rates: list[float], each: int, rng: np.random.Generator, arm: str = "p") -> list[Stressed]:
    return [
        Stressed(arm, "lag", f"v{k + 1}", float(rng.random() < rate), f"s{i}")
        for k, rate in enumerate(rates)
        for i in range(each)
    ]


def test_the_mean_of_successes_is_exact_and_of_scores_by_t() -> None:
    # Clopper-Pearson of 8 of 10: .4439 to .9748
    won = mean_score(np.r_[np.ones(8), 0, 0, np.nan])
    assert (won.episodes, won.mean) == (10, 0.8) and won.ci == pytest.approx((0.4439, 0.9748), abs=5e-5)
    x = np.array([0.2, 0.5, 0.75, 0.9])
    own = stats.t.interval(0.95, 3, x.mean(), stats.sem(x))
    assert mean_score(x).ci == pytest.approx((own[0], 1.0)) and own[1] > 1
    assert mean_score(np.array([])).mean is None and mean_score(np.array([0.5])).ci is None


def test_levels_stand_in_their_order_and_not_in_that_of_scores() -> None:
    assert level_order(["v10", "v2", "v1"]) == ["v1", "v2", "v10"]
    assert level_order(["hard", "easy", "medium"]) == ["easy", "medium", "hard"]
    assert level_order(["200 ms", "0 ms", "50 ms"]) == ["0 ms", "50 ms", "200 ms"]
    rows = [Stressed("a", "lag", "v2", 1.0), Stressed("a", "lag", "v1", 0.0), Stressed("b", "lag", "v1", 0.5)]
    rows.append(Stressed("a", "blur", "v1", math.nan))
    assert [(r.family, r.level, r.arm, r.score) for r in responses(rows)] == [
        *(("lag", "v1", "a", 0.0), ("lag", "v1", "b", 0.5), ("lag", "v2", "a", 1.0)),
    ]


def test_a_cliff_is_found_where_success_breaks() -> None:
    (found,) = cliffs(episodes([0.9, 0.9, 0.1, 0.1], 12, np.random.default_rng(0)), perm=999)
    assert (found.holds, found.breaks) == ("v2", "v3") and found.p == 0.001 and found.same > 0.8
    assert found.before - found.after > 0.6


def test_the_statistic_is_the_two_sample_t_and_its_p_that_of_a_permutation() -> None:
    rng = np.random.default_rng(3)
    score, at = rng.uniform(0, 1, 8), np.repeat([0, 1], 4)
    rows = [Stressed("p", "f", f"v{k}", s) for k, s in zip(at, score, strict=True)]
    (found,) = cliffs(rows, perm=4999)
    exact = stats.permutation_test(
        (score[:4], score[4:]), lambda x, y: x.mean() - y.mean(), n_resamples=np.inf, alternative="greater"
    ).pvalue
    assert found.p == pytest.approx(exact, abs=4 * found.error + 2e-4)


def test_a_flat_response_has_a_cliff_by_luck_as_often_as_its_level() -> None:
    rng, runs = np.random.default_rng(1), 150
    for sets in (True, False):
        called = 0
        for _ in range(runs):
            rows = episodes([0.6] * 4, 8, rng)
            rows = rows if sets else [Stressed(r.arm, r.family, r.level, r.score) for r in rows]
            called += sum(one.p <= 0.05 for one in cliffs(rows, perm=199))
        assert called / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_without_levels_or_spread_there_is_no_cliff() -> None:
    assert cliffs([Stressed("a", "f", "v1", 1.0), Stressed("a", "f", "v1", 0.0)]) == []
    assert cliffs([Stressed("a", "f", f"v{k}", 1.0) for k in range(3)]) == []


def test_hard_tasks_and_pairs_that_lead_at_different_tasks() -> None:
    rng = np.random.default_rng(0)
    rates = {"pour": (0.9, 0.1), "fold": (0.1, 0.9), "stack": (0.05, 0.0), "wipe": (0.7, 0.7)}
    task, block, arm, score = [], [], [], []
    for name, pair in rates.items():
        for i in range(20):
            for own, rate in zip("ab", pair, strict=True):
                task.append(name), block.append(f"{i}"), arm.append(own), score.append(float(rng.random() < rate))
    found = heatmap(task, block, arm, np.array(score))
    assert found.tasks == tuple(rates) and found.cells[0][0].episodes == 20 and found.cells[0][0].ci is not None
    assert [one.task for one in found.hard] == ["stack"] and found.hard[0].ci is not None
    (pair,) = found.complementary
    assert "pour" in pair.a_leads and "fold" in pair.b_leads and pair.p_holm < 0.001
    assert pair.together > pair.single
    assert heatmap(task, block, arm, np.ones(len(task))).complementary == ()


def test_pairs_without_a_difference_by_task_are_rarely_complementary() -> None:
    rng, runs, called = np.random.default_rng(5), 25, 0
    task = [f"t{k}" for k in range(6) for _ in range(10) for _ in "abc"]
    block, arm = [str(i) for i in range(60) for _ in "abc"], list("abc") * 60
    for _ in range(runs):
        called += len(heatmap(task, block, arm, (rng.random(180) < 0.5) * 1.0).complementary) > 0
    assert called / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_tasks_of_one_block_do_not_make_a_difference_depend_on_the_task() -> None:
    """Success .95 of either arm, three tasks of one block and one of thirty: F of the blocks rejects .17 of these."""
    rng, runs, found = np.random.default_rng(5), 400, 0
    at = [np.arange(size) + start for size, start in ((1, 0), (1, 1), (1, 2), (30, 3))]
    for _ in range(runs):
        d = (rng.random(33) < 0.95) * 1.0 - (rng.random(33) < 0.95)
        found += depends([d[own] for own in at], at, 0.05, perm=199) <= 0.05
    assert found / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_blocks_of_a_set_are_one_unit_of_a_task() -> None:
    """Two tasks of four sets, all blocks of a set alike: 24 blocks each, and the p of four against four, 2 / 70."""
    signs = [np.repeat([1.0, 1.0, 1.0, 1.0], 6), np.repeat([-1.0, -1.0, -1.0, -1.0], 6)]
    sets = [np.repeat(np.arange(4), 6), np.repeat(np.arange(4, 8), 6)]
    assert depends(signs, sets, 0.05) == pytest.approx(2 / 70, abs=0.006)
    within = [np.repeat(np.arange(4), 6)] * 2
    assert depends(signs, within, 0.05) == pytest.approx(2 / 16, abs=0.012), "both tasks in each of four sets"


def test_the_cell_of_a_task_is_as_sure_as_its_sets_are_many() -> None:
    alike = np.repeat([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], 6)
    task, block, arm = ["t"] * 36, [str(i) for i in range(36)], ["a"] * 36
    alone = heatmap(task, block, arm, alike).cells[0][0].ci
    whole = heatmap(task, block, arm, alike, unit=[str(i // 6) for i in range(36)]).cells[0][0].ci
    assert alone is not None and whole is not None
    assert whole[1] - whole[0] > 1.8 * (alone[1] - alone[0])
