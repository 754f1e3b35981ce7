"""What cannot be taken back is said before anything is tried that may take long or fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy

from labctl.cli import call, lifecycle
from labctl.errors import Exit


def test_a_phase_is_said_before_it_is_dated_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C while an authority of timestamps does not answer: closed, frozen, unblinded it is all the same."""

    def interrupted(folder: Path) -> None:
        raise KeyboardInterrupt

    folder = make_campaign(tmp_path, [HUMAN, policy("zebra")]).folder
    monkeypatch.setattr(lifecycle, "stamp_if_asked", interrupted)
    for verb, said in (
        (["close", "--reason", "enough"], "closed: of "),
        (["freeze", "--unreviewed"], "frozen"),
        (["unblind", "--json"], '"phase": "unblinded"'),
    ):
        assert call([verb[0], str(folder), *verb[1:]]) == Exit.INTERRUPTED
        assert said in capsys.readouterr().out


def test_a_commitment_is_said_before_it_is_dated_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(folder: Path) -> None:
        raise KeyboardInterrupt

    lab = tmp_path / "lab"
    assert call(["new", str(lab)]) == 0
    capsys.readouterr()
    monkeypatch.setattr(lifecycle, "stamp_if_asked", interrupted)
    cell = str(next((lab / "cells").glob("*.toml")))
    given = ["--cell", cell, "--offline", "--lab", str(lab)]
    assert call(["open", str(lab / "protocols/first.toml"), *given]) == Exit.INTERRUPTED
    assert "commitment " in capsys.readouterr().out
