"""Latency that was added against what is left of the score: by level, paired in sets, and late episodes by rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.blocks.added_latency import Delayed, late_episodes, lateness_of
from labctl.analysis.blocks.means import Draws

DRAWS = Draws(0, 499)
ADDED = {"base": 0.0, "v1": 0.2, "v2": 0.5}


def rows(cost: float, *, sets: int = 40, seed: int = 0, without: str = "") -> list[Delayed]:
    """An arm that loses `cost` of its score at v2 and nothing at v1."""
    rng, made = np.random.default_rng(seed), []
    for at in range(sets):
        luck = rng.random() * 0.3
        for level, added in ADDED.items():
            score = 0.6 + luck - cost * (level == "v2") + 0.05 * rng.standard_normal()
            if level != without:
                made.append(Delayed("a", level, added, 0.1 + added + 0.02 * rng.random(), score, f"s{at}"))
    return made


def test_each_level_has_its_score_what_was_measured_and_what_is_kept_of_its_base() -> None:
    found = lateness_of(rows(0.4), "score", 0.95, DRAWS)
    assert found is not None and found["measure"] == "score"
    base, v1, v2 = found["levels"]
    assert [one["level"] for one in found["levels"]] == ["base", "v1", "v2"]
    assert (base["kept"], base["sets"], base["episodes"]) == (None, 0, 40)
    assert [one["measured_s"] - one["added_s"] for one in (base, v1, v2)] == pytest.approx([0.11] * 3, abs=0.01)
    assert v1["kept_ci"][0] < 0 < v1["kept_ci"][1], "it keeps all"
    assert v2["kept_ci"][0] < -0.4 < v2["kept_ci"][1] < 0
    assert v2["kept"] == pytest.approx(v2["score"] - base["score"]), "every set has both"


def test_kept_is_paired_within_sets_and_so_sharper_than_the_levels_by_themselves() -> None:
    found = lateness_of(rows(0.4), "score", 0.95, DRAWS)
    base, _, v2 = found["levels"]
    alone = (base["ci"][1] - base["ci"][0]) + (v2["ci"][1] - v2["ci"][0])
    assert v2["kept_ci"][1] - v2["kept_ci"][0] < alone / 2


def test_lateness_is_a_rank_correlation_of_each_arm() -> None:
    rng = np.random.default_rng(2)
    late = rng.gamma(2, 0.1, 40)
    adapted = np.where(rng.random(40) < np.exp(-5 * late), 1.0, 0.0)
    late[0], arm = np.nan, ["p"] * 30 + ["q"] * 10
    found = {one["arm"]: one for one in late_episodes(arm, late, adapted)}
    own = stats.spearmanr(late[1:30], adapted[1:30])
    assert found["p"]["episodes"] == 29 and found["p"]["rho"] == pytest.approx(own.statistic)
    assert found["p"]["p"] == pytest.approx(own.pvalue, abs=0.02) and found["p"]["p_error"] is not None
    assert late_episodes(["a"] * 4, np.ones(4), np.array([1.0, 0, 1, 0]))[0]["rho"] is None
    assert late_episodes(["a"], np.array([np.nan]), np.ones(1)) == []


def test_late_episodes_are_ranked_over_all_levels() -> None:
    own = rows(0.4)
    (found,) = lateness_of(own, "score", 0.95, DRAWS)["within"]
    columns = np.array([r.measured_s for r in own]), np.array([r.score for r in own])
    assert [found] == late_episodes(["a"] * len(own), *columns) and found["rho"] < -0.3


@pytest.mark.parametrize("without", ["base", "v1"])
def test_a_base_without_levels_and_levels_without_a_base_have_no_such_figure(without: str) -> None:
    own = [row for row in rows(0.4, without=without) if row.level in ("base", "v1")]
    assert lateness_of(own, "score", 0.95, DRAWS) is None


def test_an_episode_without_a_score_or_a_trace_is_left_out_of_what_needs_it() -> None:
    own = [*rows(0.0), Delayed("a", "v2", 0.5, np.nan, 0.5, "s0"), Delayed("a", "v2", 0.5, 0.6, np.nan, "s0")]
    found = lateness_of(own, "score", 0.95, DRAWS)
    assert found["levels"][2]["episodes"] == 41
    assert found["within"][0]["episodes"] == 120
