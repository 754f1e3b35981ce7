"""Whatever holds rows becomes a table, with the same numbers; what does not is refused in one line."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pytest
from support.api_files import operations

from labctl import api
from labctl.api.frames import LIBRARIES, frame_of, rows_of
from labctl.cli import call
from labctl.errors import InputError, TableError

FEW: dict[str, Any] = {"reference": "human", "boot": 99, "perm": 99}


class OnlyArrow:
    """A frame of a library that nobody has heard of: it speaks Arrow's stream and nothing else."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyInterchange:
    """A frame that speaks the interchange protocol and nothing else."""

    def __init__(self, frame: pandas.DataFrame) -> None:
        self._frame = frame

    def __dataframe__(self, **how: Any) -> object:
        return self._frame.__dataframe__(**how)


class LikePolars:
    """A frame as polars has it: names in `columns`, rows by `to_dicts`."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.columns, self._rows = [*rows[0]], rows

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self._rows]


def frames() -> dict[str, Any]:
    rows = operations()
    frame = pandas.DataFrame(rows)
    arrow = pyarrow.Table.from_pylist(rows)
    polars = importlib.import_module("polars").DataFrame if importlib.util.find_spec("polars") else LikePolars
    return {
        "rows": rows,
        "polars": polars(rows),
        "columns": {name: [row[name] for row in rows] for name in rows[0]},
        "pandas": frame,
        "arrow": arrow,
        "arrow stream": OnlyArrow(arrow),
        "interchange": OnlyInterchange(frame),
    }


@pytest.mark.parametrize("kind", frames())
def test_a_frame_gives_what_its_file_gives(kind: str, beside: Path) -> None:
    table = api.from_frame(frames()[kind])
    assert isinstance(table, api.OperationsTable)
    assert (len(table), table.arms, table.objects) == (len(operations()), ("act", "human", "pi0"), ("cup", "towel"))
    assert table.analyze(**FEW).to_json() == api.load("operations.csv").analyze(**FEW).to_json()


def test_the_bytes_are_those_of_the_command(beside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["analyze", "operations.csv", "--reference", "human", "--boot", "99", "--perm", "99", "--json"]) == 0
    assert capsys.readouterr().out == api.load("operations.csv").analyze(**FEW).to_json()
    assert call(["analyze", "episodes.csv", "--boot", "99", "--perm", "99", "--json"]) == 0
    assert capsys.readouterr().out == api.load("episodes.csv").analyze(boot=99, perm=99).to_json()


def test_missing_numbers_of_pandas_are_empty_and_whole_ones_stay_whole() -> None:
    frame = pandas.DataFrame(operations())
    frame["items_staged"] = frame["items_staged"].astype(float)
    frame["end_s"] = float("nan")
    frame["interventions"] = pandas.array([pandas.NA] * len(frame), dtype="Int64")
    result = api.from_frame(frame).analyze(**FEW)
    assert result.cell("pi0", "cup").items_staged == 18
    assert result.arm("pi0").helped is None


def test_a_boolean_success_is_one() -> None:
    frame = pandas.DataFrame({"block": [1, 1, 2, 2], "arm": ["a", "b"] * 2, "success": [True, False, True, True]})
    table = api.from_frame(frame)
    assert isinstance(table, api.EpisodesTable)
    assert [arm.successes for arm in table.analyze(boot=99, perm=99).arms] == [2, 1]


def test_columns_of_one_name_are_named() -> None:
    frame = pandas.DataFrame([[1, 2]], columns=["arm", "arm"])
    with pytest.raises(InputError, match="column 'arm' 2 times; keep one"):
        api.from_frame(frame)


def test_a_wrong_value_is_named_by_its_row() -> None:
    rows = operations()
    rows[4] = {**rows[4], "kind": "done"}
    with pytest.raises(TableError, match=r"^frame:5: kind is 'done'; allowed are success, censored, ghost"):
        api.from_frame(pandas.DataFrame(rows))


SERIES = pandas.Series(["a", "b"], name="arm")


class ArrowSeries:
    """One column of a library that nobody has heard of: Arrow's stream of something that is no row."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pyarrow.chunked_array([["a", "b"]]).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("thing", [7, "operations.csv", object(), [1, 2], SERIES, ArrowSeries()])
def test_what_is_no_table_is_refused(thing: object) -> None:
    with pytest.raises(InputError, match=r"is no table|holds mappings"):
        api.from_frame(thing)


@pytest.mark.parametrize("kind", ["rows", "columns", "pandas", "arrow", "arrow stream", "interchange"])
def test_a_frame_without_rows_is_said_to_have_none(kind: str) -> None:
    some = frames()[kind]
    none: dict[str, Any] = {"rows": [], "columns": {name: [] for name in operations()[0]}}
    frame = pandas.DataFrame(operations())[:0]
    none |= {"pandas": frame, "arrow": pyarrow.Table.from_pandas(frame)}
    none |= {"arrow stream": OnlyArrow(none["arrow"]), "interchange": OnlyInterchange(frame)}
    assert type(none[kind]) is type(some)
    with pytest.raises(TableError, match=r"^frame: no rows; a table needs at least one operation or episode$"):
        api.from_frame(none[kind])


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(InputError, match="arm 2, block 1"):
        api.from_frame({"arm": ["a", "b"], "block": [1]})


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_that_the_first_row_has_not_is_in_every_library_s_frame(library: str) -> None:
    """Of pairs only some have a margin, of episodes only some reached the second stage."""
    pytest.importorskip(library)
    rows = [{"episode": "e1", "stage_1_s": 3.0}, {"episode": "e2", "stage_1_s": 2.0, "stage_2_s": 4.0}]
    assert rows_of(frame_of(rows, library)) == [{**rows[0], "stage_2_s": None}, rows[1]]


def test_infinity_is_a_float() -> None:
    never = [
        {**row, "kind": "censored", "time_s": 60.0} for row in operations() if str(row["episode"]).startswith("pi0")
    ]
    first = list({row["episode"]: row for row in never}.values())
    others = [row for row in operations() if not str(row["episode"]).startswith("pi0")]
    result = api.from_frame([*others, *first]).analyze(**FEW)
    assert result.cell("pi0", "cup").median == math.inf
    assert result.arm("pi0").seconds_per_item == math.inf


def test_a_representation_is_a_line(beside: Path) -> None:
    table = api.load("operations.csv")
    assert repr(table) == (
        f"OperationsTable(operations.csv: {len(table)} operations, 36 episodes, 2 objects; arms act, human, pi0)"
    )
    assert repr(api.load("episodes.csv")) == "EpisodesTable(episodes.csv: 16 episodes, 8 blocks; arms act, pi0)"
    said = repr(table.analyze(**FEW))
    assert re.search(r"; 3 pairs, \d+ warnings?\)$", said), said
    one = api.from_frame([row for row in operations() if row["arm"] != "human" and row["object"] == "cup"])
    assert ", 1 object; arms act, pi0)" in repr(one)
    assert "; 1 pair, " in repr(one.analyze(**{**FEW, "reference": None}))
    assert len(said) < 300
    assert "\n" not in said


def test_a_notebook_shows_the_first_rows_of_a_table_and_how_many_more_there_are(beside: Path) -> None:
    page = api.load("operations.csv")._repr_html_()
    assert page.count("<tr>") == 1 + 20 and "<th>time_s</th>" in page
    assert f"and {len(operations()) - 20} rows more" in page
    assert "more" not in api.load("episodes.csv")._repr_html_()
