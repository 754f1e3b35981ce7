"""Which labctl analysed stands on the page and in the JSON of every report, of a bare table's too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labctl.cli import call
from labctl.software import collect_pins, in_words

OPERATIONS = "episode,arm,object,kind,time_s\n" + "".join(
    f"{arm}{i},{arm},cup,success,{i + n}\n" for n, arm in enumerate("ab", 1) for i in range(3)
)
EPISODES = "block,arm,success\n" + "".join(f"b{i},{arm},{i % 2}\n" for arm in "ab" for i in range(4))


@pytest.mark.parametrize("table", [OPERATIONS, EPISODES], ids=["operations", "episodes"])
def test_a_report_of_a_table_says_which_labctl_computed_it(table: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(table)
    out, asked = tmp_path / "report", ["--tau", "9"] if table == OPERATIONS else []
    assert call(["report", str(tmp_path / "table.csv"), "--out", str(out), *asked, "--boot", "49", "--perm", "49"]) == 0
    version = in_words(collect_pins())
    assert json.loads((out / "report.json").read_text())["analysed_by"] == version
    assert version in (out / "report.html").read_text() and version in (out / "report.md").read_text()
