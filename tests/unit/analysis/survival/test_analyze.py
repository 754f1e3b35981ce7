"""`analyze` gives the interface's object, R's numbers on published data, and null where the table is silent."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.analysis.operations_table.analyze import analyze, dumps
from labctl.analysis.operations_table.cautions import unequal_budgets
from labctl.analysis.reading import read_table
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.table import table_from_rows
from labctl.errors import TableError

DATA = Path(__file__).parents[1] / "data"
FEW = {"boot": 19, "perm": 19}


def row(episode: str, arm: str, kind: str, time_s: object, **more: object) -> dict[str, object]:
    return {"episode": episode, "arm": arm, "object": "cup", "kind": kind, "time_s": time_s, **more}


def survivors(cell: dict, time_s: float) -> float:
    return 1 - [f for t, f in zip(cell["curve"]["t"], cell["curve"]["F"], strict=True) if t <= time_s][-1]


def test_freireichs_trial_as_an_operations_table() -> None:
    # facts §2 C1, R survival 3.5.3: survfit, summary(rmean = 35), survdiff on Freireich et al. 1963
    result = analyze(read_table(DATA / "freireich.csv"), tau=35, **FEW)
    drug, placebo = result["cells"]
    assert [survivors(drug, t) for t in (6, 10, 23)] == pytest.approx(
        [0.8571428571, 0.7529411765, 0.4481792717], abs=1e-9
    )
    assert (drug["rmst"], drug["rmst_se"]) == pytest.approx((23.2873949580, 2.8274676234), abs=1e-9)
    assert (placebo["rmst"], survivors(placebo, 8)) == pytest.approx((8.6666666667, 0.3809523810), abs=1e-9)
    assert drug["median"] == 23.0
    (pair,) = result["pairs"]
    assert pair["logrank_chi2"] == pytest.approx(16.7929409892, abs=1e-9)
    assert pair["ks_macro"] == pytest.approx(0.5624649860, abs=1e-9)
    shorter = analyze(read_table(DATA / "freireich.csv"), tau=20, **FEW)["cells"]
    assert (shorter[0]["rmst"], shorter[0]["rmst_se"]) == pytest.approx((16.1165266106, 1.2515601960), abs=1e-9)
    assert shorter[1]["rmst"] == pytest.approx(8.4285714286, abs=1e-9)


def lung(folder: Path, *, by_sex: bool) -> Path:
    datasets = pytest.importorskip("lifelines.datasets")
    frame = datasets.load_lung()
    lines = ["episode,arm,object,kind,time_s"]
    for i, (time, status, sex) in enumerate(zip(frame["time"], frame["status"], frame["sex"], strict=True)):
        arm = {1: "male", 2: "female"}[int(sex)] if by_sex else "everyone"
        lines.append(f"p{i},{arm},all,{'success' if status else 'censored'},{time}")
    file = folder / "lung.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_lung_data_as_an_operations_table(tmp_path: Path) -> None:
    # facts §2 C2, R survival 3.5.3 on lung (lifelines' copy, status 0/1)
    (cell,) = analyze(read_table(lung(tmp_path, by_sex=False)), tau=1000, **FEW)["cells"]
    assert [survivors(cell, t) for t in (180, 365, 730)] == pytest.approx(
        [0.7216706534, 0.4092416245, 0.1156930983], abs=1e-9
    )
    assert (cell["rmst"], cell["rmst_se"], cell["median"]) == pytest.approx(
        (375.1671436503, 19.4388593733, 310), abs=1e-9
    )


def test_the_lung_data_by_sex(tmp_path: Path) -> None:
    table = read_table(lung(tmp_path, by_sex=True))
    female, male = analyze(table, tau=365.25, **FEW)["cells"]
    assert (male["rmst"], male["rmst_se"]) == pytest.approx((241.5791071507, 10.3659000174), abs=1e-9)
    assert (female["rmst"], female["rmst_se"]) == pytest.approx((297.5970252896, 10.8013899740), abs=1e-9)
    (pair,) = analyze(table, tau=1000, **FEW)["pairs"]
    assert (pair["logrank_chi2"], pair["ks_macro"]) == pytest.approx((10.3267419549, 0.2683464533), abs=1e-9)


TWO_ARMS = [
    row("h1", "human", "success", 10, end_s=20, budget_s=60, items_staged=2),
    row("h1", "human", "success", 10, end_s=20, budget_s=60, items_staged=2),
    row("h2", "human", "success", 14, end_s=30, budget_s=60, items_staged=2),
    row("h2", "human", "success", 16, end_s=30, budget_s=60, items_staged=2),
    row("p1", "policy", "success", 20, end_s=60, budget_s=60, items_staged=2),
    row("p1", "policy", "censored", 40, end_s=60, budget_s=60, items_staged=2),
    row("p2", "policy", "ghost", 30, end_s=60, budget_s=60, items_staged=2, cause="drop"),
    row("p2", "policy", "success", 50, end_s=60, budget_s=60, items_staged=2),
]


def test_every_key_of_the_interface_is_present() -> None:
    result = analyze(table_from_rows(TWO_ARMS), reference="human", **FEW)
    asked = ["schema", "tau", "reference", "seed", "boot", "alpha", "family", "estimator"]
    assert list(result) == [*asked, "cells", "arms", "pairs", "warnings"]
    assert set(result["cells"][0]) == {
        *("arm", "object", "episodes", "operations", "successes", "censored", "ghosts", "rmst", "rmst_se", "rmst_ci"),
        *("rmst_ci_percentile", "rmst_wang_chang", "rmst_aalen_johansen", "items_moved", "items_staged"),
        *("rmst_kaplan_meier", "rmst_wang_chang_ci"),
        *("rmst_first_operation", "ended_early", "median", "completion", "uph", "uph_paper", "mtbf", "rate", "curve"),
    }
    assert set(result["arms"][0]) == {
        *("arm", "rmst", "rmst_ci", "hrt", "hrt_floor", "hrt_ci", "hrt_ci_percentile", "moved", "moved_ci"),
        *("auc", "auc_ci", "letters", "intervention_rate", "episodes"),
        *("moved_macro", "seconds_per_item", "succeeded", "helped"),
    }
    assert set(result["pairs"][0]) == {
        *("a", "b", "objects", "rmst_a", "rmst_b", "ks_macro", "ks_sup_mean", "log_rmst_ratio", "log_rmst_ratio_ci"),
        *("log_rmst_ratio_adjusted_ci", "uph_difference", "uph_difference_ci", "moved_difference", "moved_p"),
        *("moved_difference_ci", "auc", "auc_ci", "by_object", "relabelled_by", "relabellings", "p", "p_holm"),
        *("p_error", "p_holm_error", "moved_p_error", "holm_over"),
        *("logrank_chi2", "verdict", "leads"),
    }
    assert set(result["pairs"][0]["p"]) == {
        *("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph", "family", "ks_macro_bootstrap", "logrank_cluster"),
    }


def test_whoever_waits_is_told_how_many_pairs_are_done() -> None:
    told: list[str] = []
    analyze(table_from_rows(TWO_ARMS), reference="human", **FEW, say=told.append)
    assert told == ["0/1 pairs"]


def test_a_small_cohort_by_hand() -> None:
    result = analyze(table_from_rows(TWO_ARMS), reference="human", **FEW)
    assert result["tau"] == 60.0
    human, policy = result["cells"]
    assert human["rmst"] == pytest.approx(12.5)
    # events at 20 (4 at risk) and 50 (2 at risk): S = 3/4 on [20, 50), 3/8 on [50, 60)
    assert policy["rmst"] == pytest.approx(20 + 30 * 3 / 4 + 10 * 3 / 8)
    assert policy["completion"] == pytest.approx(5 / 8)
    assert policy["mtbf"] == pytest.approx(policy["rmst"] / (3 / 8))
    assert (human["uph"], policy["uph"]) == (3600 * 4 / 50, 3600 * 2 / 120)
    assert (human["uph_paper"], policy["uph_paper"]) == pytest.approx((3600 / 12.5, 3600 / 35))
    assert (policy["items_moved"], policy["items_staged"], policy["median"]) == (2, 4, 50.0)
    assert policy["rate"] == {"30": 0.25, "60": 0.625}
    # first rows are 20 s and a ghost: S = 1/2 from 20 on
    assert policy["rmst_first_operation"] == pytest.approx(20 + 40 / 2)
    # Wang-Chang: p1 has one complete gap (20, its tail dropped), p2 the ghost and 50, half each
    assert policy["rmst_wang_chang"] == pytest.approx(20 + 30 * 1 / 2 + 10 / 4)
    # Aalen-Johansen: durations 20 success, 40 censored, 30 lost, 50 - 30 = 20 success; F(20) = 1/2 and stays
    assert policy["rmst_aalen_johansen"] == pytest.approx(60 - 40 / 2)
    us, them = result["arms"][1], result["arms"][0]
    assert us["hrt"] == pytest.approx(12.5 / policy["rmst"])
    assert us["hrt_floor"] == them["hrt_floor"] == pytest.approx(12.5 / 60)
    assert (us["moved"], them["moved"], them["hrt"]) == (0.5, 1.0, 1.0)
    assert us["auc"] == pytest.approx(0.0)


def test_equal_arms_have_an_auc_of_one_half_and_two_infinities_tie() -> None:
    rows = [
        row(f"{a}{i}", a, k, t, budget_s=60) for a in "ab" for i, (k, t) in enumerate((("success", 5), ("ghost", 9)))
    ]
    result = analyze(table_from_rows(rows), reference="a", **FEW)
    assert result["arms"][1]["auc"] == pytest.approx(0.5)


def test_a_futility_end_is_carried_to_the_budget_but_not_in_the_papers_estimate() -> None:
    end = {"end_s": 30, "budget_s": 150}
    rows = [row("e1", "a", "success", 10, **end), row("e1", "a", "censored", 20, cause="futility", **end)]
    rows += [
        row("e2", "a", "success", 100, end_s=150, budget_s=150),
        row("e2", "a", "censored", 50, end_s=150, budget_s=150),
    ]
    cell = analyze(table_from_rows(rows), **FEW)["cells"][0]
    # carried tail: 150 - 10 = 140, so three operations are still at risk after 10 and two at 100
    assert cell["rmst"] == pytest.approx(10 + 90 * 3 / 4 + 50 * 3 / 8)
    assert cell["ended_early"] == 1
    without = [dict(r, cause="") for r in rows]
    other = analyze(table_from_rows(without), **FEW)["cells"][0]
    assert other["rmst"] == pytest.approx(10 + 90 * 3 / 4)
    assert cell["rmst_ci_percentile"] == other["rmst_ci_percentile"]


def test_the_end_of_an_episode_is_derived_from_its_rows_when_it_can_be() -> None:
    known = [row("e1", "a", "success", 10), row("e1", "a", "ghost", ""), row("e1", "a", "censored", 20)]
    assert analyze(table_from_rows(known), tau=60, **FEW)["cells"][0]["uph"] == 3600 / 30
    unknown = [row("e1", "a", "success", 10), row("e1", "a", "ghost", "")]
    cell = analyze(table_from_rows(unknown), tau=60, **FEW)["cells"][0]
    assert cell["uph"] is None and cell["rmst_aalen_johansen"] is None and cell["items_staged"] is None


def test_infinite_medians_are_the_string_inf_and_a_hopeless_cell_is_flagged() -> None:
    rows = [row("e1", "a", "censored", 60, budget_s=60), row("e2", "a", "censored", 60, budget_s=60)]
    result = analyze(table_from_rows(rows), **FEW)
    cell = result["cells"][0]
    assert (cell["median"], cell["rmst"], cell["rmst_se"], cell["rmst_ci"]) == ("inf", 60.0, 0.0, None)
    assert any("no certainty" in w for w in result["warnings"])


def test_unequal_budgets_are_not_compared() -> None:
    rows = [row("e1", "a", "success", 5, budget_s=60), row("e2", "b", "success", 5, budget_s=90)]
    result = analyze(table_from_rows(rows), **FEW)
    (pair,) = result["pairs"]
    assert pair["verdict"] is None and pair["ks_macro"] is None and set(pair["p"].values()) == {None}
    assert any("unequal time budgets at cup (60 s and 90 s)" in w for w in result["warnings"])


def budgets_of(*sides: tuple[str, list[tuple[str, int]]]) -> dict:
    """Cells of the arms with an episode of each (block, budget)."""
    rows = [
        row(f"{arm}{i}", arm, "success", 10 + i, block=b, budget_s=s)
        for arm, episodes in sides
        for i, (b, s) in enumerate(episodes)
    ]  # fmt: skip
    return cells_of(table_from_rows(rows))


def test_budgets_are_unequal_where_one_arm_has_the_long_ones_more_often() -> None:
    """*Seen:* 18 × 120 s and 2 × 360 s against 2 and 18 passed, as sets of budgets; KS rejected .087."""
    few, many = [("", 120)] * 18 + [("", 360)] * 2, [("", 120)] * 2 + [("", 360)] * 18
    (sentence, _) = unequal_budgets(budgets_of(("a", few), ("b", many))).values()
    assert "(18 × 120 s, 2 × 360 s and 2 × 120 s, 18 × 360 s)" in sentence
    assert not unequal_budgets(budgets_of(("a", few), ("b", few[::-1])))
    assert not unequal_budgets(budgets_of(("a", few * 2), ("b", few)))
    by_block = [("b1", 120), ("b2", 360)]
    assert not unequal_budgets(budgets_of(("a", by_block), ("b", [*by_block, ("b2", 360)])))
    assert unequal_budgets(budgets_of(("a", by_block), ("b", [("b1", 360), ("b2", 120), ("b2", 120)])))


def test_what_is_thin_is_said() -> None:
    rows = [
        row("e1", "a", "success", 5),
        row("e1", "a", "censored", 5),
        {**row("e2", "b", "success", 5), "object": "pan"},
        row("e3", "b", "success", 5, void="fault"),
    ]
    text = "\n".join(analyze(table_from_rows([{"void": "", **r} for r in rows]), tau=30, **FEW)["warnings"])
    for part in (
        "a has no episode at pan",
        "1 void episode left out",
        "fewer than 5 episodes",
        "a / cup: followed for 5 s only",
        "no budget_s",
        "a and b have no object in common",
    ):
        assert part in text


def test_without_a_reference_nothing_is_said_relative_to_it() -> None:
    arm = analyze(table_from_rows(TWO_ARMS), **FEW)["arms"][0]
    assert [arm[k] for k in ("hrt", "hrt_floor", "hrt_ci", "hrt_ci_percentile", "auc", "auc_ci")] == [None] * 6


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"tau": 0}, "tau is 0"),
        ({"tau": math.nan}, "tau is nan"),
        ({"reference": "robot"}, "no arm 'robot' to refer to; the arms are human, policy"),
        ({"boot": 0}, "boot is 0"),
        ({"perm": 0}, "perm is 0"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(asked: dict, found: str) -> None:
    with pytest.raises(TableError, match=found):
        analyze(table_from_rows(TWO_ARMS), **{**FEW, **asked})


def test_tau_must_be_given_when_no_budget_is() -> None:
    with pytest.raises(TableError, match=r"give --tau SECONDS, in Python tau=SECONDS"):
        analyze(table_from_rows([row("e1", "a", "success", 5)]))
    with pytest.raises(TableError, match="every episode is void"):
        analyze(table_from_rows([row("e1", "a", "success", 5, void=1)]), tau=5)


def test_the_same_seed_gives_the_same_bytes_on_any_number_of_threads() -> None:
    code = (
        "from labctl.analysis.operations_table.analyze import analyze, dumps\n"
        "from labctl.analysis.reading import read_table\n"
        f"t = read_table({str(DATA / 'freireich.csv')!r})\n"
        "print(dumps(analyze(t, tau=35, boot=600, perm=600, reference='placebo')), end='')\n"
    )
    outs = []
    for threads in ("1", "2"):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        outs.append(subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True).stdout)
    assert outs[0] == outs[1] and json.loads(outs[0])["seed"] == 0
    other = dumps(analyze(read_table(DATA / "freireich.csv"), tau=35, boot=600, perm=600, reference="placebo", seed=1))
    assert other.encode() != outs[0]
