"""An operations table is accepted whole or refused with file, line, value found, what is allowed and a remedy."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from labctl.analysis.episodes.estimand import affected
from labctl.analysis.episodes_table.values import is_void
from labctl.analysis.reading import read_table
from labctl.analysis.report.tables import failures
from labctl.analysis.table import CENSORED, GHOST, SUCCESS, UNKNOWN, Row, Value, table_from_rows
from labctl.errors import TableError

HEADER = "episode,arm,object,kind,time_s"


def write(folder: Path, *lines: str) -> Path:
    file = folder / "table.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def refusal(folder: Path, *lines: str) -> str:
    with pytest.raises(TableError) as e:
        read_table(write(folder, *lines))
    return str(e.value)


def test_rows_become_columns_in_file_order(tmp_path: Path) -> None:
    lines = ("e1,a,cup,success,1.5", "e2,b,cup,ghost,", "e1,a,cup,ghost,2", "e1,a,cup,censored,3")
    table = read_table(write(tmp_path, HEADER, *lines))
    assert [e.name for e in table.episodes] == ["e1", "e2"]
    assert table.episode.tolist() == [0, 1, 0, 0]
    assert table.kind.tolist() == [SUCCESS, GHOST, GHOST, CENSORED]
    assert table.time_ns.tolist() == [1_500_000_000, UNKNOWN, 2_000_000_000, 3_000_000_000]
    assert [r.tolist() for r in table.rows_by_episode()] == [[0, 2, 3], [1]]


def test_near_ties_are_one_time() -> None:
    rows = [dict(episode=str(i), arm="a", object="o", kind="success", time_s=t) for i, t in enumerate((0.1 + 0.2, 0.3))]
    assert len(set(table_from_rows(rows).time_ns.tolist())) == 1


@pytest.mark.parametrize(
    ("line", "found", "allowed"),
    [
        ("e1,a,cup,failure,1", "'failure'", "success, censored, ghost"),
        ("e1,a,cup,success,-1", "'-1'", "0 or more"),
        ("e1,a,cup,success,inf", "'inf'", "finite"),
        ("e1,a,cup,success,nan", "'nan'", "finite"),
        ("e1,a,cup,success,", "empty", "ghost"),
        ("e1,a,cup,censored,soon", "'soon'", "seconds"),
        ("e1,,cup,success,1", "arm is empty", "names its arm"),
        ("e1,a,cup,success,1,7", "6 values for 5 columns", "quote"),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_what_is_allowed(
    tmp_path: Path, line: str, found: str, allowed: str
) -> None:
    text = refusal(tmp_path, HEADER, "e0,a,cup,success,1", line)
    assert "table.csv:3: " in text and found in text and allowed in text and "\n" not in text


def test_an_episode_ends_at_its_censored_row(tmp_path: Path) -> None:
    twice = refusal(tmp_path, HEADER, "e1,a,cup,censored,1", "e2,a,cup,success,1", "e1,a,cup,censored,2")
    assert "table.csv:4" in twice and "line 2" in twice and "at most one censored" in twice
    assert "it is the last" in refusal(tmp_path, HEADER, "e1,a,cup,censored,1", "e1,a,cup,success,2")


@pytest.mark.parametrize(("line", "column"), [("e1,b,cup,success,2", "arm"), ("e1,a,pan,success,2", "object")])
def test_an_episode_has_one_arm_and_one_object(tmp_path: Path, line: str, column: str) -> None:
    text = refusal(tmp_path, HEADER, "e1,a,cup,success,1", line)
    assert "table.csv:3" in text and "line 2" in text and f"one {column}" in text


def test_an_episode_has_one_budget_and_it_is_not_zero(tmp_path: Path) -> None:
    header = HEADER + ",budget_s"
    assert "60.0" in refusal(tmp_path, header, "e1,a,cup,success,1,60", "e1,a,cup,success,1,90")
    assert "budget_s is 0" in refusal(tmp_path, header, "e1,a,cup,success,1,0")


def test_items_staged_are_whole(tmp_path: Path) -> None:
    assert "whole number" in refusal(tmp_path, HEADER + ",items_staged", "e1,a,cup,success,1,2.5")


def test_unknown_columns_need_extra(tmp_path: Path) -> None:
    file = write(tmp_path, HEADER + ",mood", "e1,a,cup,success,1,good")
    with pytest.raises(TableError, match=r"table\.csv:1: unknown column 'mood'; known are episode.*--extra"):
        read_table(file)
    assert len(read_table(file, extra=True).episodes) == 1


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("",), "empty"),
        ((HEADER,), "no rows"),
        (("episode,arm,object,kind",), "missing column time_s"),
        ((HEADER + ",arm",), "'arm' appears 2 times"),
        ((HEADER, 'e1,a,"cup,success,1'), "is not CSV"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, lines: tuple[str, ...], found: str) -> None:
    assert found in refusal(tmp_path, *lines)


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(HEADER.encode() + b"\ne1,a,caf\xe9,success,1\n")
    with pytest.raises(TableError, match=r"table\.csv:2: byte 0xe9 is not UTF-8"):
        read_table(file)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"none\.csv: cannot be read: No such file"):
        read_table(tmp_path / "none.csv")


def test_lines_are_counted_through_quoted_line_breaks(tmp_path: Path) -> None:
    text = refusal(tmp_path, HEADER + ",cause", 'e1,a,cup,ghost,1,"fell\ndown"', "e2,a,cup,oops,1,")
    assert "table.csv:4" in text


def test_a_byte_order_mark_and_blank_lines_are_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b"\xef\xbb\xbf" + HEADER.encode() + b"\r\n\r\ne1,a,cup,success,1\r\n")
    assert read_table(file).time_ns.tolist() == [1_000_000_000]


def test_parquet_and_csv_give_the_same_table(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "episode": ["e1", "e1"],
        "arm": ["a", "a"],
        "object": ["cup", "cup"],
        "kind": ["success", "ghost"],
        "time_s": [1.25, None],
    }
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    other = read_table(write(tmp_path, HEADER, "e1,a,cup,success,1.25", "e1,a,cup,ghost,"))
    read = read_table(tmp_path / "t.parquet")
    assert read.time_ns.tolist() == other.time_ns.tolist() and read.kind.tolist() == other.kind.tolist()


def test_what_is_not_parquet_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "t.parquet"
    file.write_text("episode,arm")
    with pytest.raises(TableError, match="not a Parquet file"):
        read_table(file)


NO = ["", None, 0, 0.0, math.nan, False, "0", "0.0", "false", "No", " "]


@pytest.mark.parametrize("said", [*NO, 1, 1.0, "1.0", True, "yes", "camera_lost"], ids=repr)
def test_what_a_column_says_of_void_is_the_same_to_all_who_read_it(said: Value) -> None:
    """A column that was empty in some rows comes from a data frame as 0.0 and 1.0, and nan."""
    rows: list[Row] = [
        {"episode": "e1", "arm": "a", "object": "o", "kind": "ghost", "time_s": 1, "void": said},
        {"episode": "e2", "arm": "a", "object": "o", "kind": "success", "time_s": 1, "void": 0},
    ]
    void = said not in NO and said == said
    assert table_from_rows(rows).episodes[0].void == void
    assert is_void(rows[0]) == void
    assert failures(rows, None)["a"] == ({} if void else {"lost": 1})
    assert bool(affected([{**row, "kind": "censored", "cause": ""} for row in rows])["voids"]) == void


def test_void_episodes_stand_in_the_table_but_in_no_cell() -> None:
    rows = [
        dict(episode="e1", arm="a", object="o", kind="success", time_s=1, void=""),
        dict(episode="e2", arm="a", object="o", kind="success", time_s=1, void="camera_lost"),
    ]
    assert table_from_rows(rows).cells() == {("a", "o"): (0,)}


NUMBERED = f"{HEADER},op_index"


def test_rows_of_an_episode_stand_in_the_order_of_their_op_index(tmp_path: Path) -> None:
    """*Seen:* shuffled rows turned an RMST of first operations of 11.1 s into 51.1 s."""
    shuffled = ("e1,a,cup,censored,3,2", "e2,a,cup,success,9,0", "e1,a,cup,success,1.5,0", "e1,a,cup,ghost,2,1")
    table = read_table(write(tmp_path, NUMBERED, *shuffled))
    assert [table.kind[rows].tolist() for rows in table.rows_by_episode()] == [[SUCCESS, GHOST, CENSORED], [SUCCESS]]
    assert [e.name for e in table.episodes] == ["e1", "e2"]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (("e1,a,cup,success,1,0", "e1,a,cup,success,2,0"), "op_index 0 here and in line 2"),
        (("e1,a,cup,success,1,0", "e1,a,cup,success,2,"), "rows with an op_index and rows without"),
        (("e1,a,cup,success,1,-1",), "op_index is '-1'; allowed is a whole number, 0 or more"),
        (("e1,a,cup,censored,1,0", "e1,a,cup,success,2,1"), "goes on after its censored row (line 2)"),
    ],
)
def test_an_op_index_that_gives_no_order_is_refused(tmp_path: Path, rows: tuple[str, ...], found: str) -> None:
    assert found in refusal(tmp_path, NUMBERED, *rows)


def test_times_that_no_budget_holds_are_refused(tmp_path: Path) -> None:
    """*Seen:* 1,883 s passed inside a budget of 240 s."""
    header = f"{HEADER},budget_s,end_s"
    text = refusal(tmp_path, header, "e1,a,cup,success,200,240,", "e1,a,cup,success,100,240,")
    assert "table.csv:3: " in text and "'e1' is 300 s in, beyond its budget_s of 240" in text
    assert "is 1883 s in" in refusal(tmp_path, header, "e1,a,cup,success,10,240,1883")
    read_table(
        write(tmp_path, header, "e1,a,cup,success,200,240,", "e1,a,cup,ghost,40,240,", "e1,a,cup,censored,41,240,")
    )
