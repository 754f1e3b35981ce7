"""docs/api.md and its notebook do what they say."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import matplotlib
import pytest
from support.api_files import NOTEBOOK, RECIPES, ROOT

from labctl import api

CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]


def test_there_are_ten_recipes() -> None:
    assert list(RECIPES) == [str(number) for number in range(1, 11)]


@pytest.fixture(autouse=True)
def no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matplotlib.rcParams, "backend", "agg", raising=False)
    matplotlib.use("agg")


@pytest.mark.parametrize("number", RECIPES)
def test_each_recipe_runs_by_itself(
    number: str, beside: Path, unblinded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(RECIPES[number], f"recipe {number}", "exec"), {})
    said = capsys.readouterr().out
    assert said or (beside / "towel.png").stat().st_size > 0


def test_somebody_elses_table_becomes_one_of_ours_as_the_page_says(
    beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, a separator, a decimal comma and words of their own; what comes out is checked by hand: both first items
    of alpha came within 13 s, and of three operations of beta one was lost.
    """
    text = (ROOT / "docs/api.md").read_text("utf-8").partition("## Somebody else's table")[2]
    (table,), (program,) = (re.findall(rf"^```{kind}\n(.*?)```", text, re.M | re.S) for kind in ("text", "python"))
    (beside / "theirs.csv").write_text(table, "utf-8")
    exec(compile(program, "somebody else's table", "exec"), names := dict[str, object]())
    result = names["result"]
    assert isinstance(result, api.Analysis)
    assert "alpha" in capsys.readouterr().out and (beside / "spoon.png").stat().st_size > 0
    assert result.cell("alpha", "spoon").curve.at(13.0) == pytest.approx(2 / 3)
    assert result.cell("beta", "spoon").curve.at(30.0) == pytest.approx(2 / 3)


def test_a_recipe_takes_five_lines_at_most() -> None:
    lengths = {number: len([line for line in text.splitlines() if line]) for number, text in RECIPES.items()}
    assert {number: length for number, length in lengths.items() if length > 5} == {}


def test_the_notebook_runs_and_each_cell_that_ends_in_a_result_shows_it_as_html(beside: Path) -> None:
    names: dict[str, object] = {}
    shown = []
    for cell in CELLS:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "outputs are not kept: they would go stale"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert len(shown) == 5
    assert "<table>" in shown[1]
    assert "human" in shown[1]


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    assert [name for name in api.__all__ if not getattr(api, name).__doc__] == []
    assert sorted(api.__all__) == api.__all__
