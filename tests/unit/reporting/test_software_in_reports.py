"""Which labctl analysed stands on the page and in the JSON of every report, of a bare table's too."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from labctl import api
from labctl.cli import call
from labctl.reporting.software_used import changes, software_facts
from labctl.software import analysed_by, collect_pins, in_words
from labctl.store.verifying.verified import in_passing

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab" / "campaigns" / "old"
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


@pytest.mark.parametrize("table", [OPERATIONS, EPISODES], ids=["operations", "episodes"])
def test_every_json_and_every_result_in_python_says_which_labctl_computed_it(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, tau = tmp_path / "table.csv", 9.0 if table == OPERATIONS else None
    file.write_text(table)
    few = [*([] if tau is None else ["--tau", "9"]), "--boot", "49", "--perm", "49", "--json"]
    told = []
    for words in (["analyze", str(file)], ["report", str(file), "--out", str(tmp_path / "report")]):
        assert call([*words, *few]) == 0
        told.append(json.loads(capsys.readouterr().out)["analysed_by"])
    told.append(api.load(file).analyze(tau=tau, boot=49, perm=49).analysed_by)
    assert {*told} == {analysed_by()} and analysed_by().startswith("labctl ")


def test_one_pin_that_differs_within_a_campaign_is_a_deviation_and_each_stretch_is_named(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    with in_passing(tmp_path / "old") as campaign:
        record = campaign.record()
    assert changes(record) == [] and "software_of_episodes" not in software_facts(record)
    *before, last = record.episodes.values()
    assert before and last.start is not None
    pins = last.start["pins"]
    newer = {**pins, "packages": {**pins["packages"], "numpy": "9.9"}}
    changed = replace(last, start={**last.start, "pins": newer})
    record = replace(record, episodes={**record.episodes, last.id: changed})
    old = pins["packages"]["numpy"]
    assert changes(record) == [f"the software changed before episode {last.id}: numpy {old} to 9.9"]
    assert f"{last.id} to {last.id} (1)" in software_facts(record)["software_of_episodes"]
