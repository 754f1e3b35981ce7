"""A person of another time beside a joint campaign: a cell freezes the rows when it joins, and is printed its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.joint.joint_labs import answering, make_labs
from support.joint.joint_recordings import cell_folders, recorded_cells
from support.runs.campaigns import events_of
from support.runs.recordings import Recordings

from labctl.cli import call
from labctl.reporting import from_traces
from labctl.reporting.cells.report import report_cells

REFERENCE = """
[human.reference]
table = "then.csv"
arm = "human"
rig = "the old bench"
dates = "May 2025"
hrt = true
"""
ROWS = "arm,object,episode,op_index,kind,time_s,budget_s,items_staged\nhuman,towels,t-1,1,success,2.5,4.0,1\n"


def test_a_cell_that_joins_freezes_the_person_that_its_protocol_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was refused: "a historical reference is looked up by `labctl open`", after the schedule had been sealed."""
    labs = make_labs(tmp_path, further={"two.toml": REFERENCE, "then.csv": ROWS})
    lab = labs.cells["a"]
    files = (labs.invitation("a"), lab / "protocols/two.toml", "--cell", lab / "cells/cell.toml", "--lab", lab)
    with answering(labs):
        assert call(["joint", "join", *map(str, files)]) == 0, capsys.readouterr().err
    assert "historical reference: table then.csv, arm human; the old bench; May 2025; episodes: 1" in (
        capsys.readouterr().out
    )
    assert events_of(lab / "campaigns/two-a")[0].body["historical"]["episodes"] == 1


def cells(lab: Path) -> Path:
    return recorded_cells(lab, cameras=False)


def test_the_joint_report_prints_the_person_for_each_cell_beside_its_own_arms(
    recordings: Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then(folder: Path, *_: Any, **__: Any) -> dict[str, Any]:
        rate = {"two-a": 0.5, "two-b": 0.25}[folder.name]
        return {
            "tau": 4.0,
            "shorter": None,
            "source": "table then.csv, arm human",
            "rig": "the old bench",
            "dates": "May 2025",
            "episodes": 1,
            "sha256": "5c" * 32,
            "cells": [{"object": "towels", "episodes": 1, "moved": 1, "rmst": 2.5, "rmst_ci": None}],
            "arms": [{"arm": "policy-a", "objects": ["towels"], "hrt": rate, "hrt_ci": None}],
        }

    monkeypatch.setattr(from_traces, "printed", then)
    page = report_cells(cell_folders(recordings.of(cells)), tmp_path / "out", boot=9, perm=9)
    lab = json.loads(page.with_name("report.json").read_text("utf-8"))["lab"]
    assert {cell: one["arms"][0]["hrt"] for cell, one in lab["historical_by_cell"].items()} == {"a": 0.5, "b": 0.25}
    assert lab["provenance"]["b: historical reference"] == f"table then.csv, arm human; sha256 {'5c' * 32}"
    text = page.with_name("report.md").read_text("utf-8")
    section = text.split("## A person of another time (historical)")[1].split("\n## ")[0]
    for cell, percent in (("a", "50.0"), ("b", "25.0")):
        assert f"HISTORICAL: {cell}: table then.csv, arm human; the old bench; May 2025; episodes: 1" in section
        assert percent in section.split(f"{cell}: HRT against the historical person")[1].split("HRT against")[0]
