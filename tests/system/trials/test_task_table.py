"""`labctl demo --tasks` in small: two tasks and a perturbed condition, run, scored by what devices tell, in a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.runs.task_table_campaign import open_table, run_to_table

import labctl.cli.demo
from labctl.cli.demo import demo
from labctl.core.events import Kind
from labctl.store.campaign import Campaign


def test_stages_and_success_reach_the_table_as_devices_told_them(tmp_path):
    opened = open_table(tmp_path, blocks=1, conditions=["as trained", "other words", "box"])
    rows = run_to_table(opened.folder, tmp_path / "episodes.csv")
    assert len(rows) == 6 and {row["task"] for row in rows} == {"put it over", "put it away"}
    with Campaign.open(opened.folder) as campaign:
        told = [
            (event.episode, event.body["reached"]) for event in campaign.events() if event.kind == Kind.STAGE_REACHED
        ]
    for row in rows:
        if row["condition"] == "box":
            stages = [number for episode, number in told if episode == row["episode"]]
            assert (
                stages == list(range(1, int(row["stage"]) + 1))
                and float(row["score"]) == [0, 0.25, 0.75, 1][len(stages)]
            )
            times = [float(row[f"stage_{number}_s"]) for number in stages]
            assert times == sorted(times) and row["success"] == str(int(len(stages) == 3))
        else:
            assert row["success"] in "01" and row["set"] == "as trained 1" and not row["stage"]
    assert {row["end_reason"] for row in rows if row["success"] == "1" and row["task"] == "put it over"} == {"all_done"}


@pytest.mark.thorough
def test_the_demo_of_tasks_goes_from_an_empty_folder_to_a_verified_record_and_its_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With three blocks of each condition instead of its eight, and otherwise as typed. That whole campaigns name the
    weak axis is tests/system/reporting/test_four_axes.py.
    """
    fresh = labctl.cli.demo._fresh

    def smaller(folder: Path) -> Path:
        lab = fresh(folder)
        protocol = lab / "protocols/demo_tasks.toml"
        text = protocol.read_text("utf-8")
        assert text.count("blocks_per_condition = 8 ") == 1
        protocol.write_text(text.replace("blocks_per_condition = 8 ", "blocks_per_condition = 3 "), "utf-8")
        return lab

    monkeypatch.setattr(labctl.cli.demo, "_fresh", smaller)
    said = CliRunner().invoke(demo, ["--tasks", "--dir", str(tmp_path / "lab")])
    assert said.exit_code == 0, said.output
    assert "verified: chain, commitment, traces and videos hold" in said.output
    assert (tmp_path / "lab/episodes.csv").is_file() and (tmp_path / "lab/report/report.html").is_file()
    for told in ("S-LANG", "VSB-NOBJ", "stage 3", "policy-a", "policy-b", "labctl analyze"):
        assert told in said.output
