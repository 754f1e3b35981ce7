"""A person who edits a file of a campaign that is open already hears that the campaign goes on by what was sealed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.policies.cards import card_toml
from support.runs.campaigns import HUMAN, make_campaign, unblind

from labctl.cli import call
from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign, close_campaign
from labctl.store.journal import events_of
from labctl.store.verifying.edited import edited_among, edited_since

MINE = {"name": "mine", "kind": "policy", "controller": "policy_callable"}
REMEDY = "for an edit to hold, open another campaign: labctl open "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "protocols/cards").mkdir(parents=True)
    (tmp_path / "protocols/cards/mine.toml").write_text(card_toml("callable"), "utf-8")
    arm = {**MINE, "options": {"card": "cards/mine.toml", "function": "math:sqrt"}}
    return make_campaign(tmp_path, [HUMAN, arm]).folder


def said(folder: Path) -> str:
    with Campaign.open(folder) as campaign:
        return str(edited_since(campaign) or "")


def edit(path: Path) -> str:
    """The text before."""
    text = path.read_text("utf-8")
    path.write_text(f"{text}# edited\n", "utf-8")
    return text


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("cells/c.toml", "cells/c.toml"),
        ("fixtures/two_totes.toml", "fixtures/two_totes.toml"),
        ("protocols/p.toml", "protocols/p.toml"),
        ("protocols/cards/mine.toml", "a policy card of protocols/p.toml"),
    ],
)
def test_the_file_that_was_edited_is_named_and_its_arm_is_not(folder: Path, file: str, named: str) -> None:
    """The edit of a cell's limits did not hold, and nobody said so."""
    lab = folder.parents[1]
    assert said(folder) == ""
    before = edit(lab / file)
    line = f"{named} was edited after campaign trial-run was opened: it goes on by what was sealed then; {REMEDY}"
    assert said(folder).startswith(line) and "mine" not in said(folder)
    (lab / file).write_text(before, "utf-8")
    assert said(folder) == ""


def test_what_is_elsewhere_by_now_or_of_a_campaign_that_is_over_is_not_named(folder: Path) -> None:
    lab = folder.parents[1]
    (lab / "protocols/p.toml").unlink()
    (lab / "protocols/cards/mine.toml").unlink()
    assert said(folder) == ""
    edit(lab / "cells/c.toml")
    assert "cells/c.toml" in said(folder)
    close_campaign(folder, who="tester", reason="enough", abandon=True)
    assert said(folder) == ""


def test_two_files_are_one_line_and_each_verb_that_looks_at_them_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_campaign(tmp_path / "lab").folder
    monkeypatch.chdir(tmp_path / "lab")
    edit(Path("cells/c.toml"))
    edit(Path("protocols/p.toml"))
    text = "cells/c.toml and protocols/p.toml were edited after campaign trial-run was opened"
    remedy = f"{REMEDY}protocols/p.toml --cell cells/c.toml"
    line = f"{text}: it goes on by what was sealed then; {remedy}"
    assert said(folder) == line
    assert call(["status"]) == 0 and line in capsys.readouterr().out.splitlines()
    assert call(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["campaigns"][0]["edited"] == [line]
    assert call(["doctor", "cells/c.toml", "--protocol", "protocols/p.toml"]) == 0
    assert capsys.readouterr().out.count(f"warn  opened: {line.replace('; ', ' -> ')}\n") == 1
    lines: list[str] = []
    run_campaign(folder, lines.append, manual=True)
    assert lines[0] == line
    unblind(folder)
    assert call(["status"]) == 0 and "edited" not in capsys.readouterr().out


def test_of_files_outside_of_the_lab_the_journal_does_not_say_where_they_lie(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "lab").folder
    opened = body_of(events_of(folder, most=1)[0], CampaignOpened)
    assert opened.get("files") == {
        "cell": "cells/c.toml",
        "fixture": "fixtures/two_totes.toml",
        "protocol": "protocols/p.toml",
    }
    edit(tmp_path / "lab/cells/c.toml")
    (tmp_path / "c.toml").write_text("", "utf-8")
    assert edited_among([tmp_path / "c.toml", tmp_path / "lab/protocols/other.toml"]) == []
    assert len(edited_among([tmp_path / "lab/cells/c.toml", tmp_path / "lab/protocols/p.toml"])) == 1
