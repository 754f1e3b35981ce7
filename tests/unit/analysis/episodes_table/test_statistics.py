"""Each statistic of an episodes table against its reference: another program's answer, or a worked example."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.binary.paired import mcnemar
from labctl.analysis.blocks.anytime import paired_monitor
from labctl.analysis.blocks.means import Draws, mean_over_units
from labctl.analysis.blocks.swaps import sign_flip_p
from labctl.analysis.episodes_report import arms_section, claims
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.analyze import analyze, block_row
from labctl.analysis.episodes_table.cohort import Plan, cohort_of
from labctl.analysis.episodes_table.order import order_of
from labctl.analysis.episodes_table.pairs import as_sets_end
from labctl.analysis.episodes_table.ranks import cochran, friedman, rank_intervals, ranked
from labctl.analysis.episodes_table.table import EpisodesTable, table_from_rows
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.operations_table.analyze import dumps
from labctl.analysis.table import Row
from labctl.errors import TableError

QUICK = Plan(boot=999, perm=999)
ROUNDING = """5.40 5.50 5.55 5.85 5.70 5.75 5.20 5.60 5.50 5.55 5.50 5.40 5.90 5.85 5.70 5.45 5.55 5.60 5.40 5.40 5.35
5.45 5.50 5.35 5.25 5.15 5.00 5.85 5.80 5.70 5.25 5.20 5.10 5.65 5.55 5.45 5.60 5.35 5.45 5.05 5.00 4.95 5.50 5.50 5.40
5.45 5.55 5.50 5.55 5.55 5.35 5.45 5.50 5.55 5.50 5.45 5.25 5.65 5.60 5.40 5.70 5.65 5.55 6.30 6.30 6.25"""


def table(values: dict[str, list[float | None]], column: str = "score", **more: list[str]) -> EpisodesTable:
    """One block a place; `more` are columns of the block."""
    rows = [
        {"block": f"b{i}", "arm": arm, column: v[i], **{name: told[i] for name, told in more.items()}}
        for i in range(len(next(iter(values.values()))))
        for arm, v in values.items()
        if v[i] is not None
    ]
    return table_from_rows(rows)


def test_friedman_is_that_of_r() -> None:
    """R's friedman.test on Hollander & Wolfe (1973) table 7.1, its own example: 11.143 on 2, p = 0.003805."""
    chi2, p = friedman(np.array(ROUNDING.split(), dtype=float).reshape(22, 3))
    assert chi2 == pytest.approx(11.143, abs=5e-4) and p == pytest.approx(0.003805, abs=5e-7)


def test_friedman_with_ties_is_that_of_scipy() -> None:
    grid = np.random.default_rng(0).integers(0, 3, (15, 5)).astype(float)
    assert friedman(grid) == pytest.approx(tuple(stats.friedmanchisquare(*grid.T)), rel=1e-12)
    assert friedman(np.ones((4, 3))) == (None, None) and friedman(np.empty((0, 3))) == (None, None)


def test_cochrans_q_is_that_of_sas() -> None:
    """SAS/STAT, FREQ, example of three drugs in 46 patients: Q = 8.4706, p = 0.0145."""
    counts = (6, 16, 2, 4, 2, 4, 6, 6)
    grid = np.repeat(np.array(list(itertools.product((1.0, 0.0), repeat=3))), counts, axis=0)
    q, p = cochran(grid)
    assert q == pytest.approx(8.4706, abs=5e-5) and p == pytest.approx(0.0145, abs=5e-5)


def test_cochrans_q_of_two_arms_is_mcnemars_chi_square() -> None:
    """(b - c)^2 / (b + c): 9 and 3 discordant pairs give 3."""
    grid = np.array([[1, 0]] * 9 + [[0, 1]] * 3 + [[1, 1]] * 5, dtype=float)
    assert cochran(grid)[0] == pytest.approx(3.0)


@pytest.mark.parametrize("step", [0.25, 1 / 3, 0.05, None])
def test_exchanges_are_those_that_scipy_lists(step: float | None) -> None:
    rng = np.random.default_rng(3)
    differences = rng.uniform(-1, 1, 11) if step is None else step * rng.integers(-3, 5, 11)
    reference = stats.permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=np.inf)
    found = sign_flip_p(differences, 0, 49_999, "x")
    assert found == (pytest.approx(reference.pvalue, abs=1e-12), 0.0)


def test_exchanges_of_successes_are_mcnemars_exact_test() -> None:
    differences = np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 20 + [np.nan])
    assert sign_flip_p(differences, 0, 10, "x") == (pytest.approx(mcnemar(9, 2).p_exact, rel=1e-12), 0.0)


def test_a_p_of_random_exchanges_has_its_monte_carlo_error() -> None:
    found = sign_flip_p(np.random.default_rng(1).normal(0.2, 1, 40), 0, 999, "x")
    assert found is not None and found[1] == pytest.approx(2 * share_error(found[0] / 2, 1000))


def test_a_mean_without_spread_keeps_the_exact_binomial_interval() -> None:
    """No success in ten: 1 - (.05 / 2)^(1 / 10) = .3085."""
    found = mean_over_units(np.zeros(10), np.arange(10), 0.0, 1.0, Draws(0, 99))
    assert found.value == 0 and found.interval == pytest.approx((0, 0.3085), abs=5e-5)
    same = mean_over_units(np.zeros(10), np.arange(10), -1.0, 1.0, Draws(0, 99))
    assert same.interval is not None and same.interval[0] == pytest.approx(-same.interval[1]) and same.interval[1] > 0.5


def test_a_bootstrap_t_interval_is_near_that_of_scipy_and_wider_by_sets() -> None:
    """Symmetric values: near t; values that go together in sets of four carry a fourth of the information."""
    rng = np.random.default_rng(5)
    values = rng.uniform(0.3, 0.7, 40)
    alone = mean_over_units(values, np.arange(40), 0.0, 1.0, Draws(0, 4999))
    t = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert alone.interval == pytest.approx(t, abs=0.003)
    together = mean_over_units(np.repeat(values[:10], 4), np.repeat(np.arange(10), 4), 0.0, 1.0, Draws(0, 4999))
    ten = mean_over_units(values[:10], np.arange(10), 0.0, 1.0, Draws(0, 4999))
    assert together.interval == pytest.approx(ten.interval, abs=1e-9)


def test_ranks_share_the_better_one_and_their_intervals_come_from_pairs_told_apart() -> None:
    assert ranked({"a": 0.5, "b": 0.9, "c": 0.5, "d": None}) == {"a": 2, "b": 1, "c": 2, "d": None}
    intervals = rank_intervals(["a", "b", "c"], {("b", "a"), ("b", "c")})
    assert intervals == {"a": (2, 3), "b": (1, 1), "c": (2, 3)}


def test_who_wins_counts_a_tie_one_half_and_the_verdict_names_who_is_better() -> None:
    better, worse = [1.0, 1.0, 0.75, 1.0] * 5, [0.25, 0.5, 0.75, 0.0] * 5
    result = analyze(table({"good": better, "bad": worse}), QUICK)
    (pair,) = result["pairs"]
    assert (pair["a"], pair["b"], pair["blocks"], pair["win"]) == ("bad", "good", 20, 0.125)
    assert pair["verdict"] == "better" and pair["score_difference"] == pytest.approx(-0.5625)
    assert [(arm["rank"], arm["rank_ci"], arm["letters"]) for arm in result["arms"]] == [
        (2, [2, 2], "b"),
        (1, [1, 1], "a"),
    ]
    assert pair["p"]["success"] is None and pair["p"]["mcnemar"] is None and result["arms"][0]["rate"] is None


def test_an_arm_says_of_how_many_judged_episodes_its_successes_are() -> None:
    """Five episodes each, of which it is known of three and of five whether they succeeded; none and two did."""
    rows = [{"block": f"b{i}", "arm": "x", "score": 0.5, "success": [0, 0, 0, None, None][i]} for i in range(5)]
    rows += [{"block": f"b{i}", "arm": "y", "score": 0.5, "success": [0, 1, 0, 1, 0][i]} for i in range(5)]
    result = analyze(table_from_rows(rows), QUICK)
    of = {arm["arm"]: arm for arm in result["arms"]}
    assert [(of[a]["episodes"], of[a]["judged"], of[a]["successes"]) for a in "xy"] == [(5, 3, 0), (5, 5, 2)]
    shown = words.arms(result)
    column = shown.headings.index("succeeded / judged")
    assert {row[0]: row[column] for row in shown.rows} == {"x": "0 / 3", "y": "2 / 5"}
    table = arms_section.main_table(result)
    at = [head.label for head in table.columns].index("Succeeded / episodes")
    assert {row[0]: row[at] for row in table.rows} == {"x": "0 / 3", "y": "2 / 5"}
    voids = arms_section.void_table(result, {"y": 3})
    assert voids is not None
    assert {row[0]: row[2:4] for row in voids.rows} == {"x": ("0.0", "0.0"), "y": ("40.0", "25.0")}, "2 of 5, of 8"
    only = arms_section.void_table(result, {"y": 3}, {"y": 1})
    assert only is not None
    assert {row[0]: row[1:] for row in only.rows}["y"] == ("3", "40.0", "33.3", "0.500", "0.312"), (
        "two judge no success"
    )


def test_where_every_episode_is_judged_the_table_has_no_further_column() -> None:
    headings = words.arms(analyze(table({"x": [1, 0], "y": [0, 0]}, "success"), QUICK)).headings
    assert "succeeded" in headings and not [head for head in headings if "judged" in head]


def test_a_pair_without_a_shared_block_says_nothing() -> None:
    result = analyze(table({"x": [1, None], "y": [None, 0]}, "success"), QUICK)
    (pair,) = result["pairs"]
    assert (pair["blocks"], pair["win"], pair["p_holm"], pair["verdict"]) == (0, None, None, None)
    assert result["blocks"]["complete"] == 0 and result["blocks"]["friedman_p"] is None


def test_blocks_of_a_set_count_as_one_unit() -> None:
    values = {"x": [1.0, 1.0] * 6, "y": [0.5, 0.25] * 6}
    alone, together = (analyze(t, QUICK) for t in (table(values), table(values, set=[f"s{i // 4}" for i in range(12)])))
    assert alone["pairs"][0]["p"]["score"] == pytest.approx(2 / 2**12)
    assert together["pairs"][0]["p"]["score"] == pytest.approx(2 / 2**3)
    assert "12 blocks in 3 sets" in " ".join(together["warnings"])
    assert [found["pairs"][0]["units"] for found in (alone, together)] == [12, 3]
    (on_blocks,), (on_sets,) = claims.claims(alone), claims.claims(together)
    assert "as few as" not in on_blocks.text
    assert on_sets.text.endswith(" This rests on as few as 3 sets of blocks of both, which give no p below 0.25.")


def test_a_set_is_looked_at_once_at_its_last_block() -> None:
    """Eight blocks of one sign would stop; as two sets of four they are two differences, after blocks 4 and 8."""
    values: dict[str, list[float | None]] = {"x": [1.0] * 8, "y": [0.0] * 8}
    alone, whole = (analyze(t, QUICK)["pairs"][0] for t in (table(values), table(values, set=[*"aaaabbbb"])))
    assert alone["stop_block"] is not None and whole["stop_block"] is None
    assert whole["sequence"] is not None
    two = paired_monitor(np.array([np.nan] * 3 + [1.0] + [np.nan] * 3 + [1.0]))
    assert whole["sequence"]["e_value"] == pytest.approx(two.e_value.tolist()) and len(two.e_value) == 8
    cohort = cohort_of(table({"x": [1.0, 0.5, 0.0], "y": [0.0, None, 0.0]}, set=["s", "s", "s"]))
    found = as_sets_end(cohort, cohort.difference(cohort.measure, ("x", "y")))
    assert found[2] == 0.5 and np.isnan(found[:2]).all()


def test_time_to_success_is_that_of_lifelines_and_an_early_end_counts_to_the_full_budget() -> None:
    lifelines = pytest.importorskip("lifelines")
    from lifelines.utils import restricted_mean_survival_time

    rng = np.random.default_rng(2)
    times, rows = rng.exponential(40, 30), []
    for i, time in enumerate(times):
        done = time < 60
        row = {"block": f"b{i}", "success": int(done), "budget_s": 60}
        rows += [{**row, "arm": "x", "time_s": time if done else 7.0}]  # ended early, at 7 s
        rows += [{**row, "arm": "person", "success": 1, "time_s": 10.0 + i / 10}]
    result = analyze(table_from_rows(rows), Plan(reference="person", boot=999))
    of = {arm["arm"]: arm for arm in result["arms"]}
    fitted = lifelines.KaplanMeierFitter().fit(np.minimum(times, 60), times < 60)
    assert of["x"]["rmst"] == pytest.approx(restricted_mean_survival_time(fitted, 60), abs=1e-6)
    assert of["person"]["rmst"] == pytest.approx(11.45) and of["person"]["hrt"] == 1.0
    assert of["x"]["hrt"] == pytest.approx(11.45 / of["x"]["rmst"])
    low, high = of["x"]["hrt_ci"] or (1, 0)
    assert low < of["x"]["hrt"] < high


def test_a_success_that_was_not_timed_is_in_no_rmst_and_that_is_said() -> None:
    rows = [{"block": i, "arm": "x", "success": 1, "time_s": "" if i == 3 else 5, "budget_s": 60} for i in range(5)]
    result = analyze(table_from_rows(rows), QUICK)
    assert result["arms"][0]["rmst"] == 5 and "1 episode without a time" in " ".join(result["warnings"])


def timed(arm: str, successes: list[float | None], failed: int, time: float | None, budget: float | None) -> list[Row]:
    """Rows of an arm: a success a time, then `failed` episodes without success that have this time; all this budget."""
    ends = [*((1, own) for own in successes), *((0, time) for _ in range(failed))]
    rows = [{"success": done, "time_s": own} for done, own in ends]
    return [{"block": i, "arm": arm, "budget_s": budget, **row} for i, row in enumerate(rows)]


def test_an_arm_whose_failures_have_neither_time_nor_budget_has_no_rmst() -> None:
    """Three of twenty successes at 5 s are not "5 s to success": an arm with times of all its episodes keeps its."""
    rows = [*timed("a", [5.0] * 3, 17, None, None), *timed("ref", [10.0] * 18, 2, 30.0, None)]
    rows += timed("b", [20.0] * 20, 0, None, None)
    result = analyze(table_from_rows(rows), replace(QUICK, reference="ref"))
    of = {arm["arm"]: arm for arm in result["arms"]}
    assert [of["a"][key] for key in ("rmst", "rmst_ci", "hrt", "hrt_ci", "curve")] == [None] * 5
    assert of["ref"]["rmst"] == 12 and of["b"]["rmst"] == 20 and of["b"]["hrt"] == pytest.approx(0.6)
    (said,) = [text for text in result["warnings"] if text.startswith("a has no RMST")]
    assert "17 episodes without success and with neither budget_s nor time_s" in said
    known = analyze(table_from_rows([*timed("a", [5.0] * 3, 17, None, 30.0), *timed("b", [9.0], 0, None, 30.0)]), QUICK)
    assert known["arms"][0]["rmst"] == pytest.approx(0.15 * 5 + 0.85 * 30), "a budget says how long they went on"
    alone = analyze(table_from_rows(timed("a", [5.0] * 3, 17, None, None)), QUICK)
    assert alone["tau"] is None and alone["warnings"] == [said]


def test_an_arm_most_of_whose_successes_were_not_timed_has_no_rmst() -> None:
    rows = [*timed("a", [5.0, *[None] * 17], 2, None, 60.0), *timed("b", [9.0, None, *[8.0] * 8], 2, None, 60.0)]
    result = analyze(table_from_rows(rows), QUICK)
    assert result["arms"][0]["rmst"] is None and result["arms"][1]["rmst"] is not None
    (first,) = [text for text in result["warnings"] if text.startswith("a has")]
    assert first == "a has no RMST: 17 of its 18 successes have no time (time_s)"
    (second,) = [text for text in result["warnings"] if "1 episode without a time" in text]
    assert "in which b succeeded; without them it can look slower than it is" in second


def test_a_tau_beyond_every_budget_is_refused() -> None:
    rows = [*timed("a", [5.0] * 3, 2, None, 30.0), *timed("b", [9.0] * 3, 2, None, 20.0)]
    with pytest.raises(TableError, match=r"tau is 300; allowed is a time above 0 s, at most the episode's budget"):
        analyze(table_from_rows(rows), replace(QUICK, tau_s=300.0))
    found = analyze(table_from_rows(rows), replace(QUICK, tau_s=30.0))
    assert found["tau"] == 30 and "2 episodes had a budget below tau (30 s)" in " ".join(found["warnings"])


def test_a_funnel_counts_episodes_that_ended_before_a_stage_as_never_reaching_it() -> None:
    """Four episodes; the second stage reached at 8 and 20 s by two: half of four by 20 s, three quarters never."""
    times = [(2.0, 8.0), (3.0, 20.0), (5.0, None), (None, None)]
    rows = [
        {"block": i, "arm": "x", "score": 0, "stage_1_s": one, "stage_2_s": two, "stage_3_s": None}
        for i, (one, two) in enumerate(times)
    ]
    stages = analyze(table_from_rows(rows), QUICK)["arms"][0]["stages"]
    assert [(s["stage"], s["reached"], s["median_s"]) for s in stages] == [(1, 3, 3.0), (2, 2, 20.0), (3, 0, "inf")]
    low, high = stages[0]["ci"] or (0, 0)
    assert (low, high) == pytest.approx(stats.binomtest(3, 4).proportion_ci(method="exact"))


def test_position_is_tested_over_complete_blocks_and_carry_over_is_found() -> None:
    rng = np.random.default_rng(4)
    rows, arms = [], ["x", "y", "z"]
    for block in range(60):
        order = rng.permutation(3)
        for place, arm in enumerate(order):
            after_z = place > 0 and order[place - 1] == 2
            score = float(np.clip(0.5 + 0.1 * rng.standard_normal() + 0.3 * after_z, 0, 1))
            rows.append({"block": block, "arm": arms[arm], "score": round(score, 3), "position": place + 1})
    cohort = cohort_of(table_from_rows(rows))
    order = order_of(cohort, Plan(perm=499))
    assert order["after_p"] == pytest.approx(1 / 500) and max(order["after"], key=lambda a: order["after"][a]) == "z"
    grid = np.sort(np.stack([cohort.position, cohort.position]), axis=0)[0]
    ran = np.take_along_axis(cohort.score, np.argsort(grid, axis=1), axis=1)
    assert block_row(cohort)["position_chi2"] == pytest.approx(stats.friedmanchisquare(*ran.T).statistic)


def test_the_same_seed_gives_the_same_bytes_and_every_key_is_there() -> None:
    made = table({"x": [0.3, 0.9, 0.31, 0.62], "y": [0.1, 0.2, 0.33, 0.47]})
    first, again = (dumps(analyze(made, QUICK)) for _ in range(2))
    assert first == again and dumps(analyze(made, Plan(boot=999, perm=999, seed=1))) != first
    result = analyze(made, QUICK)
    fixed = "schema seed alpha blocks arms pairs preference factors axes tags retention stress warnings"
    further = "measure reference tau order families cliffs compositions tasks enough"
    assert {*result} == {*fixed.split(), *further.split()}
    keys = "arm episodes successes rate rate_ci score score_ci rank rank_ci letters stages rmst rmst_ci hrt hrt_ci"
    assert list(result["arms"][0]) == [*keys.split(), "curve", "judged"]
    keys = "a b blocks score_difference score_ci success_difference success_ci win win_ci p p_error p_holm p_holm_error"
    assert list(result["pairs"][0]) == [*keys.split(), "adjusted_ci", "stop_block", "sequence", "verdict", "units"]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan(reference="z"), "no arm 'z' to refer to; the arms are x"),
        (Plan(alpha=1), "alpha is 1; allowed is a level between 0 and 1"),
        (Plan(boot=0), "boot is 0; allowed is a whole number, 1 or more"),
    ],
)
def test_what_cannot_be_asked_is_one_line(plan: Plan, said: str) -> None:
    with pytest.raises(TableError, match=said):
        analyze(table({"x": [0.5]}), plan)
