"""No report is written over a record that does not hold: not of a campaign, and not of one that it is linked to."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind

from labctl.cli import call
from labctl.runtime.campaign_run import run_campaign

SHORT = {"items": 1, "budget": 3.0, "arming": 1.0}


def ended(lab: Path, name: str, other: str, **more: object) -> Path:
    arms = [HUMAN, policy(other, skill="swift")]
    folder = make_campaign(lab, arms, name=name, **SHORT, **more).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


def forget_a_chunk(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "traces.db")) as raw, raw:
        assert raw.execute("DELETE FROM chunk WHERE rowid = (SELECT min(rowid) FROM chunk)").rowcount == 1


def test_a_record_that_does_not_hold_gets_no_report_nor_does_one_linked_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ended(tmp_path, "first", "early")
    ended(tmp_path, "second", "late", extends=first)
    out, words = tmp_path / "report", ["--boot", "9", "--perm", "9", "--lab", str(tmp_path)]
    assert call(["report", "first", "second", "--out", str(out), *words]) == 0
    told = json.loads((out / "report.json").read_text())["lab"]
    assert len(told["unreviewed"]) == 2 and told["provisional"], "what is provisional of the first is of both"
    forget_a_chunk(first)
    capsys.readouterr()
    for asked in (["first"], ["first", "second"]):
        assert call(["report", *asked, "--out", str(tmp_path / "none"), *words]) == 65
        assert "no report on a broken record; see: labctl verify first" in capsys.readouterr().err
        assert not (tmp_path / "none").exists()
