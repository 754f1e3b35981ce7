"""What each release left on a lab's disk opens in this one: journal, traces, videos, protocol, cell and both tables.

`make release` keeps one of each (tests/support/install/release_fixture.py); none is ever recorded again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.install.release_fixture import ASKED
from support.runs.compared import differences

from labctl.cli import call

KEPT = Path(__file__).resolve().parents[2] / "releases"
RELEASES = sorted(path.name for path in KEPT.iterdir() if path.is_dir())


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a release left."""
    shutil.copytree(KEPT / request.param, tmp_path / "kept")
    for path in (tmp_path / "kept" / "lab").rglob("*"):  # git keeps no such modes
        path.chmod(path.stat().st_mode & 0o700)
    return tmp_path / "kept"


def test_its_campaign_holds_and_exports_the_tables_that_it_exported_then(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = ["--lab", str(release / "lab")]
    assert call(["verify", "kept", *lab]) == 0, capsys.readouterr().err
    for form, name in (("table", "operations.csv"), ("episodes", "episodes.csv")):
        again = release / f"again-{name}"
        assert call(["export", "kept", "--to", form, "--out", str(again), *lab]) == 0
        then, now = (release / name).read_text().splitlines(), again.read_text().splitlines()
        columns = then[0].split(",")
        assert set(columns) <= set(now[0].split(",")), "a later table has more columns, and never fewer"
        if now[0] == then[0]:
            assert now == then


@pytest.mark.parametrize("table", ASKED)
def test_its_tables_give_the_numbers_that_they_gave_then(
    release: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["analyze", str(release / f"{table}.csv"), *ASKED[table], "--json"]) == 0
    now, then = json.loads(capsys.readouterr().out), json.loads((release / f"{table}.json").read_text())
    for one in (now, then):
        one["family"] = sorted(one.get("family", []))  # a set: in which order it is printed has no meaning
    found = differences({key: then[key] for key in then if key != "warnings"}, now)
    assert [line for line in found if ": None then, " not in line] == [], "a later result may only say more"


def test_its_protocol_cell_and_fixture_are_still_read(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = release / "lab"
    assert call(["plan", str(lab / "protocols" / "p.toml"), "--json"]) == 0, capsys.readouterr().err
    opened = ["open", str(lab / "protocols" / "again.toml"), "--cell", str(lab / "cells" / "c.toml"), "--lab", str(lab)]
    text = (lab / "protocols" / "p.toml").read_text()
    (lab / "protocols" / "again.toml").write_text(text.replace('name = "kept"', 'name = "again"'))
    assert call([*opened, "--who", "tester"]) == 0, capsys.readouterr().err


def test_every_release_that_is_tagged_was_kept() -> None:
    """`make release` writes it; CHANGELOG.md says which there are."""
    changes = (KEPT.parents[1] / "CHANGELOG.md").read_text()
    tagged = [line.split()[1] for line in changes.splitlines() if line.startswith("## ")]
    assert [version for version in tagged if version not in RELEASES] == []
