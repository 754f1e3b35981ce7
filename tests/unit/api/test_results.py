"""A result's rows hold every key that `labctl analyze --json` prints, and say what is not there."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from typing import get_type_hints

import pytest
from support.json_documents import judged

from labctl import api
from labctl.analysis.episodes_table import result as of_episodes
from labctl.analysis.survival import result as of_operations
from labctl.api.episodes_result import Stage
from labctl.api.values import Interval, rows_of
from labctl.cli import call
from labctl.errors import InputError
from labctl.software import analysed_by

SAME = [
    (api.Cell, of_operations.CellResult),
    (api.Arm, of_operations.ArmResult),
    (api.Pair, of_operations.PairResult),
    (api.ArmOfEpisodes, of_episodes.ArmOfEpisodes),
    (api.PairOfEpisodes, of_episodes.PairOfEpisodes),
    (Stage, of_episodes.StageReached),
]


LIBRARIES = [name for name in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(name)]


@pytest.mark.parametrize(("row", "printed"), SAME, ids=[row.__name__ for row, _ in SAME])
def test_a_row_has_every_key_that_is_printed_and_no_other(row: type, printed: type) -> None:
    assert {field.name for field in dataclasses.fields(row)} == {*get_type_hints(printed)}


def test_a_key_without_a_field_is_refused() -> None:
    with pytest.raises(ValueError, match="new_key"):
        rows_of(api.Curve, [{"t": [1.0], "F": [0.5], "new_key": 1}])


@pytest.fixture
def result(beside: Path) -> api.Analysis:
    table = api.load("operations.csv")
    assert isinstance(table, api.OperationsTable)
    return table.analyze(reference="human", boot=99, perm=99, margin=1.25)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_table_of_every_result_is_a_frame_of_each_library_and_holds_numbers_and_texts_alone(
    library: str, result: api.Analysis
) -> None:
    """A success curve is no value of a cell's row: `curves_to_frame` has its steps."""
    episodes = api.load("episodes.csv")
    assert isinstance(episodes, api.EpisodesTable)
    of_episodes = episodes.analyze(boot=99, perm=99)
    made = [result.to_frame(what, library) for what in ("arms", "cells", "pairs")]
    made += [of_episodes.to_frame(what, library) for what in ("arms", "pairs")]
    made += [result.curves_to_frame(library), episodes.to_frame(library)]
    for frame in made:
        names = list(getattr(frame, "column_names", None) or frame.columns)
        assert names and "curve" not in names
        values = [value for name in names for value in list(frame[name])]
        plain = [value.as_py() if hasattr(value, "as_py") else value for value in values]
        kinds = {type(value.item() if hasattr(value, "item") else value) for value in plain}
        assert kinds <= {str, int, float, bool, type(None)}, f"{names}: {kinds}"


def test_an_interval_has_ends_and_says_what_lies_in_it(result: api.Analysis) -> None:
    interval = result.arm("pi0").rmst_ci
    assert interval is not None
    assert isinstance(interval, Interval)
    assert interval.low < (result.arm("pi0").rmst or 0) < interval.high
    assert interval.holds(interval.high)
    assert not interval.holds(interval.high + 1)
    assert interval.width == interval.high - interval.low


def test_a_frame_has_a_row_for_each_and_two_columns_for_an_interval(result: api.Analysis) -> None:
    arms = result.to_frame("arms", "pandas")
    assert list(arms.arm) == ["act", "human", "pi0"]
    assert {"rmst", "rmst_ci_low", "rmst_ci_high", "hrt_ci_low"} < {*arms.columns}
    assert len(result.to_frame("cells")) == 6
    pairs = result.to_frame("pairs")
    assert {"p_ks_macro", "log_rmst_ratio_adjusted_ci_low"} < {*pairs.columns}
    assert result.to_frame("arms", "pyarrow").num_rows == 3


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda r: r.arm("pi1"), "there is no arm 'pi1'; there are: act, human, pi0"),
        (lambda r: r.cell("pi0", "hat"), "there is no cell 'pi0 on hat'; there are: act on cup"),
        (lambda r: r.pair("pi0", "act"), r"this pair stands as act and pi0, and its differences so; ask for pair\("),
        (lambda r: r.plot("hat"), "there is no object 'hat'; there are: cup, towel"),
        (lambda r: r.to_frame("rows"), "there is no table 'rows'; there are: arms, cells, pairs"),
        (lambda r: r.to_frame("arms", "excel"), "library is 'excel'; known are pandas, polars, pyarrow"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_a_line(result: api.Analysis, ask, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask(result)


def test_a_curve_is_a_step_function(result: api.Analysis) -> None:
    curve = result.cell("human", "cup").curve
    assert curve.at(0.0) == 0.0
    assert curve.at(curve.t[0]) == curve.F[0]
    assert curve.at(1e9) == curve.F[-1]


def test_what_a_name_holds_is_text_in_a_notebook(beside: Path) -> None:
    table = api.from_frame({"block": [1, 1], "arm": ["<b>", "b"], "success": [1, 0]})
    page = table.analyze(boot=99, perm=99)._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_the_picture_has_a_line_for_each_arm_and_says_what_it_is_of(result: api.Analysis) -> None:
    axes = result.plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["act", "human", "pi0"]
    assert (axes.get_xlabel(), axes.get_title()) == ("t, s", "mean over objects")
    assert result.plot("cup", ax=axes) is axes


def test_an_interval_that_is_unset_is_two_columns_of_nan_whatever_its_name(beside: Path) -> None:
    table = api.load("operations.csv")
    assert isinstance(table, api.OperationsTable)
    arms = table.analyze(boot=99, perm=99).to_frame("arms", "pandas")  # no reference, so no HRT
    unset = ["hrt_ci_low", "hrt_ci_high", "hrt_ci_percentile_low", "hrt_ci_percentile_high"]
    assert {*unset} < {*arms.columns} and not {"hrt_ci", "hrt_ci_percentile"} & {*arms.columns}
    assert all(arms[name].dtype == float and arms[name].isna().all() for name in unset)
    pairs = table.analyze(reference="human", boot=99, perm=99).to_frame("pairs", "pandas")
    assert [*arms.columns].index("rmst_ci_high") == [*arms.columns].index("rmst_ci_low") + 1 and len(pairs) == 3


def test_every_result_that_a_picture_helps_has_one(result: api.Analysis, beside: Path) -> None:
    cell = result.cell("pi0", "cup").plot()
    assert cell.get_title() == "cup" and cell.get_xlim() == (0.0, result.cell("pi0", "cup").curve.t[-1])
    drawn = result.plot_pairs()
    assert [text.get_text() for text in drawn.get_yticklabels()] == [f"{pair.a} / {pair.b}" for pair in result.pairs]
    assert drawn.get_xscale() == "log" and result.plot_pairs(ax=drawn) is drawn
    episodes = api.load("episodes.csv").analyze(boot=99, perm=99)
    assert isinstance(episodes, api.EpisodesAnalysis)
    assert [text.get_text() for text in episodes.plot().get_yticklabels()] == ["act", "pi0"]
    assert episodes.plot().get_xlabel() == "score, %"
    assert episodes.plot_pairs().get_xlabel() == "difference in score, percentage points"


def test_power_has_a_row_for_each_size_and_says_what_was_not_asked(beside: Path) -> None:
    table = api.load("operations.csv")
    assert isinstance(table, api.OperationsTable)
    power = table.power([4], runs=4, perm=59)
    assert {(row.a, row.b) for row in power.rows} == {("act", "human"), ("act", "pi0"), ("human", "pi0")}
    assert len(power.to_frame()) == len(power.rows)
    with pytest.raises(InputError, match="act and pi1 by log_rmst_ratio was not asked"):
        power.episodes_needed("act", "pi1")
    assert "<table>" in power._repr_html_()
    drawn = power.plot()
    assert len(drawn.get_legend().get_texts()) == 3 and drawn.get_xlabel() == "episodes per arm and object"
    with pytest.raises(InputError, match="there is no measure 'speed'"):
        power.plot("speed")


@pytest.mark.thorough
def test_the_power_of_a_pilot_says_which_labctl_computed_it_as_its_json_does(
    beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = api.load("operations.csv")
    assert isinstance(table, api.OperationsTable)
    assert table.power([4], runs=4, perm=59).analysed_by == analysed_by()
    assert call(["power", "--pilot", "operations.csv", "--n", "4", "--runs", "20", "--perm", "59", "--json"]) == 0
    assert judged(capsys.readouterr().out)["analysed_by"] == analysed_by()
