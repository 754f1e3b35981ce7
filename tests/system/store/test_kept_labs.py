"""A lab that an earlier commit left opens, verifies, exports its table, reports, is kept, moved and published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.runs.published import FEW

from labctl.cli import call
from labctl.publishing.check import check_published

KEPT = Path(__file__).resolve().parents[2] / "kept"
LABS = sorted(path.name for path in KEPT.iterdir() if path.is_dir())
SMALL = ["--boot", str(FEW), "--perm", str(FEW)]


@pytest.fixture(params=LABS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the lab, with the table that was exported then beside it."""
    shutil.copytree(KEPT / request.param, tmp_path / "kept")
    for path in (tmp_path / "kept" / "lab").rglob("*"):  # git keeps no such modes
        path.chmod(path.stat().st_mode & 0o700)
    return tmp_path / "kept"


def test_it_verifies_and_its_table_is_what_it_was(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = ["--lab", str(kept / "lab")]
    assert call(["verify", "kept", "--json", *lab]) == 0
    (found,) = json.loads(capsys.readouterr().out)["campaigns"]
    assert found["ok"] and found["counts"]["recordings"] == 4
    assert call(["export", "kept", "--to", "table", "--out", str(kept / "again.csv"), *lab]) == 0
    then, now = ((kept / name).read_text().splitlines() for name in ("operations.csv", "again.csv"))
    wanted = then[0].split(",")
    at = [now[0].split(",").index(name) for name in wanted]
    assert [[line.split(",")[i] for i in at] for line in now] == [line.split(",") for line in then]


@pytest.mark.thorough
def test_it_reports_and_is_published_and_moved(kept: Path, tmp_path: Path) -> None:
    lab = ["--lab", str(kept / "lab")]
    assert call(["report", "kept", "--out", str(tmp_path / "r"), *SMALL, *lab]) == 0
    assert call(["publish", "kept", "--licence", "CC0-1.0", "--out", str(tmp_path / "p"), *SMALL, *lab]) == 0
    assert check_published(tmp_path / "p").problems == []
    assert call(["lab", "move", str(tmp_path / "new"), *lab]) == 0
    assert call(["verify", "kept", "--lab", str(tmp_path / "new")]) == 0
