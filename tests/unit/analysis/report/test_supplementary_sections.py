"""The sections beside the headline numbers: what is in the supplement is on the page, in HTML and in Markdown."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from labctl.analysis.episodes import supplement
from labctl.analysis.operations_table import analyze as analyses
from labctl.analysis.report import figures, pair_tables
from labctl.analysis.report.page import build_page, render_html
from labctl.analysis.report.sections import supplementary_sections
from labctl.analysis.table import table_from_rows


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Two arms, two objects, six blocks, sides that swap; the robot is slower and loses every ninth item."""
    found = []
    for arm, pace in (("human", 10.0), ("robot", 30.0)):
        for number in range(12):
            thing, block = ("towels", "spoons")[number % 2], number // 2
            whole = {
                "episode": f"{arm}-{number}",
                "arm": arm,
                "object": thing,
                "items_staged": 3,
                "end_s": 3 * pace + 3,
                "budget_s": 120.0,
                "block": f"{thing}-{block}",
                "session": "s-1" if number < 6 else "s-2",
                "operator": "p07" if number < 6 else "p08",
                "tote_side": "left" if number % 4 < 2 else "right",
                "camera_side": "left",
            }
            for op in range(3):
                lost = arm == "robot" and (number + op) % 9 == 8
                time_s = pace + op + 0.1 * number
                row = {**whole, "op_index": op, "time_s": time_s, "kind": "ghost" if lost else "success"}
                found.append({**row, "cause": "dropped_outside" if lost else ""})
    return found


@pytest.fixture(scope="module")
def page(rows) -> tuple[dict[str, Any], list[figures.Figure]]:
    table = table_from_rows(rows, source="made up")
    result = analyses.analyze(table, reference="human", tau=120.0, boot=199, perm=199, seed=0)
    more = supplement.supplement(table, result, perm=199)
    return build_page(result, rows, lab=None, title="made up", supplement=more)


def section(page: Any, name: str) -> supplementary_sections.Section:
    return next(part for part in page[0]["supplementary"] if part.id == name)


def test_every_section_has_its_place_in_the_contents_and_on_the_page(page):
    made, _ = page
    html = render_html(made)
    ids = [part.id for part in made["supplementary"]]
    assert ids == ["failures", "sensitivity", "configuration", "time", "moved", "quantiles", "people"]
    for name in ids:
        assert f'<section id="{name}">' in html and f'href="#{name}"' in html


def test_failures_are_counted_by_cause(page):
    ((_, table),) = section(page, "failures").tables
    robot = next(row for row in table.rows if row[0] == "robot")
    assert [column.label for column in table.columns][3:] == ["Dropped outside"]
    assert robot[1:] == ("36", "33", "3 (8.3 %)")


def test_how_arms_fail_has_a_row_for_every_arm_and_the_person_who_failed_nowhere(page):
    ((_, table),) = section(page, "failures").tables
    assert [row[0] for row in table.rows] == ["human", "robot"]
    assert table.rows[0][1:] == ("36", "36", "–"), "operations, successes, and nothing dropped"


def test_throughput_against_reliability_leaves_no_arm_out_and_names_both_definitions(page):
    part = section(page, "failures")
    assert "3600 × F(t) / RMST(t)" in part.note and "the successes alone, where a failure costs nothing" in part.note
    for figure in part.figures:
        lines = list(csv.DictReader(io.StringIO(figure.csv)))
        assert {line["arm"] for line in lines} == {"human", "robot"}
        assert max(float(line["tau_s"]) for line in lines) == 120  # the budget
        assert lines[0]["mtbf_s"] == "inf"  # the human failed nowhere, and is drawn all the same


def test_sides_are_compared_by_items_moved_which_is_what_p_is_of(page):
    rows, sides = (table for _, table in section(page, "configuration").tables)
    assert [c.label for c in rows.columns][-2:] == ["Items moved % [95 %]", "F(budget) %"]
    assert "a timeout is slow there and not failed" in rows.note
    assert [c.label for c in sides.columns][1] == "Same side, items moved %" and sides.note.startswith("p is of items")


def test_other_estimators_stand_beside_the_headline_one(page):
    headings = [heading for heading, _ in section(page, "sensitivity").tables]
    assert headings == [
        "RMST by other estimators",
        "HRT if timeouts meant the worst, or the best",
        "RMST by order of operation",
    ]
    hrt = section(page, "sensitivity").tables[1][1]
    assert [column.label for column in hrt.columns[1:]] == ["HRT %, at least", "HRT %, at most"]
    assert "never done, every one of the reference a success" in hrt.note, "both arms' timeouts are taken one way each"
    by_order = section(page, "sensitivity").tables[2][1]
    assert by_order.columns[-1].label == "Operation 3"


def test_sides_sessions_and_people_are_named(page):
    assert any("tote right, camera left" in row for row in section(page, "configuration").tables[0][1].rows)
    assert "p07, p08" in section(page, "time").note
    assert [column.label for column in section(page, "time").tables[1][1].columns][1:3] == [
        "s-1, moved %",
        "s-2, moved %",
    ]


def test_the_pair_says_how_many_blocks_it_rests_on(page):
    ((_, table),) = section(page, "moved").tables
    assert table.rows[0][0] == "human – robot" and table.rows[0][3] == "12 blocks"


@pytest.mark.parametrize(
    ("ci", "p", "shown"),
    [
        ([0.036, 0.172], 0.12, "10.4 [3.6, 17.2] †"),  # four of twelve blocks differ, all one way: p = 2 / 2^4
        ([0.036, 0.172], 0.05, "10.4 [3.6, 17.2]"),
        ([-0.014, 0.222], 0.09, "10.4 [−1.4, 22.2]"),
        (None, 0.5, "10.4"),
    ],
)
def test_an_interval_of_items_moved_that_its_exact_p_contradicts_is_marked(ci, p, shown):
    assert pair_tables.moved_difference(0.104, ci, p, 0.05) == shown
    assert pair_tables.marked("10.4", ci, p, 0.05).endswith(" †") == shown.endswith(" †")


@pytest.mark.parametrize(
    ("column", "value", "ci", "p"),
    [
        ("Ratio alone [95 %]", ("log_rmst_ratio", -0.5), ("log_rmst_ratio_ci", [-0.9, -0.1]), "log_rmst_ratio"),
        ("Items per robot-hour, difference [95 %]", ("uph_difference", 9.0), ("uph_difference_ci", [1, 17]), "uph"),
    ],
)
def test_an_interval_that_its_own_p_contradicts_is_marked_where_it_stands(rows, column, value, ci, p):
    table = table_from_rows(rows, source="made up")
    result = analyses.analyze(table, reference="human", tau=120.0, boot=199, perm=199, seed=0)
    (pair,) = result["pairs"]
    for of_p, marked in ((0.2, True), (0.01, False)):
        pair.update([value, ci], p={**pair["p"], p: of_p})
        shown = pair_tables.pair_table(result)
        ((cell,),) = [[row[n] for n, head in enumerate(shown.columns) if head.label == column] for row in shown.rows]
        assert cell.endswith(" †") == marked and "†: " in shown.note


def test_of_one_configuration_no_balance_is_claimed(rows):
    alike = [{**row, "tote_side": "left"} for row in rows]
    table = table_from_rows(alike, source="made up")
    result = analyses.analyze(table, reference="human", tau=120.0, boot=19, perm=19, seed=0)
    found = supplement.supplement(table, result, perm=19)
    made, _ = build_page(result, alike, lab=None, title="made up", supplement=found)
    ((_, shown), *_) = section((made, []), "configuration").tables
    assert shown.note.startswith("Every episode was run in this one configuration")


def test_every_figure_comes_with_the_numbers_it_draws(page):
    drawn = {figure.name: figure for figure in page[1]}
    assert {"qq-towels", "qq-spoons", "trend", "sweep-towels", "sweep-spoons"} <= set(drawn)
    lines = list(csv.DictReader(io.StringIO(drawn["qq-towels"].csv)))
    assert all(float(line["arm_s"]) > float(line["reference_s"]) for line in lines)
    assert len(list(csv.DictReader(io.StringIO(drawn["trend"].csv)))) == 24


def test_without_a_supplement_the_page_is_as_it_was(rows):
    result = analyses.analyze(table_from_rows(rows, source=""), reference="human", tau=120.0, boot=19, perm=19, seed=0)
    made, _ = build_page(result, rows, lab=None, title="made up")
    assert made["supplementary"] == []
