"""The main table for a reader who reads nothing else: time really spent, whole successes, no share that misleads."""

from __future__ import annotations

import math
from typing import Any

import pytest

from labctl.analysis.numerals import p_value
from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.report import tables
from labctl.analysis.table import table_from_rows


def episode(name: str, arm: str, obj: str, times: list[float], *, staged: int, end_s: float) -> list[dict[str, Any]]:
    whole = {"episode": name, "arm": arm, "object": obj, "items_staged": staged, "end_s": end_s, "budget_s": 120.0}
    rows = [{**whole, "kind": "success", "time_s": t, "cause": ""} for t in times]
    if len(times) < staged:
        rows.append({**whole, "kind": "censored", "time_s": round(end_s - math.fsum(times), 3), "cause": "budget"})
    return rows


def found(rows: list[dict[str, Any]], **plan: Any):
    return analyze(table_from_rows(rows), tau=120.0, boot=99, perm=99, **plan)


@pytest.fixture(scope="module")
def unequal():
    """Of the easy towels a met nine times as many as of the hard scissors, b the other way; at each both do alike."""
    rows = []
    for arm, easy, hard in (("a", 9, 1), ("b", 1, 9)):
        rows += [r for i in range(easy) for r in episode(f"{arm}t{i}", arm, "towels", [20.0] * 4, staged=4, end_s=80.0)]
        rows += [r for i in range(hard) for r in episode(f"{arm}s{i}", arm, "scissors", [40.0], staged=4, end_s=120.0)]
    return found(rows)


def test_items_moved_are_standardised_where_objects_were_met_unequally_often_and_a_warning_says_so(unequal):
    a, b = unequal["arms"]
    assert (round(a["moved"], 3), round(b["moved"], 3)) == (0.925, 0.325)
    assert a["moved_macro"] == b["moved_macro"] == pytest.approx(0.625), "per object 4/4 and 1/4, both arms alike"
    (warning,) = [line for line in unequal["warnings"] if "pooled" in line]
    assert "92.5 % against 32.5 % pooled over objects, are 62.5 % against 62.5 %" in warning
    cells = tables.main_table(unequal, [], None).rows[0]
    assert cells[1] == "37 / 40 (92.5 %); 62.5 % with objects weighted equally"


def test_no_share_is_doubled_where_objects_were_met_alike():
    rows = [r for o in ("x", "y") for r in episode(o, "a", o, [20.0] * 2, staged=4, end_s=120.0)]
    result = found(rows)
    assert tables.main_table(result, [], None).rows[0][1] == "4 / 8 (50.0 %)"
    assert not [line for line in result["warnings"] if "pooled" in line]


def test_where_arms_met_other_objects_the_table_says_that_its_rows_compare_nothing(unequal):
    rows = [
        r
        for arm, o in (("a", "x"), ("a", "y"), ("b", "y"))
        for r in episode(arm + o, arm, o, [20.0] * 4, staged=4, end_s=80.0)
    ]
    note = tables.main_table(found(rows), [], None).note
    assert "(mean over the objects that the arm met, equal weights)" in note
    assert "Arms met other objects, so rows of this table do not compare them" in note
    assert "(mean over 2 objects, equal weights); smaller is quicker. No" in tables.main_table(unequal, [], None).note


def test_robot_time_per_item_counts_the_time_without_success_and_stands_beside_rmst(unequal):
    a = unequal["arms"][0]
    assert a["seconds_per_item"] == pytest.approx((9 * 80 + 120) / 37)
    labels = [column.label for column in tables.main_table(unequal, [], None).columns]
    assert labels.index("Robot s per item moved") + 1 == labels.index("RMST s [95 %]")
    assert found(episode("e", "a", "x", [], staged=2, end_s=120.0))["arms"][0]["seconds_per_item"] == "inf"


def test_episodes_in_which_everything_was_moved_are_counted_of_all(unequal):
    assert [arm["succeeded"] for arm in unequal["arms"]] == [9, 1]
    row = tables.main_table(unequal, [], None).rows[0]
    labels = [column.label for column in tables.main_table(unequal, [], None).columns]
    assert row[labels.index("Episodes, all moved / scored")] == "9 / 10"


@pytest.mark.parametrize(
    ("p", "least", "text"), [(0.0, 0.0, "< 0.0001"), (0.0, 1 / 1000, "< 0.001"), (0.002, 1 / 1000, "0.002")]
)
def test_no_p_is_0(p, least, text):
    assert p_value(p, None, least) == text


def test_hrt_of_the_reviewed_episodes_stands_beside_that_of_all():
    rows = [
        r
        for arm, t in (("human", 10.0), ("a", 20.0))
        for i in range(6)
        for r in episode(f"{arm}{i}", arm, "x", [t + i] * 2, staged=2, end_s=2 * (t + i))
    ]
    whole = found(rows, reference="human")
    alone = found([row for row in rows if row["episode"][-1] in "012"], reference="human")
    table = tables.hrt_table(whole, {"arms": alone["arms"]})
    assert [column.label for column in table.columns][-2:] == ["HRT %, reviewed episodes alone", "Reviewed"]
    arm = next(row for row in table.rows if row[0] == "a")
    assert arm[-1] == "3 / 6" and arm[-2].startswith(f"{100 * alone['arms'][0]['hrt']:.1f}")
    assert len(tables.hrt_table(whole).columns) == len(table.columns) - 2
