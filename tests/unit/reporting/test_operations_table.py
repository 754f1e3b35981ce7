"""Claims about the operations table: what its random variable is (methodology.md section 1), and who sees the arm."""

from __future__ import annotations

import csv

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.counted_story import BUDGET_S, Story

from labctl.analysis.table import table_from_rows
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.errors import InputError, MissingExtra
from labctl.reporting.operations_table import COLUMNS, filter_rows, operations, outcomes_of, write_table


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_success_counts_from_the_previous_success_or_go(story):
    story.episode(
        [("success", t) for t in (9.38, 14.54, 32.84, 43.57)], 43.57, "all_done", moved=4, lost=0, remaining=0
    )
    assert story.rows() == [("success", t, None) for t in (9.38, 5.16, 18.3, 10.73)]


def test_work_left_when_the_budget_ends_is_one_censored_tail(story):
    story.episode([("success", 30.0)], 120.0, "budget", moved=1, lost=0, remaining=3)
    assert story.rows() == [("success", 30.0, None), ("censored", 90.0, "budget")]


def test_an_episode_without_success_is_one_censored_observation_of_its_budget(story):
    story.episode([], 120.0, "budget", moved=0, lost=0, remaining=4)
    assert story.rows() == [("censored", BUDGET_S, "budget")]


def test_an_episode_that_ended_as_it_began_is_in_the_table_whatever_was_counted(story):
    story.episode([], 0.0, "operator", moved=4, lost=0, remaining=0)
    assert story.rows() == [("censored", 0.0, "operator")]


def test_a_lost_item_is_a_ghost_with_its_cause_and_time_and_does_not_restart_the_clock(story):
    ops = [("success", 10.0), ("lost", 16.0, "outside"), ("success", 25.0)]
    story.episode(ops, 120.0, "budget", moved=2, lost=1, remaining=1)
    expected = [
        ("success", 10.0, None),
        ("ghost", 6.0, "outside"),
        ("success", 15.0, None),
        ("censored", 95.0, "budget"),
    ]
    assert story.rows() == expected


def test_the_operation_that_stopped_the_robot_is_a_ghost_and_nothing_is_censored_after_it(story):
    ops = [("success", 10.0), ("safety_stop", 13.5, "reflex in joint 4")]
    story.episode(ops, 13.5, "safety_stop", moved=1, lost=0, remaining=3)
    assert story.rows() == [("success", 10.0, None), ("ghost", 3.5, "safety_stop")]


def test_a_safety_stop_that_no_operation_recorded_is_a_ghost_at_the_end(story):
    story.episode([("success", 10.0)], 12.0, "safety_stop", moved=1, lost=0, remaining=3)
    assert story.rows() == [("success", 10.0, None), ("ghost", 2.0, "safety_stop")]


STOP = ("safety_stop", 13.5, "reflex in joint 4")
MOVED = [("success", 10.0), ("success", 11.0), ("success", 12.0)]
ROWS = [("success", 10.0, None), ("success", 1.0, None), ("success", 1.0, None)]


@pytest.mark.parametrize("told", [[], [STOP]])
def test_an_item_that_was_lost_at_a_stop_is_one_ghost(story, told):
    # seen: of 2 items one moved and one lost at the stop, and labctl said 3 operations with 2 ghosts
    story.episode([*MOVED, *told], 13.5, "safety_stop", moved=3, lost=1, remaining=0)
    assert story.rows() == [*ROWS, ("ghost", 1.5, "safety_stop")]


@pytest.mark.parametrize("told", [[], [STOP]])
def test_a_loss_without_a_time_is_another_ghost_where_an_item_remained_at_the_stop(story, told):
    story.episode([*MOVED[:2], *told], 13.5, "safety_stop", moved=2, lost=1, remaining=1)
    assert story.rows() == [*ROWS[:2], ("ghost", 2.5, "safety_stop"), ("ghost", None, "uncollected")]


@pytest.mark.parametrize("told", [[], [STOP]])
def test_a_stop_when_no_item_was_open_fails_none(story, told):
    story.episode([*MOVED, ("success", 13.0), *told], 13.5, "safety_stop", moved=4, lost=0, remaining=0)
    assert story.rows() == [*ROWS, ("success", 1.0, None), ("censored", 0.5, "safety_stop")]


@pytest.mark.parametrize("told", [[], [STOP]])
def test_a_stop_after_the_last_item_was_lost_is_no_second_loss_of_it(story, told):
    story.episode([*MOVED, ("lost", 12.5, "fell"), *told], 13.5, "safety_stop", moved=3, lost=1, remaining=0)
    assert story.rows() == [*ROWS, ("ghost", 0.5, "fell"), ("censored", 1.5, "safety_stop")]


def test_an_item_found_lost_at_scoring_is_a_ghost_without_a_time(story):
    story.episode([("success", 10.0)], 120.0, "budget", moved=1, lost=1, remaining=2)
    assert story.rows() == [("success", 10.0, None), ("ghost", None, "uncollected"), ("censored", 110.0, "budget")]


@pytest.mark.parametrize("reason", ["futility", "operator"])
def test_an_early_end_says_so_in_its_censored_row(story, reason):
    story.episode([("success", 10.0)], 31.0, reason, moved=1, lost=0, remaining=3)
    assert story.rows()[-1] == ("censored", 21.0, reason)


def test_all_items_lost_or_moved_leaves_nothing_to_censor(story):
    ops = [("success", 1.0), ("success", 2.0), ("lost", 3.0), ("success", 4.0)]
    story.episode(ops, 4.0, "all_done", moved=3, lost=1, remaining=0)
    assert [kind for kind, *_ in story.rows()] == ["success", "success", "ghost", "success"]
    assert story.rows()[2][2] == "lost"


DISPUTED = {"reason": "all_done", "wrong_end": True}


def test_after_a_wrong_end_what_remained_is_censored_there_and_the_counts_are_the_persons(story):
    """A device counted four moved at 43.57 s; the operator found one of them back in the source tote. Nobody knows
    which placement did not happen: the last is taken back, so that the time at risk stays what it was.
    """
    story.episode(
        [("success", t) for t in (9.38, 14.54, 32.84, 43.57)], 43.57, moved=3, lost=0, remaining=1, **DISPUTED
    )
    assert story.rows() == [
        ("success", 9.38, None),
        ("success", 5.16, None),
        ("success", 18.3, None),
        ("censored", 10.73, "wrong_end"),
    ]
    (row, *_) = operations(record_of(story.events))
    assert (row["items_staged"], row["end_s"], row["budget_s"]) == (4, 43.57, BUDGET_S)


def test_an_item_a_device_called_lost_that_was_found_in_the_source_tote_is_no_ghost(story):
    ops = [("success", 10.0), ("lost", 16.0, "outside"), ("success", 25.0), ("lost", 30.0)]
    story.episode(ops, 30.0, moved=2, lost=1, remaining=1, **DISPUTED)
    expected = [
        ("success", 10.0, None),
        ("ghost", 6.0, "outside"),
        ("success", 15.0, None),
        ("censored", 5.0, "wrong_end"),
    ]
    assert story.rows() == expected


def test_all_that_a_device_saw_may_have_been_wrong(story):
    story.episode([("success", t) for t in (1.0, 2.0, 3.0, 4.0)], 4.0, moved=0, lost=0, remaining=4, **DISPUTED)
    assert story.rows() == [("censored", 4.0, "wrong_end")]


def test_a_voided_episode_is_not_in_the_table_but_its_next_attempt_is(story):
    story.episode([("success", 5.0)], 6.0, "arm_lost", void="arm_lost")
    assert story.rows() == []
    story.episode([("success", 7.0)], 120.0, "budget", moved=1, lost=0, remaining=3)
    rows = operations(record_of(story.events))
    assert [row["time_s"] for row in rows] == [7.0, 113.0] and {row["void"] for row in rows} == {0}


def test_a_correction_of_the_outcome_is_what_counts(story):
    story.episode([("success", 10.0)], 120.0, "budget", moved=1, lost=0, remaining=3)
    old = {**story.events[-1].body["outcome"], "notes": "", "stage_reached": None}
    corrected = {"old": old, "new": {**old, "lost": 3, "remaining": 0}, "why": "they lay under the table"}
    story.add(Kind.OUTCOME_CORRECTED, corrected, "t-0", story.events[-1].episode)
    assert story.rows() == [("success", 10.0, None)] + [("ghost", None, "uncollected")] * 3


def test_there_is_no_arm_column_before_unblinding(story, tmp_path):
    story.episode([("success", 10.0)], 120.0, "budget", moved=1, lost=0, remaining=3, n=0)
    assert all("arm" not in row for row in operations(record_of(story.events)))
    story.unblind()
    assert {row["arm"] for row in operations(record_of(story.events))} == {"human"}


def test_each_row_says_where_it_belongs(story):
    story.episode([("success", 10.0)], 120.0, "budget", moved=1, lost=0, remaining=3)
    row = operations(record_of(story.events))[0]
    assert row | {"episode": "e"} == {
        "episode": "e",
        "object": "towels",
        "kind": "success",
        "time_s": 10.0,
        "op_index": 0,
        "items_staged": 4,
        "end_s": 120.0,
        "budget_s": 120.0,
        "block": 0,
        "session": "s-1",
        "trial": "t-0",
        "condition": "towels/l1",
        "cause": None,
        "stage": None,
        "operator": "p-1",
        "tote_side": "left",
        "camera_side": "right",
        "axis": "",
        "void": 0,
        "interventions": 0,
    }


@given(st.lists(st.integers(0, 120 * SECOND), max_size=4))
def test_times_of_an_episode_add_up_to_its_end(times):
    story = Story()
    story.episode(
        [("success", t / SECOND) for t in sorted(times)],
        120.0,
        "budget",
        moved=len(times),
        lost=0,
        remaining=4 - len(times),
    )
    rows = operations(record_of(story.events))
    total_us = sum(round(row["time_s"] * 1e6) for row in rows)
    expected = 120.0 if len(times) < 4 else max(times) / SECOND
    assert abs(total_us - expected * 1e6) <= 1
    assert all(row["time_s"] >= 0 for row in rows)


def test_the_file_has_the_documented_columns_and_is_not_left_half_written(story, tmp_path):
    story.episode([("success", 10.123456789)], 120.0, "budget", moved=1, lost=1, remaining=2)
    path = tmp_path / "table.csv"
    write_table(operations(record_of(story.events)), path)
    with path.open(newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == [column for column in COLUMNS if column not in ("arm", "alone", "cell")]
    assert [row["time_s"] for row in read] == ["10.123457", "", "109.876543"]
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_the_statistics_accept_the_table(story):
    story.episode([("success", 10.0), ("lost", 12.0, "outside")], 120.0, "budget", moved=1, lost=2, remaining=1, n=0)
    story.episode([("safety_stop", 3.0)], 3.0, "safety_stop", moved=0, lost=0, remaining=4, n=1)
    story.unblind()
    table = table_from_rows(operations(record_of(story.events)))
    assert table.arms() == ("human", "policy-a")
    assert len(table.episode) == 5


def test_an_empty_column_of_the_parquet_table_keeps_its_type(story, tmp_path):
    story.episode([("success", t) for t in (1, 2, 3, 4)], 4.0, "all_done", moved=4, lost=0, remaining=0)
    write_table(operations(record_of(story.events)), tmp_path / "t.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert table["cause"].to_pylist() == [None] * 4 and str(table.schema.field("cause").type) == "string"
    assert table["time_s"].to_pylist() == [1.0] * 4


def test_parquet_without_its_library_names_the_extra(story, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"labctl\[parquet\]"):
        write_table([], tmp_path / "t.parquet")


def test_filtering_keeps_whole_episodes(story):
    story.episode([("success", t) for t in (1, 2, 3, 4)], 4.0, "all_done", moved=4, lost=0, remaining=0, n=0)
    story.episode([("success", 1)], 120.0, "budget", moved=1, lost=0, remaining=3, n=1)
    rows, told = operations(record_of(story.events)), outcomes_of(record_of(story.events))
    assert len(filter_rows(rows, "outcome=success", told)) == 4
    assert len(filter_rows(rows, "outcome=failure", told)) == 2
    assert len(filter_rows(rows, "cause=budget", told)) == 2
    assert len(filter_rows(rows, "end_reason=all_done", told)) == 4
    for wrong in ("outcome", "outcome=perhaps", "=", "colour=red"):
        with pytest.raises(InputError, match="--where"):
            filter_rows(rows, wrong, told)
    with pytest.raises(InputError, match="no arm column before unblinding"):
        filter_rows(rows, "arm=human", told)


def test_a_void_episode_that_counts_is_a_failure_that_nothing_ended(story):
    story.events[0].body["estimand"] = {"voids": "no_success"}
    story.episode([("success", t) for t in (1, 2, 3, 4)], 4.0, "all_done", moved=4, lost=0, remaining=0, n=0)
    story.episode([], 9.0, "arm_lost", void="arm_lost", n=1)
    rows, told = operations(record_of(story.events)), outcomes_of(record_of(story.events))
    assert [row["kind"] for row in rows] == ["success"] * 4 + ["censored"]
    assert (
        filter_rows(rows, "outcome=failure", told) == rows[4:]
        and filter_rows(rows, "outcome=success", told) == rows[:4]
    )
    assert filter_rows(rows, "end_reason=all_done", told) == rows[:4]
    assert filter_rows(rows, "end_reason=arm_lost", told) == []


def test_an_outcome_that_was_corrected_is_what_a_filter_asks_for(story):
    story.episode([("success", 1.0)], 120.0, "budget", moved=1, lost=0, remaining=3)
    old = {**story.events[-1].body["outcome"], "notes": "", "stage_reached": None}
    corrected = {"old": old, "new": {**old, "moved": 4, "remaining": 0}, "why": "three were under the first"}
    story.add(Kind.OUTCOME_CORRECTED, corrected, "t-0", story.events[-1].episode)
    rows, told = operations(record_of(story.events)), outcomes_of(record_of(story.events))
    assert filter_rows(rows, "outcome=success", told) == rows and not filter_rows(rows, "outcome=failure", told)


def test_a_workbook_holds_the_rows_as_numbers_and_texts(story, tmp_path):
    from openpyxl import load_workbook

    story.episode([("success", 10.5)], 120.0, "budget", moved=1, lost=0, remaining=3)
    rows = operations(record_of(story.events))
    rows[0]["cause"] = "=HYPERLINK(1)\x07"
    write_table(rows, tmp_path / "t.xlsx")
    sheet = load_workbook(tmp_path / "t.xlsx")["operations"]
    head, *found = sheet.iter_rows(values_only=True)
    kept = {column: rows[0][column] if rows[0][column] != "" else None for column in head}
    assert dict(zip(head, found[0], strict=True)) == {**kept, "cause": "=HYPERLINK(1) "}
    assert sheet.cell(2, head.index("cause") + 1).data_type == "s" and len(found) == len(rows)


def test_a_name_that_no_table_has_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"t\.xls: a table's name ends in \.csv, \.parquet, \.xlsx"):
        write_table([], tmp_path / "t.xls")
    assert not list(tmp_path.iterdir())


def test_an_item_dropped_picked_up_again_and_placed_is_one_success_and_no_loss(story):
    ops = [("success", 10.0), ("lost", 16.0, "dropped"), ("success", 25.0)]
    story.episode(ops, 120.0, "budget", moved=2, lost=0, remaining=2)
    assert story.rows() == [("success", 10.0, None), ("success", 15.0, None), ("censored", 95.0, "budget")]


@pytest.mark.parametrize("reason", ["operator", "shutdown", "arm_lost"])
def test_an_end_long_after_the_budget_as_old_journals_have_it_is_that_of_the_budget(story, reason):
    """A run that had stood still journalled it as it came, and the table was refused: no report could be made."""
    story.episode([("success", 30.0)], 300.0, reason, n=0, moved=2, lost=0, remaining=2)
    story.episode([], 120.4, reason, n=1, moved=0, lost=0, remaining=4)
    assert story.rows() == [
        ("success", 30.0, None),
        ("success", 45.0, "untimed"),
        ("censored", 45.0, "budget"),
        ("censored", 120.4, reason),  # as every report of it has had it
    ]
    story.unblind()
    table_from_rows(operations(record_of(story.events)))


@given(
    seen=st.lists(st.tuples(st.sampled_from(["success", "lost"]), st.floats(0.1, 99.0)), max_size=7),
    moved=st.integers(0, 4),
    lost=st.integers(0, 4),
)
def test_no_rows_contradict_the_outcome_in_moves_or_losses(seen, moved, lost):
    lost = min(lost, 4 - moved)
    story = Story()
    operations_ = [(result, t) for result, t in sorted(seen, key=lambda op: op[1])]
    story.episode(operations_, 100.0, "budget", moved=moved, lost=lost, remaining=4 - moved - lost)
    rows = story.rows()
    kinds = [kind for kind, *_ in rows]
    assert (kinds.count("success"), kinds.count("ghost")) == (moved, lost)
    assert all(t is None or t >= 0 for _, t, _ in rows)
    assert sum(t for kind, t, _ in rows if kind in ("success", "censored")) <= 100.001
