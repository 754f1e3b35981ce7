"""The notebook and the ten recipes of docs/api.md in real Jupyter kernels, and data frames of real polars and of the
newest pandas, where labctl is installed from its wheel.

Set NOTEBOOK_PYTHON to an interpreter that has labctl[report,lab,parquet], ipykernel, nbclient, pandas and polars:
`make peer-notebook`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.api_files import NOTEBOOK, RECIPES, lay_campaign, lay_tables
from support.runs.campaigns import unblind

pytestmark = [pytest.mark.interop, pytest.mark.limit(600)]
KERNEL = Path(__file__).with_name("notebook_kernel.py")
FRAMES = [
    "import pandas, polars\nfrom labctl import api\nFEW = {'reference': 'human', 'boot': 99, 'perm': 99}\n"
    "wanted = api.load('operations.csv').analyze(**FEW)",
    "given = [pandas.read_csv('operations.csv'), polars.read_csv('operations.csv')]\n"
    "assert all(api.from_frame(one).analyze(**FEW).to_json() == wanted.to_json() for one in given)",
    "class Stream:\n    def __init__(self, of):\n        self.__arrow_c_stream__ = of.__arrow_c_stream__\n"
    "assert all(api.from_frame(Stream(one)).analyze(**FEW).to_json() == wanted.to_json() for one in given)",
    "shapes = {name: {wanted.to_frame(what, name).shape for what in ('arms', 'cells', 'pairs')}\n"
    "          for name in ('pandas', 'polars')}\n"
    "assert shapes['pandas'] == shapes['polars']\nwanted.to_frame('arms', 'polars')",
    "assert all(api.from_frame(api.load('operations.csv').to_frame(name)).analyze(**FEW).to_json()\n"
    "           == wanted.to_json() for name in ('pandas', 'polars'))",
]


def executed(folder: Path, notebooks: list[list[str]]) -> list[list[list[list[Any]]]]:
    """Of each notebook what each of its cells gave, as `notebook_kernel` prints it."""
    python = os.environ.get("NOTEBOOK_PYTHON")
    if not python:
        pytest.skip("NOTEBOOK_PYTHON names no interpreter: make peer-notebook")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPL"))}
    lay_tables(folder)
    unblind(lay_campaign(folder))
    done = subprocess.run(
        [python, str(KERNEL)], input=json.dumps(notebooks), cwd=folder, env=plain, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_notebook_shows_tables_numbers_and_a_picture_in_a_kernel(tmp_path: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    (given,) = executed(tmp_path, [["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]])
    kinds = [[kind for kind, _ in cell] for cell in given]
    assert kinds == [["execute_result"]] * 4 + [["display_data"]] + [["execute_result"]], "nothing else is printed"
    table, result, arms, pair, picture, last = (cell[0][1] for cell in given)
    assert all("<table" in shown["text/html"] for shown in (table, result, arms))
    assert "pi0" in pair["text/plain"] and "pi0" in last["text/plain"]
    assert picture["image/png"]


def test_each_recipe_runs_in_a_kernel(tmp_path: Path) -> None:
    given = executed(tmp_path, [[text] for text in RECIPES.values()])
    assert len(given) == 10 and (tmp_path / "towel.png").stat().st_size > 0
    said = [kind for (cell,) in given for kind, _ in cell]
    assert set(said) <= {"stream", "display_data"}, "a kernel draws what is plotted beside what is printed"


def test_frames_of_pandas_and_polars_go_in_and_out_with_the_same_numbers(tmp_path: Path) -> None:
    (given,) = executed(tmp_path, [FRAMES])
    ((_, shown),) = given[3]
    assert "polars" not in shown["text/plain"] and "human" in shown["text/plain"] and "<table" in shown["text/html"]
