"""A campaign that was given up, or closed before its end, says so in every report: who, why, how many trials."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy

from labctl.cli import call
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, unblind_campaign

WHY = "the gripper broke in block 2"


def some_run(lab: Path, *, blocks: int = 2, name: str = "first", extends: Path | None = None) -> Path:
    """A campaign whose last trial was given up, the others scored."""
    arms = [HUMAN, policy("policy-a", skill="swift")]
    settings = {"items": 1, "budget": 3.0, "arming": 1.0, "blocks": blocks, "name": name, "extends": extends}
    folder = make_campaign(lab, arms, **settings).folder

    class Enough(Exception):
        pass

    def say(line: str) -> None:
        if line.lstrip().startswith(f"{2 * blocks - 1}/"):
            raise Enough

    with pytest.raises(Enough):
        run_campaign(folder, say, manual=True)
    return folder


def reported(folder: Path, out: Path, *, abandon: bool, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What closing said, and each form of the report."""
    flag = ["--abandon"] if abandon else []
    assert call(["close", str(folder), "--reason", WHY, "--who", "lea", *flag]) == 0
    told = capsys.readouterr().out
    freeze_campaign(folder, who="lea", unreviewed=True)
    unblind_campaign(folder, who="lea")
    assert call(["report", str(folder), "--out", str(out), "--boot", "9", "--perm", "9"]) == 0
    return {"close": told, **{path.suffix: path.read_text() for path in out.glob("report.*")}}


def test_a_campaign_that_was_given_up_says_so_in_every_form_of_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = reported(some_run(tmp_path), tmp_path / "report", abandon=True, capsys=capsys)
    assert found["close"].startswith("abandoned: of 4 trials 3 scored, 1 not run\n")
    line = f"first was abandoned by lea, 3 scored, 1 not run: {WHY}"
    for form in (".html", ".md", ".json"):
        assert line in found[form], form
    assert "ABANDONED" in found[".html"] and "ABANDONED" in found[".md"]
    assert json.loads(found[".json"])["lab"]["deviations"][0] == line


def test_one_that_was_closed_before_its_end_says_that_and_is_not_called_abandoned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = reported(some_run(tmp_path), tmp_path / "report", abandon=False, capsys=capsys)
    assert found["close"].startswith("closed: of 4 trials 3 scored, 1 not run\n")
    for form in (".html", ".md", ".json"):
        assert f"closed by lea with 1 of 4 trials not run: {WHY}" in found[form], form
        assert "was abandoned" not in found[form] and "ABANDONED" not in found[form]


def test_a_report_of_linked_campaigns_says_it_of_the_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = some_run(tmp_path)
    reported(first, tmp_path / "one", abandon=True, capsys=capsys)
    arms = [HUMAN, policy("policy-b", skill="swift")]
    settings = {"items": 1, "budget": 3.0, "arming": 1.0, "name": "second", "extends": first}
    second = make_campaign(tmp_path, arms, **settings).folder
    run_campaign(second, lambda line: None, manual=True)
    for step in (close_campaign, partial(freeze_campaign, unreviewed=True), unblind_campaign):
        step(second, who="lea")
    out = tmp_path / "both"
    words = ["--out", str(out), "--boot", "9", "--perm", "9", "--lab", str(tmp_path)]
    assert call(["report", "first", "second", *words]) == 0
    told = json.loads((out / "report.json").read_text())["lab"]
    assert [line for line in told["abandoned"] if line.startswith("first was abandoned by lea")]
    assert WHY in (out / "report.html").read_text()


def test_the_file_drawer_calls_it_abandoned_and_old_journals_have_no_such_word(tmp_path: Path) -> None:
    from labctl.reporting.file_drawer import drawer

    folders = [make_campaign(tmp_path, [HUMAN, policy("a")], entropy=bytes([n]) * 32).folder for n in range(3)]
    close_campaign(folders[1], who="lea", reason=WHY, abandon=True)
    close_campaign(folders[2], who="lea", reason=WHY)
    (plain,) = [event.body for event in events_of(folders[2]) if event.kind == Kind.CAMPAIGN_CLOSED]
    assert plain["reason"] == WHY and "abandoned" not in plain
    with Campaign.open(folders[0]) as campaign:
        lines = list(drawer(tmp_path, campaign.record()).values())
    assert "closed, abandoned, 0 of 2" in lines[1] and "closed, 0 of 2" in lines[2]
