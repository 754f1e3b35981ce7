"""What TAB gives, asked as a shell asks: campaigns, formats, episodes, and arms after unblinding alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from support.runs.campaigns import unblind

from labctl.cli import group
from labctl.cli.emulate import NAMES
from labctl.cli.export import FORMATS

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab"


def completed(*typed: str) -> list[str]:
    """What follows; the last word is being typed."""
    return [
        one.value
        for one in ShellComplete(group, {}, "labctl", "_LABCTL_COMPLETE").get_completions([*typed[:-1]], typed[-1])
    ]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "lab")
    for path in (tmp_path / "lab").rglob("*"):  # git keeps no such modes
        path.chmod(path.stat().st_mode & 0o700)
    return tmp_path / "lab"


@pytest.mark.parametrize("verb", ["status", "run", "console", "review", "verify", "report", "episodes", "close"])
def test_a_campaign_of_the_lab(verb: str, lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCTL_LAB", str(lab))
    assert completed(verb, "o") == ["old"] and completed(verb, "x") == []


def test_the_lab_that_is_typed_counts(lab: Path) -> None:
    assert completed("export", "--lab", str(lab), "") == ["old"]


def test_formats_and_robots() -> None:
    assert completed("export", "first", "--to", "") == [*FORMATS]
    assert completed("export", "first", "--to", "lerobot") == ["lerobot-v3", "lerobot-v2.1"]
    assert completed("emulate", "ur1") == [name for name in NAMES if name.startswith("ur1")]


def test_arms_after_unblinding_and_none_before(lab: Path) -> None:
    typed = ("export", "old", "--lab", str(lab), "--for-arm", "")
    assert completed(*typed) == []
    unblind(lab / "campaigns" / "old")
    assert completed(*typed) == ["human", "policy-a"]


def test_episodes_which_name_no_arm(lab: Path) -> None:
    assert completed("show", "--lab", str(lab), "e-5") == ["e-5c32db9dea"]


def test_where_there_is_no_lab_nothing_is_completed_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    assert completed("status", "") == [] and completed("export", "x", "--for-arm", "") == []
