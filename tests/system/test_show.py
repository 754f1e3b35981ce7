"""`labctl show`: masked while the campaign is blinded, whole after unblinding, accepted by Rerun's own checker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.campaigns import events_of, make_campaign, policy

from labctl.campaign import close_campaign, freeze_campaign, unblind_campaign
from labctl.cli import call
from labctl.events import Kind
from labctl.running import run_campaign
from labctl.viewing import look_at


def words_of(rrd: Path) -> str:
    """What a recording prints of itself, without its file name."""
    binary = Path(__import__("rerun_cli").__file__).with_name("rerun")
    assert subprocess.run([binary, "rrd", "verify", rrd], capture_output=True).returncode == 0
    done = subprocess.run([binary, "rrd", "print", "-vvv", rrd], capture_output=True, text=True, check=True)
    return done.stdout


def test_show_is_masked_until_the_campaign_is_unblinded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arms = [policy("zebra-policy", skill="swift"), policy("okapi-policy", skill="swift")]
    campaign = make_campaign(tmp_path, arms, cameras=True, items=1, budget=15.0, arming=1.0)
    run_campaign(campaign.folder, lambda line: None, manual=True)
    episode = next(event.episode for event in events_of(campaign.folder) if event.kind == Kind.GO) or ""
    masked, whole = tmp_path / "masked.rrd", tmp_path / "whole.rrd"
    assert call(["show", episode, "--lab", str(tmp_path), "--save", str(masked)]) == 0
    assert ", masked:" in capsys.readouterr().out
    seen = look_at(campaign.folder, episode)
    assert seen["masked"] and "policy" not in seen["streams"] and set(seen["videos"]) == {"over_shoulder", "wrist"}
    told = words_of(masked)
    assert "/joints" in told or "joint" in told
    for leak in ("zebra", "okapi", "/policy", "requested"):
        assert leak not in told
    for finish in (close_campaign, freeze_campaign, unblind_campaign):
        finish(campaign.folder, who="tester")
    assert call(["show", episode, "--lab", str(tmp_path), "--save", str(whole)]) == 0
    assert ", masked:" not in capsys.readouterr().out
    told = words_of(whole)
    assert "zebra-policy" in told or "okapi-policy" in told
    assert "requested" in told and "policy" in look_at(campaign.folder, episode)["streams"]


def test_an_unknown_episode_and_a_wrong_ending_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_campaign(tmp_path)
    assert call(["show", "e-nothing", "--lab", str(tmp_path)]) == 2
    assert "no episode 'e-nothing'" in capsys.readouterr().err
    assert call(["show", "e-nothing", "--lab", str(tmp_path), "--save", "x.mp4"]) == 2
    assert ".rrd" in capsys.readouterr().err
