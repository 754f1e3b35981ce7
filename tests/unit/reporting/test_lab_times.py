"""What trials take in this lab: from its own campaigns, real ones unless named, and of whole blocks alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.recordings import copied

from labctl import cli
from labctl.errors import InputError, StateError
from labctl.reporting.times.hours import hours
from labctl.reporting.times.lab_times import lab_times
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab with a campaign in simulated time, another one that was not run, and a protocol."""
    lab = tmp_path_factory.mktemp("lab")
    arms = [HUMAN, policy("zebra", skill="swift")]
    folder = make_campaign(lab, arms, items=2, budget=40.0, name="first").folder
    run_campaign(folder, lambda line: None, manual=True)
    make_campaign(lab, arms, items=2, budget=40.0, name="second")
    (lab / "lab.toml").touch()
    return lab


def test_named_campaigns_give_their_own_times_and_are_named(lab: Path):
    found = lab_times(lab, ["first", "second"])
    with Campaign.open(lab / "campaigns" / "first") as campaign:
        (block,) = [line for line in hours(campaign.record())["blocks"] if line["of"] == "1"]
    assert found is not None and (found.campaigns, found.trials) == (("first",), 2)
    assert found.running_s == pytest.approx(block["by"]["running"] / 2)
    assert "measured over 2 trials of first: " in found.source


def test_a_simulated_pace_is_taken_only_when_it_is_named(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert lab_times(lab) is None
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    monkeypatch.chdir(tmp_path)
    assert lab_times(None) is None, "no lab, no times"
    other = tmp_path / "other"
    (other / "campaigns" / "loop").mkdir(parents=True)
    (other / "lab.toml").touch()
    (other / "campaigns" / "loop" / "journal.db").symlink_to("journal.db")
    assert lab_times(other) is None, "a folder that cannot be looked into refuses no plan"


def test_a_lab_that_is_named_and_is_none_is_no_guess_without_a_word(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert cli.call(["plan", str(lab / "protocols/p.toml"), "--lab", str(tmp_path / "slip")]) == 2
    assert "slip, which holds no lab.toml" in capsys.readouterr().err
    monkeypatch.setenv("LABCTL_LAB", str(tmp_path / "slip"))
    assert cli.call(["power", "--half-width", "0.05", "--budget-s", "30"]) == 2
    assert "$LABCTL_LAB is " in capsys.readouterr().err


def test_what_has_no_whole_block_and_what_is_not_there_are_refused(lab: Path):
    with pytest.raises(StateError, match="no whole block of second is scored yet"):
        lab_times(lab, ["second"])
    with pytest.raises(InputError, match="third"):
        lab_times(lab, ["third"])


def test_plan_says_what_the_disk_has_to_hold_by_what_trials_came_to(lab: Path, capsys: pytest.CaptureFixture[str]):
    plan = ["plan", str(lab / "protocols/p.toml"), "--lab", str(lab)]
    assert "Disk:" not in printed(capsys, *plan)
    held = sum(path.stat().st_size for path in (lab / "campaigns/first").rglob("*") if path.is_file())
    assert "Disk:         about " in printed(capsys, *plan, "--times-of", "first")
    found = json.loads(printed(capsys, *plan, "--times-of", "first", "--json"))
    assert found["disk"]["needed"] == pytest.approx(held / 2 * found["trials"], rel=0.05), "readers leave some bytes"
    assert found["disk"]["free"] > 0


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.call(list(words)) == 0
    return capsys.readouterr().out


def test_plan_and_power_say_hours_by_them(lab: Path, capsys: pytest.CaptureFixture[str]):
    times = lab_times(lab, ["first"])
    assert times is not None
    common = ["--times-of", "first", "--lab", str(lab)]
    told = printed(capsys, "plan", str(lab / "protocols/p.toml"), *common)
    assert f"Times:        {times.source}" in told and "robot days of 8 h" in told
    question = ["power", "--discordant", "0.5", "--difference", "0.3", *common, "--json"]
    found = json.loads(printed(capsys, *question))
    trial_s = times.staging_s + times.running_s + times.scoring_s
    working = 3 * 3600 - 1200
    assert found["cost"]["times"] == times.source and found["cost"]["trials"] == 2 * found["pairs"]
    assert found["cost"]["evenings"] == -(-found["cost"]["trials"] * trial_s * (1 + 600 / 3600) // working)
    seen = json.loads(printed(capsys, *question, "--evenings", "1"))
    assert seen["by_pairs"][0]["pairs"] == int(working / (trial_s * (1 + 600 / 3600))) // 2


def test_a_record_that_does_not_hold_is_not_planned_by(lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    copied(lab, tmp_path / "copy")
    (tmp_path / "copy/campaigns/first/seal/schedule.json").write_text("{}", "utf-8")
    heads = tmp_path / "copy/campaigns/first/heads.log"
    heads.write_text(heads.read_text("utf-8").replace("1:", "2:", 1), "utf-8")
    words = ["plan", str(lab / "protocols/p.toml"), "--times-of", "first", "--lab", str(tmp_path / "copy")]
    assert cli.call(words) == 65
    assert "labctl verify" in capsys.readouterr().err
