"""The file drawer: a report lists what else this lab opened of the same protocol or with the same policies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy

from labctl.cli import call
from labctl.reporting.file_drawer import drawer
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, unblind_campaign
from labctl.store.opened_list import OPENED

ARMS = [HUMAN, policy("policy-a")]


def closed(folder: Path) -> None:
    close_campaign(folder, who="tester", reason="a test")


def unblinded(folder: Path) -> None:
    closed(folder)
    freeze_campaign(folder, who="tester", unreviewed=True)
    unblind_campaign(folder, who="tester")


def listed(lab: Path, folder: Path) -> dict[str, str]:
    """name -> what became of it, commitments left out."""
    with Campaign.open(folder) as campaign:
        return {name.partition(" (")[0]: line for name, line in drawer(lab, campaign.record()).items()}


def test_campaigns_that_were_given_up_or_thrown_away_are_listed(tmp_path: Path) -> None:
    this, *others = [make_campaign(tmp_path, ARMS, entropy=bytes([n]) * 32).folder for n in range(4)]
    kin = make_campaign(tmp_path, ARMS, name="another-question").folder
    sealed = make_campaign(tmp_path, [HUMAN, policy("policy-z")], name="secret").folder
    shutil.rmtree(others[0])
    closed(others[1])
    for folder in (this, kin):
        unblinded(folder)
    found = listed(tmp_path, this)
    names = [folder.name for folder in (this, *others)]
    assert list(found) == [*names, "another-question", "1 of other protocols:"]
    assert found[this.name] == "this report's"
    assert "its folder is gone" in found[others[0].name]
    assert "closed, 0 of 2 trials scored" in found[others[1].name]
    assert "open, 0 of 2" in found[others[2].name]
    assert "unblinded" in found["another-question"] and "with human, policy-a" in found["another-question"]
    assert "policy-z" not in str(found) and sealed.is_dir()


def test_whoever_opens_a_protocol_once_more_is_told_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed twice by mistake, it was a second sealed schedule without a word."""
    first = make_campaign(tmp_path, ARMS).folder
    frozen = [str(tmp_path / "protocols" / "p.toml"), "--cell", str(first / "cell.toml"), "--lab", str(tmp_path)]
    make_campaign(tmp_path, ARMS, name="secret")
    (tmp_path / "protocols" / "p.toml").write_text(first.joinpath("seal", "protocol.toml").read_text())
    capsys.readouterr()
    assert call(["open", *frozen, "--offline"]) == 0
    told = capsys.readouterr().out
    assert f"opened {first.name}-2" in told and "secret" not in told
    assert f"protocol: {first.name} (opened " in told and "open, 0 of 2 trials scored)" in told
    assert call(["open", *frozen, "--offline", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["campaign"] == f"{first.name}-3"
    assert f"{first.name} (" in told.err and f"{first.name}-2 (" in told.err and "policy-a" not in told.err


def test_a_name_that_is_taken_again_does_not_hide_the_first(tmp_path: Path) -> None:
    first = make_campaign(tmp_path, ARMS, entropy=b"1" * 32).folder
    shutil.rmtree(first)
    second = make_campaign(tmp_path, ARMS, entropy=b"2" * 32).folder
    unblinded(second)
    with Campaign.open(second) as campaign:
        one, other = drawer(tmp_path, campaign.record()).values()
    assert first == second and "its folder holds another campaign now" in one and other == "this report's"


def test_a_list_that_was_cut_is_said_in_the_report(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, ARMS).folder
    unblinded(folder)
    (tmp_path / OPENED).write_text("cut\n")
    (said,) = listed(tmp_path, folder).values()
    assert "list of opened campaigns is broken" in said


def test_a_line_that_was_changed_is_named_by_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report reads it, so `verify` looks at it; the campaign's own record holds all the same."""
    kept, gone = (make_campaign(tmp_path, ARMS, entropy=bytes([n]) * 32).folder for n in range(2))
    assert call(["verify", str(kept)]) == 0
    text = (tmp_path / OPENED).read_text()
    (tmp_path / OPENED).write_text(text.replace(f'"{gone.name}"', '"other"'))
    assert call(["verify", str(kept)]) == 1
    assert "broken list of opened campaigns" in capsys.readouterr().out
    assert call(["status", str(kept)]) == 0


def test_what_a_list_cannot_tell_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A campaign of before there was a list, and one whose line was taken out with the chain made to fit."""
    folder = make_campaign(tmp_path, ARMS).folder
    (tmp_path / OPENED).unlink()
    assert call(["verify", str(folder)]) == 0 and "has no list of what it opened" in capsys.readouterr().out
    make_campaign(tmp_path, ARMS, name="another")
    assert call(["verify", str(folder)]) == 0 and "of this lab does not have it" in capsys.readouterr().out
    shutil.move(folder, tmp_path / "copy")
    assert call(["verify", str(tmp_path / "copy")]) == 0 and "opened" not in capsys.readouterr().out
