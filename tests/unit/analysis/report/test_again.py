"""The command that a report prints for its statistics gives the numbers of that report, or the report says what not."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest

from labctl.analysis.episodes_table import analyze as of_episodes
from labctl.analysis.episodes_table import reading
from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.operations_table import analyze as of_operations
from labctl.analysis.reading import read_table
from labctl.analysis.report import again
from labctl.analysis.survival.result import AnalysisResult
from labctl.cli import call

TABLE = Path(__file__).parents[1] / "report_table.csv"
PLAIN: dict[str, Any] = {"boot": 49, "perm": 49}
ASKED: dict[str, Any] = {
    **PLAIN,
    "reference": "human",
    "tau": 62.5,
    "seed": 3,
    "alpha": 0.025,
    "family": ("log_rmst_ratio", "uph"),
    "margin": {"rmst_ratio": 1.125, "non_inferior_to": "policy-a"},
    "estimator": "wang_chang",
}


def otherwise(then: object, now: object, where: str = "") -> list[str]:
    """What differs by more than the digits that are printed."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [d for key in {*then, *now} for d in otherwise(then.get(key), now.get(key), f"{where}/{key}")]
    if isinstance(then, list | tuple) and isinstance(now, list | tuple) and len(then) == len(now):
        return [d for i, pair in enumerate(zip(then, now, strict=True)) for d in otherwise(*pair, f"{where}[{i}]")]
    if isinstance(then, float) and isinstance(now, int | float):
        same = math.isclose(then, now, rel_tol=1e-9)
    else:
        same = then == now
    return [] if same else [where]


def typed(said: again.Said, table: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the command of a report prints of a table."""
    command = next(code for _, code in said if code.startswith("labctl analyze"))
    _, *words = [str(table) if word == "TABLE.csv" else word for word in shlex.split(command)]
    assert call([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("asked", [PLAIN, ASKED])
def test_the_command_gives_the_numbers_of_an_operations_table(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    then = of_operations.analyze(read_table(TABLE), **asked)
    said = again.of_operations(then, {}, asked["perm"])
    assert otherwise(then, typed(said, TABLE, capsys)) == ["/analysed_by"]
    assert said[-1][0] == ": the same table and seed give the same numbers."


def test_and_of_an_episodes_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{arm},t,{arm}{i},{i},{(i * 7 + 3 * (arm == 'b its own')) % 10 / 10},{i % 2},{20 + i},60"
        for i in range(8)
        for arm in ("a", "b its own")
    ]
    path = tmp_path / "episodes.csv"
    path.write_text("\n".join(["arm,task,episode,block,score,success,time_s,budget_s", *rows]) + "\n", "utf-8")
    read = reading.read_either(path, extra=False)
    plan = Plan("b its own", 40.0, 49, 49, 2, 0.1)
    then = of_episodes.analyze(read, plan)
    asked = again.Asked(reference=then["reference"], tau=then["tau"], alpha=then["alpha"], seed=then["seed"])
    said = again.of_episodes(asked, {}, plan.boot, plan.perm)
    assert otherwise(then, typed(said, path, capsys)) == ["/analysed_by"]


def test_where_labels_were_exchanged_by_the_schedule_it_says_that_p_may_differ() -> None:
    found = of_operations.analyze(read_table(TABLE), **PLAIN)
    for pair in found["pairs"]:
        pair["relabelled_by"] = "schedule"
    text = "".join(one for part in again.of_operations(found, {"campaign": "first"}, 49) for one in part)
    assert "the same numbers, but for p-values and what rests on them" in text
    assert "same table and seed" not in text and "labctl verify first" in text


def test_of_labels_that_no_table_is_exported_by_the_report_itself_is_made_again() -> None:
    """`labctl export` writes the best of each episode: by the detector alone its numbers would be others."""
    found = of_operations.analyze(read_table(TABLE), **PLAIN)
    by = {"stream": "detector", "text": "the detector's", "episodes": 4, "scored": 4}
    of_best = again.of_operations(found, {"campaign": "first", "labels": by}, 49)
    assert any(code.startswith("labctl analyze TABLE.csv") for _, code in of_best)
    said = again.of_operations(found, {"campaign": "first", "labels": {**by, "asked": "detector"}}, 49)
    commands = [code for _, code in said if code]
    assert commands == [
        "labctl verify first",
        f"labctl report first --labels detector --boot 49 --perm 49 --seed {found['seed']} --out DIR",
    ]


def test_the_factors_of_an_asked_for_further_evening_are_in_it() -> None:
    found: AnalysisResult = of_operations.analyze(read_table(TABLE), **PLAIN)
    none: dict[str, Any] = {"a": "x", "b": "y", "log_rmst_ratio": None, "ci": None, "df": None}
    factor: dict[str, Any] = {"levels": 1, "se": None, "further_ci": None, "unable": "few"}
    found["anew"] = [{**none, "factors": {}}, {**none, "factors": {"operator": factor, "session": factor}}]
    (_, command), _ = again.of_operations(found, {}, 49)
    assert "--random session,operator " in command
