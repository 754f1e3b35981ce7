"""A demo where one was before: what a demo made is replaced, and what somebody did there afterwards is not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from labctl.cli.demo import OPENED, _fresh
from labctl.errors import InputError, StateError
from labctl.store.locks import campaign_lock

PROTOCOLS = Path(__file__).resolve().parents[3] / "protocols"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The lab of a demo that was run to its end."""
    made = _fresh(tmp_path / "lab")
    for name in OPENED:
        (made / "campaigns" / name).mkdir()
    (made / "campaigns/.opening-demo-tasks").mkdir()  # of one that was killed
    (made / "report").mkdir()
    (made / "episodes.csv").write_text("", "utf-8")
    return made


def test_an_earlier_demo_is_replaced(lab: Path) -> None:
    assert _fresh(lab) == lab
    assert not list((lab / "campaigns").iterdir()) and not (lab / "report").exists()


@pytest.mark.parametrize(
    "own", ["campaigns/first/journal.db", "campaigns/demo-tasks-2/journal.db", "protocols/mine.toml", "cells/arm.toml"]
)
def test_what_somebody_did_there_is_named_and_kept(lab: Path, own: str) -> None:
    (lab / own).parent.mkdir(exist_ok=True)
    (lab / own).write_text("three evenings", "utf-8")
    named = "/".join(own.split("/")[:2])
    with pytest.raises(InputError, match=f"holds what no demo made: {named}; choose another with --dir DIR"):
        _fresh(lab)
    assert (lab / own).read_text("utf-8") == "three evenings" and (lab / "report").is_dir()


def test_a_campaign_that_runs_is_not_taken_away_under_its_run(lab: Path) -> None:
    with campaign_lock(lab / "campaigns/demo-tasks", "run demo-tasks"), pytest.raises(StateError, match="labctl stop"):
        _fresh(lab)
    assert (lab / "campaigns/demo-bin-to-bin").is_dir() and (lab / "report").is_dir()


def test_the_names_are_those_of_the_protocols_that_it_opens() -> None:
    files = [PROTOCOLS / name for name in ("demo.toml", "demo_tasks.toml")]
    assert tuple(tomllib.loads(path.read_text("utf-8"))["protocol"]["name"] for path in files) == OPENED
