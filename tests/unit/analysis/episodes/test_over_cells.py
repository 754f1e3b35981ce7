"""Several robots' cells: whatever is compared is compared on the same rig, and what is said stays with these cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.operations_table.over_cells import further, opposed, welch
from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.table import table_from_rows
from labctl.errors import TableError


def joint(
    cells: dict[str, dict[str, float]], blocks: int = 6, objects: tuple[str, ...] = ("cup", "lid"), seed: int = 1
) -> list[dict[str, Any]]:
    """Rows of one operation an episode: cell -> arm -> its mean time; every block holds every arm."""
    rng = np.random.default_rng(seed)
    return [
        {"episode": f"{cell}-{obj}-{n}-{arm}", "arm": arm, "object": obj, "kind": "success", "time_s": time,
         "budget_s": 500.0, "end_s": time, "items_staged": 1, "block": f"{cell}/{obj}{n}", "cell": cell}
        for cell, arms in cells.items() for obj in objects for n in range(blocks) for arm, mean in arms.items()
        for time in [round(float(mean * rng.gamma(9, 1 / 9)), 3)]
    ]  # fmt: skip


def result(rows: list[dict[str, Any]], **more: Any) -> AnalysisResult:
    return analyze(table_from_rows(rows), tau=500.0, boot=199, perm=199, **more)


SLOW_RIG = {"north": {"human": 20.0, "p": 40.0, "q": 60.0}, "south": {"human": 60.0, "p": 120.0, "q": 180.0}}


def test_hrt_is_relative_to_the_person_on_the_same_rig():
    rows = joint(SLOW_RIG)
    # policies in one cell more often than people: pooled over rigs, a policy would be held against the quick rig's
    kept = [r for r in rows if not (r["arm"] == "human" and r["cell"] == "south" and r["episode"].endswith(
        ("-2-human", "-3-human", "-4-human", "-5-human")))]  # fmt: skip
    found = result(kept, reference="human")
    assert next(arm for arm in found["arms"] if arm["arm"] == "p")["hrt"] == pytest.approx(0.5, abs=0.12)
    by = {(one["arm"], one["cell"]): one for one in found["by_cell"]["arms"]}
    for cell in ("north", "south"):
        own = {r["arm"]: [x["time_s"] for x in rows if x["cell"] == cell and x["arm"] == r["arm"]] for r in rows}
        if cell == "north":  # nothing is censored: of one object a ratio of means; of two their mean
            ratios = [
                np.mean([x["time_s"] for x in rows if (x["cell"], x["arm"], x["object"]) == (cell, "human", o)])
                / np.mean([x["time_s"] for x in rows if (x["cell"], x["arm"], x["object"]) == (cell, "p", o)])
                for o in ("cup", "lid")
            ]
            assert by["p", cell]["hrt"] == pytest.approx(np.mean(ratios), rel=1e-9)
        assert by["human", cell]["hrt"] == 1.0
        assert len(own["p"]) == 12
    bare = result([{k: v for k, v in r.items() if k != "cell"} for r in kept], reference="human")
    assert next(arm for arm in bare["arms"] if arm["arm"] == "p")["hrt"] < 0.45  # what pooling over rigs would say


def test_in_no_cell_does_an_hrt_interval_go_below_what_a_robot_that_never_moves_scores():
    """Seen with three blocks a cell: 28.7 [3.8, 64944.5] %, under a floor of 16.5 %."""
    rows = joint({cell: {"human": 20.0, "p": 250.0} for cell in ("north", "south")}, blocks=3)
    found = result(rows, reference="human")
    lower = {one["cell"]: one["hrt_ci"][0] for one in found["by_cell"]["arms"] if one["arm"] == "p"}
    people = [x["time_s"] for x in rows if (x["cell"], x["arm"]) == ("south", "human")]
    assert lower["south"] == pytest.approx(np.mean(people) / 500.0), "without the floor it is far below"


def test_a_pair_is_the_mean_of_its_cells_and_each_cell_can_be_left_out():
    found = result(joint({f"c{i}": {"p": 40.0, "q": 40.0 * (1 + i / 4)} for i in range(3)}))
    pair, by = found["pairs"][0], found["by_cell"]["pairs"][0]
    logs = [one["log_rmst_ratio"] for one in by["cells"]]
    assert pair["log_rmst_ratio"] == pytest.approx(np.mean([x for x in logs if x is not None]))
    assert by["mean"] == pytest.approx(pair["log_rmst_ratio"])
    assert [one["without"] for one in by["cells"]] == pytest.approx(
        [(sum(x or 0 for x in logs) - (own or 0)) / 2 for own in logs]
    )
    assert {c["object"] for c in found["cells"]} == {f"{o} @ c{i}" for o in ("cup", "lid") for i in range(3)}


def test_below_five_cells_nothing_is_said_of_a_further_one_and_from_five_on_it_is():
    four = result(joint({f"c{i}": {"p": 40.0, "q": 50.0} for i in range(4)}, blocks=3))["by_cell"]
    assert not four["sample"] and four["pairs"][0]["prediction"] is None and four["pairs"][0]["ci"] is None
    five = result(joint({f"c{i}": {"p": 40.0, "q": 50.0 + 5 * i} for i in range(5)}, blocks=3))["by_cell"]
    pair = five["pairs"][0]
    assert five["sample"] and pair["prediction"] and pair["ci"]
    y = np.array([one["log_rmst_ratio"] for one in pair["cells"]], dtype=float)
    reach = float(stats.t.ppf(0.975, 4)) * y.std(ddof=1)
    assert pair["prediction"] == pytest.approx([y.mean() - reach * math.sqrt(1.2), y.mean() + reach * math.sqrt(1.2)])
    assert pair["ci"] == pytest.approx([y.mean() - reach / math.sqrt(5), y.mean() + reach / math.sqrt(5)])


def test_labels_are_swapped_within_a_block_and_therefore_within_a_cell():
    found = result(joint({"north": {"p": 40.0, "q": 40.0}, "south": {"p": 90.0, "q": 90.0}}, blocks=3))
    assert found["pairs"][0]["relabelled_by"] == "free within blocks"
    # 12 blocks of two: no swap of one cell's label with the other's, so 2^12 relabellings, of which 199 were drawn
    assert found["pairs"][0]["relabellings"] == 200 or found["pairs"][0]["relabellings"] == 199


def test_an_arm_that_leads_in_one_cell_and_loses_in_another_is_not_ranked():
    crossed = {"north": {"p": 20.0, "q": 80.0}, "south": {"p": 80.0, "q": 30.0}}
    found = result(joint(crossed, blocks=8, objects=("cup",)))
    assert found["by_cell"]["pairs"][0]["opposed"]
    assert (found["pairs"][0]["verdict"], found["pairs"][0]["leads"]) == ("depends on object", None)
    p = found["by_cell"]["pairs"][0]["p_alike"]
    assert p is not None and p < 0.001


def test_welchs_test_is_that_of_r():
    # R 4.2.2, oneway.test of c(.21,.35,.1,.44,.3), c(-.1,.2,.05,.3), c(.5,.9,.4,.7,.2,.6)
    y, v = np.array([0.28, 0.1125, 0.55]), np.array([0.00341, 0.00765625, 0.00983333333333])
    f, df, p = welch(y, v, np.array([4.0, 3.0, 5.0]))
    assert f == pytest.approx(5.0461926488744, rel=1e-9)
    assert df == pytest.approx((2.0, 7.2626559605244), rel=1e-9)
    assert p == pytest.approx(0.0422823421278, rel=1e-8)


def test_of_two_cells_welchs_test_is_his_t():
    a, b = np.array([1.0, 2.0, 4.0, 3.5]), np.array([2.5, 6.0, 4.0, 7.0, 5.5])
    found = welch(
        np.array([a.mean(), b.mean()]), np.array([a.var(ddof=1) / 4, b.var(ddof=1) / 5]), np.array([3.0, 4.0])
    )
    assert found[2] == pytest.approx(float(stats.ttest_ind(a, b, equal_var=False).pvalue))


def test_opposed_needs_both_signs_to_be_sure():
    df = np.array([9.0, 9.0])
    assert opposed(np.array([1.0, -1.0]), np.array([0.01, 0.01]), df, 0.05)
    assert not opposed(np.array([1.0, -0.1]), np.array([0.01, 0.01]), df, 0.05)
    assert not opposed(np.array([1.0, 1.0]), np.array([0.01, 0.01]), df, 0.05)


def test_cells_that_are_alike_to_the_last_digit_give_no_interval_of_a_further_one():
    assert further(np.full(5, 0.25)) == (None, None)


def test_a_cell_that_lacks_the_person_is_named():
    rows = [r for r in joint(SLOW_RIG) if not (r["arm"] == "human" and r["cell"] == "south")]
    found = result(rows, reference="human")
    assert found["warnings"][0] == (
        "arm human was not run in south: its numbers are of the other cells alone; policies there have nobody on their "
        "rig to be held against"
    )


def test_one_cell_is_a_table_as_it_was():
    rows = joint({"north": {"p": 40.0, "q": 50.0}})
    alone = result(rows)
    assert alone == result([{k: v for k, v in r.items() if k != "cell"} for r in rows])
    assert "by_cell" not in alone


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cell": ""}, "has no cell; every episode names its cell"),
        ({"block": "south/cup0"}, "a block is run in one cell"),
    ],
)
def test_rows_that_mix_up_cells_are_refused_by_line(change: dict[str, str], text: str):
    rows = joint({"south": {"p": 40.0}, "north": {"p": 40.0}}, blocks=2)
    rows[-1] = {**rows[-1], **change}
    with pytest.raises(TableError, match=text):
        table_from_rows(rows)
