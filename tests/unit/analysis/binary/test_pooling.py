"""k-of-n tables are summed before they are divided, and refused with their line when they cannot be counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.analysis.binary.pooling import category, rates
from labctl.errors import TableError

# 281 published (condition, model) results of BridgeV2-* (k of 5); composition results stand in the paper's table VII.
PUBLISHED = Path(__file__).parents[1] / "data" / "bridgev2_star_conditions.csv"
STAR = """condition,axis,arm,successes,trials
Carrot Base,In-distribution,OpenVLA (OXE),3,5
Carrot Base,In-distribution,"OpenVLA (OXE, FT)",5,5
Knife Base,In-distribution,OpenVLA (OXE),2,5
Knife Base,In-distribution,"OpenVLA (OXE, FT)",3,5
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "counts.csv"
    file.write_text(text)
    return file


def test_groups_are_pooled_in_order_of_appearance(tmp_path: Path):
    found = rates(write(tmp_path, STAR), ["axis", "arm"])
    assert [(r["axis"], r["arm"], r["successes"], r["trials"], r["rate"]) for r in found] == [
        ("In-distribution", "OpenVLA (OXE)", 5, 10, 0.5),
        ("In-distribution", "OpenVLA (OXE, FT)", 8, 10, 0.8),
    ]
    (everything,) = rates(write(tmp_path, STAR), [])
    assert (everything["successes"], everything["trials"]) == (13, 20)


def test_the_published_conditions_pool_per_axis_and_category_without_losing_a_trial():
    by_axis, by_category = rates(PUBLISHED, ["axis"]), rates(PUBLISHED, ["category"])
    assert {row["axis"]: row["trials"] for row in by_axis}["V-SC"] == 200  # 40 results of five trials each
    assert [row["category"] for row in by_category] == [
        "in-distribution",
        "semantic",
        "semantic + behavioural",
        "visual",
        "visual + behavioural",
        "visual + semantic + behavioural",
    ]
    for rows in (by_axis, by_category):
        assert sum(row["trials"] for row in rows) == 281 * 5
        assert sum(row["successes"] for row in rows) == rates(PUBLISHED, [])[0]["successes"]
    visual = [row for row in by_axis if row["axis"].startswith("V-")]
    assert sum(row["successes"] for row in visual) == by_category[3]["successes"]


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("V-SC", "visual"),
        ("SB-VRB", "semantic + behavioural"),
        ("VSB-NOBJ", "visual + semantic + behavioural"),
        ("S-PROP + S-LANG", "semantic"),
        ("B-HOBJ+V-LIGHT", "visual + behavioural"),
        ("V-DUST", "visual"),  # a protocol may declare further codes under a category
        ("In-distribution", "in-distribution"),
        ("", "in-distribution"),
    ],
)
def test_an_axis_belongs_to_the_category_of_what_it_touches(axis: str, said: str):
    assert category(axis, "a.csv:2") == said


@pytest.mark.parametrize("axis", ["lighting", "X-SC", "V-", "V-SC+", "BV-SC"])
def test_what_is_no_axis_code_is_named_with_its_line(axis: str):
    with pytest.raises(TableError, match=r"a\.csv:2: axis is .*; allowed is a code such as V-SC"):
        category(axis, "a.csv:2")


def test_a_column_called_category_is_taken_as_it_is(tmp_path: Path):
    text = "axis,category,successes,trials\nlighting,mine,1,2\n"
    assert rates(write(tmp_path, text), ["category"])[0]["category"] == "mine"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a,6,5", r":3: successes is 6 of 5 trials"),
        ("a,-1,5", r":3: successes is '-1'"),
        ("a,2.5,5", r":3: successes is '2.5'"),
        ("a,1,", r":3: trials is ''"),
        ("a,1", r":3: 2 values for 3 columns"),
    ],
)
def test_what_is_no_count_is_named_with_its_line(tmp_path: Path, line: str, found: str):
    with pytest.raises(TableError, match=found):
        rates(write(tmp_path, f"arm,successes,trials\nb,1,5\n{line}\n"), ["arm"])


def test_unknown_groups_list_the_known_ones(tmp_path: Path):
    with pytest.raises(TableError, match="no column 'axes' to group by; the grouping columns are condition, axis, arm"):
        rates(write(tmp_path, STAR), ["axes"])
    with pytest.raises(TableError, match="missing column trials"):
        rates(write(tmp_path, "arm,successes\na,1\n"), ["arm"])
    with pytest.raises(TableError, match="no rows"):
        rates(write(tmp_path, "arm,successes,trials\n"), ["arm"])
    with pytest.raises(TableError, match="no column 'category'"):
        rates(write(tmp_path, "arm,successes,trials\na,1,2\n"), ["category"])


@pytest.mark.parametrize("column", ["rate", "ci_wilson", "ci_exact"])
def test_a_group_is_not_hidden_by_a_result_of_its_columns_name(tmp_path: Path, column: str):
    table = write(tmp_path, f"arm,{column},successes,trials\na,5hz,3,5\nb,10hz,4,5\n")
    with pytest.raises(TableError, match=f":1: grouping by '{column}' .*rename the column"):
        rates(table, ["arm", column])
    assert [row["rate"] for row in rates(table, ["arm"])] == [0.6, 0.8], "beside the grouping it hides nothing"
    with pytest.raises(TableError, match="no column 'rate'"):
        rates(write(tmp_path, "arm,successes,trials\na,3,5\n"), ["rate"])
