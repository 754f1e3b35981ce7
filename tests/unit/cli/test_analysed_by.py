"""Every document of computed numbers says which labctl computed them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from labctl.cli import call
from labctl.cli.contract.documents import DOCUMENTS, schema_of_document
from labctl.software import analysed_by

ROOT = Path(__file__).resolve().parents[3]
COUNTS = "arm,axis,successes,trials\na,x,9,10\na,y,8,10\nb,x,4,10\nb,y,5,10\n"
OPERATIONS = "episode,arm,object,kind,time_s\n" + "".join(
    f"{arm}{i},{arm},cup,success,{i + n}\n" for n, arm in enumerate("ab", 1) for i in range(4)
)
ASKED = {
    "independent": ("compare", "17/20", "14/20"),
    "paired": ("compare", "17/20", "14/20", "--paired", "5,2"),
    "strata": ("compare", "9/10,8/10", "7/10,4/10"),
    "counts": ("compare", "--counts", "counts.csv", "--between", "arm", "--within", "axis"),
    "experiment": ("experiment", "operations.csv", "--tau", "9", "--sizes", "2", "--outer", "3", "--inner", "9"),
    "null": ("experiment", "operations.csv", "--tau", "9", "--null", "--outer", "3", "--inner", "9"),
    "one rate": ("power", "--half-width", "0.1"),
    "two rates": ("power", "--rates", "0.9,0.5", "--n", "20"),
    "pairs": ("power", "--discordant", "0.3", "--difference", "0.2", "--n", "40"),
    "plan": ("plan", str(ROOT / "protocols" / "demo.toml")),
}
COMPUTED = {"analysis", "compare", "episodes", "experiment", "keyframe_questions", "look", "plan", "power"} | {
    "qualify",
    "report_made",
    "static",
}


@pytest.mark.parametrize("words", ASKED.values(), ids=ASKED)
def test_what_computes_says_with_json_which_labctl_computed_it(
    words: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "operations.csv").write_text(OPERATIONS)
    monkeypatch.chdir(tmp_path)
    assert call([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["analysed_by"] == analysed_by()


def test_the_schemas_of_what_is_computed_have_a_place_for_it_and_no_others() -> None:
    """`rates` is a bare list, which has none."""
    parts = {name.partition("/")[0]: schema_of_document(name).get("$defs", {}).values() for name in DOCUMENTS}
    told = {name for name, of in parts.items() if any("analysed_by" in part.get("properties", {}) for part in of)}
    assert told == COMPUTED


def test_the_page_of_documents_names_every_one() -> None:
    """docs/json.md, which interface.md does not keep up with."""
    text = (ROOT / "docs" / "json.md").read_text("utf-8")
    listed = text.partition("## Documents\n")[2].partition("\n## ")[0]
    assert re.findall(r"`(\w+/\d+)`", listed) == sorted(DOCUMENTS)
