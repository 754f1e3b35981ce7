"""A report leaves out a recording that is lost, names it, and leaves out nothing else for it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.runs.campaigns import events_of, make_campaign, policy, unblind
from support.runs.recordings import copied

from labctl.cli import call
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign


def recorded(lab: Path) -> Path:
    folder = make_campaign(lab, [policy("policy-a"), policy("policy-b")], cameras=True, budget=3.0, arming=1.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


@pytest.fixture
def lab(tmp_path: Path, recordings) -> Path:
    """A copy of a recorded campaign's lab, to be damaged."""
    return copied(recordings.of(recorded).parents[1], tmp_path / "lab")


def test_a_lost_recording_is_left_out_and_named_and_its_outcome_counts(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    lost, kept = (event.episode for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED)
    shutil.rmtree(folder / "video" / str(lost))
    with closing(sqlite3.connect(folder / "traces.db")) as raw, raw:
        raw.execute("DELETE FROM chunk WHERE episode = ?", (lost,))
    out = tmp_path / "report"
    asked = ["report", folder.name, "--out", str(out), "--boot", "9", "--perm", "9", "--lab", str(lab)]
    assert call(asked) == 65
    assert f"--lost {lost}" in capsys.readouterr().err, "the remedy is named"
    assert call([*asked, "--lost", str(kept)]) in (1, 2) and not out.exists()
    assert call([*asked, "--lost", str(lost)]) == 0
    told = json.loads((out / "report.json").read_text())["lab"]
    (line,) = [line for line in told["deviations"] if "lost" in line]
    assert line.startswith(f"episode {lost}: its recording is lost and left out: missing")
    assert str(lost) in (out / "report.html").read_text()
    videos = {episode["episode"]: len(episode["video"]) for episode in told["episodes"]}
    assert videos == {lost: 0, kept: 2}
    assert {clip["episode"] for clip in told["clips"]} <= {kept}
    assert [entry["episodes"] for entry in told["answer_times"]] == [1]
    assert told["flow"]["scored"] == 2


def test_a_recording_that_holds_cannot_be_called_lost(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    (first, _) = (event.episode for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED)
    for name in (str(first), "e-nobody"):
        asked = ["report", folder.name, "--out", str(tmp_path / "out"), "--lab", str(lab), "--lost", name]
        assert call(asked) == 2 and f"--lost {name}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
