"""What says where arms are weak, and how sure the table is of it, stands in the result as the statistics have it."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.gallery import everything, table_of_everything

from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.analyze import analyze
from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.episodes_table.result import EpisodesResult
from labctl.analysis.episodes_table.table import table_from_rows

PLAN = Plan(boot=199, perm=999)


@pytest.fixture(scope="module")
def result() -> EpisodesResult:
    return analyze(table_of_everything(), PLAN)


def test_fewer_blocks_find_a_certain_difference_and_not_one_that_is_not_there() -> None:
    """x is always 0.5 above y; y and z are drawn alike. Six blocks of one sign have p = 2/64."""
    rng = np.random.default_rng(0)
    rows = []
    for block in range(40):
        y, z = rng.uniform(0, 0.5, 2)
        rows += [{"block": block, "arm": a, "score": float(s)} for a, s in (("x", y + 0.5), ("y", y), ("z", z))]
    found = {(e["a"], e["b"], e["blocks"]): e for e in analyze(table_from_rows(rows), PLAN)["enough"]}
    assert [size for a, b, size in found if (a, b) == ("x", "y")] == [6, 8, 10, 15, 20, 30]
    assert all(found["x", "y", size]["detected"] == 1 for size in (8, 10, 15, 20, 30))
    assert all(found["x", "y", size]["wrong_found"] == 0 for size in (8, 30))
    assert found["y", "z", 10]["detected"] <= 0.15


def test_tasks_stand_by_arms_and_one_that_all_fail_is_named(result: EpisodesResult) -> None:
    found = result["tasks"]
    assert found is not None and found["by"] == "task" and len(found["cells"]) == 6 * 3
    assert [hard["task"] for hard in found["hard"]] == ["cable"]
    assert any("cable (best: broad" in line for line in words.tasks(result))


def test_permutations_too_few_for_so_many_pairs_are_said() -> None:
    """12 arms are 66 pairs: Holm's p of 999 permutations is at least 66/1000, however far apart the tasks are."""
    rows = [
        {"block": f"{task}{block}", "arm": f"arm{arm:02}", "task": task, "score": float((arm < 6) == (task == "lid"))}
        for task in ("lid", "cup")
        for block in range(8)
        for arm in range(12)
    ]
    few, many = (analyze(table_from_rows(rows), Plan(boot=99, perm=perm)) for perm in (999, 1999))
    said = [line for line in few["warnings"] if "depend on the task" in line]
    assert said == [
        "no pair’s difference can be shown to depend on the task: by 999 permutations Holm’s p over the pairs is at "
        "least 0.066, above alpha 0.05; raise --perm"
    ]
    assert few["tasks"] and not few["tasks"]["complementary"]
    assert many["tasks"] and len(many["tasks"]["complementary"]) == 36
    assert not [line for line in many["warnings"] if "depend on the task" in line]


def test_a_family_by_arms_is_the_mean_of_all_its_episodes_whole_sets_being_the_units(result: EpisodesResult) -> None:
    made = everything()
    found = {(one["family"], one["arm"]): one for one in result["families"]}
    assert {family for family, _ in found} == {"latency", "spatial", "light"} and len(found) == 3 * 3
    for (family, arm), one in found.items():
        own = [row for row in made if row["family"] == family and row["arm"] == arm]
        assert one["episodes"] == len(own) and one["score"] == pytest.approx(np.mean([row["score"] for row in own]))
        by_set = [np.mean([row["score"] for row in own if row["set"] == at]) for at in {row["set"] for row in own}]
        # t over the means of 30 sets: Student's quantile of 29 degrees of freedom is 2.045
        half = 2.045 * np.std(by_set, ddof=1) / np.sqrt(30)
        low, high = one["ci"] or (0.0, 0.0)
        assert low < one["score"] < high and high - low == pytest.approx(2 * half, rel=0.25)


def test_a_family_without_levels_has_its_mean_and_a_table_without_families_has_none() -> None:
    rows = [
        {"block": n, "arm": arm, "score": s, "family": "reach"} for n in range(4) for arm, s in (("x", 1), ("y", 0))
    ]
    found = analyze(table_from_rows(rows, source="t"), Plan(boot=99, perm=99))
    assert [(one["arm"], one["score"], one["episodes"]) for one in found["families"]] == [("x", 1.0, 4), ("y", 0.0, 4)]
    # all alike: the exact interval of 4 of 4, .025 ** (1 / 4)
    assert found["stress"] == [] and found["families"][0]["ci"] == pytest.approx([0.3976, 1.0], abs=1e-4)
    without = analyze(table_from_rows([{**row, "family": ""} for row in rows], source="t"), Plan(boot=99, perm=99))
    assert without["families"] == []


def test_a_break_along_a_stress_is_where_it_was_put(result: EpisodesResult) -> None:
    """Latency costs .02 up to v2 and .32 from v3 on."""
    latency = [cliff for cliff in result["cliffs"] if cliff["family"] == "latency"]
    assert {(cliff["holds"], cliff["breaks"]) for cliff in latency} == {("v2", "v3")}
    assert all(cliff["p"] < 0.05 and cliff["before"] > cliff["after"] for cliff in latency)


def test_axes_together_stand_beside_the_sum_of_the_single_ones(result: EpisodesResult) -> None:
    (narrow,) = (one for one in result["compositions"] if one["arm"] == "narrow")
    drops = {drop["axis"]: drop["drop"] for drop in result["axes"] if drop["arm"] == "narrow"}
    assert narrow["axis"] == "S-LANG+V-SC" and narrow["pairs"] == 30
    assert narrow["singles"] == pytest.approx(drops["S-LANG"] + drops["V-SC"])
    assert narrow["beyond"] == pytest.approx(narrow["drop"] - narrow["singles"])


def test_a_tag_says_the_smallest_p_that_so_few_tasks_can_give(result: EpisodesResult) -> None:
    """Three of six tasks are long: 2 / (6 choose 3)."""
    long = [tag for tag in result["tags"] if tag["tag"] == "long"]
    assert {(tag["tasks_with"], tag["tasks_without"]) for tag in long} == {(3, 3)}
    assert all(tag["smallest_p"] == pytest.approx(2 / 20) for tag in long)
    assert all(tag["ci"] is None or -1 <= tag["ci"][0] <= tag["ci"][1] <= 1 for tag in result["tags"])


def test_a_site_says_each_pair_at_each_level_and_without_it(result: EpisodesResult) -> None:
    units = {(pair["a"], pair["b"]): pair["units"] for pair in result["pairs"]}
    for pair in result["factors"]["site"]["pairs"]:
        assert len(pair["levels"]) == 5 and pair["mean"] is not None and pair["ci"] is not None
        assert sum(at["blocks"] for at in pair["levels"]) == units[pair["a"], pair["b"]]
        least, most = (f(at["without"] for at in pair["levels"] if at["without"] is not None) for f in (min, max))
        assert least <= pair["mean"] <= most


def test_a_stage_keeps_when_it_was_reached_and_success_its_curve(result: EpisodesResult) -> None:
    for arm in result["arms"]:
        for stage in arm["stages"]:
            assert len(stage["times_s"]) == stage["reached"] and stage["times_s"] == sorted(stage["times_s"])
        assert arm["curve"] is not None and arm["curve"]["F"][-1] == pytest.approx(arm["rate"])
        area = np.diff([*arm["curve"]["t"], result["tau"] or 0.0]) @ (1 - np.array(arm["curve"]["F"]))
        assert area == pytest.approx(arm["rmst"], rel=1e-6), "RMST is the area above the curve"


def test_everything_is_printed_too(result: EpisodesResult) -> None:
    headings = [shown.headings[0] for shown in words.rows(result)]
    assert headings == [
        *("axis", "axes together", "tag", "arm", "family [95 %]", "family", "family", "task"),
        "found in draws of so many blocks, %",
    ]  # fmt: skip


def test_an_episode_of_a_task_without_stages_is_not_in_the_funnel() -> None:
    """A campaign's own table: of each arm two episodes of a task in two stages, two of one without."""
    rows = [
        {
            "block": f"{task}{n}",
            "arm": arm,
            "task": task,
            "score": 0.5,
            "stage": stage,
            "stage_1_s": time,
            "stage_2_s": "",
        }
        for task, stage, time in (("staged", 1, 4.0), ("plain", "", ""))
        for n in range(2)
        for arm in "xy"
    ]
    told = analyze(table_from_rows(rows), PLAN)
    assert [(s["reached"], s["episodes"]) for s in told["arms"][0]["stages"]] == [(2, 2), (0, 2)]
    assert not any("one funnel" in warning for warning in told["warnings"])
    without = [{k: v for k, v in row.items() if k != "stage"} for row in rows]
    assert analyze(table_from_rows(without), PLAN)["arms"][0]["stages"] == told["arms"][0]["stages"]
