"""A campaign of tasks of four measures is run, unblinded and reported by episodes."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, unblind
from support.runs.task_campaign import PICTURED, open_tasks, striped

from labctl.errors import StateError
from labctl.reporting.campaign_report import report_campaign
from labctl.runtime.campaign_run import run_campaign


def test_a_campaign_of_four_measures_is_reported_by_episodes_and_only_after_unblinding(tmp_path: Path) -> None:
    kept = ["over-base", "over-lang", "stages", "score", "items"]
    folder = open_tasks(tmp_path, conditions=kept, protocol=PICTURED, files={"half.png": striped()}).folder
    run_campaign(folder, lambda line: None, manual=True)
    with pytest.raises(StateError, match="unblind"):
        report_campaign(folder, tmp_path / "early")
    unblind(folder)
    page = report_campaign(folder, tmp_path / "report", boot=20, perm=20)
    told = json.loads((tmp_path / "report/report.json").read_text())
    result, lab = told["result"], told["lab"]
    assert result["schema"] == "labctl.episodes/1" and result["measure"] == "score" and result["tau"] == 16.0
    assert [arm["episodes"] for arm in result["arms"]] == [5, 5] and result["blocks"]["complete"] == 5
    assert [arm["stages"][0]["episodes"] for arm in result["arms"]] == [1, 1], "of the task in stages alone"
    assert {drop["axis"] for drop in result["axes"]} == {"S-LANG", ""}
    assert result["tasks"]["by"] == "task" and len(result["tasks"]["cells"]) == 4 * 2
    measured = {entry["object"]: entry.get("score") for entry in lab["episodes"]}
    assert measured.pop("items") is None and None not in measured.values()
    asked = {one["task"]: one for one in lab["asked"]}
    assert asked["in order"]["steps"][1]["text"] == "both lie there" and asked["many"]["steps"] == []
    assert [step["picture"] for step in asked["neatly"]["steps"]] == ["", "figures/asked-03-02.png", ""]
    assert (tmp_path / "report/figures/asked-03-02.png").read_bytes() == striped()
    html = page.read_text(encoding="utf-8")
    assert base64.b64encode(striped()).decode() in html and "neatly, 0.5: one over, or both crumpled</text>" in html
    assert "![neatly, 0.5: one over, or both crumpled]" in (tmp_path / "report/report.md").read_text("utf-8")
    ids = re.findall(r'<section id="([^"]+)"', html)
    parts = {"flow", "arms", "pairs", "stages", "tasks", "axes", "asked", "provenance"}
    assert len(ids) == len({*ids}) and parts <= {*ids}
    assert "SIMULATED" in html and lab["commitment"] in html and "zebra" in html


@pytest.mark.thorough
def test_a_person_alone_at_tasks_that_count_no_items_is_described_and_ranked_against_nobody(tmp_path: Path) -> None:
    folder = open_tasks(tmp_path, [HUMAN], conditions=["over-base", "stages", "score"]).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    report_campaign(folder, tmp_path / "report", boot=20, perm=20)
    told = json.loads((tmp_path / "report/report.json").read_text())
    (person,) = told["result"]["arms"]
    assert person["arm"] == "human" and person["episodes"] == 3 and told["result"]["pairs"] == []
    assert {one["measure"] for one in told["lab"]["asked"]} >= {"success", "stages", "score"}
    text = (tmp_path / "report/report.md").read_text("utf-8")
    assert "No pair of arms was compared." in text and "Rank" not in text.split("## From plan to score")[0]
