"""Every verb that shows what a campaign holds looks first whether it holds; a verb that is added has to say whether it
does. With --unverified what comes out says that the record does not hold.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.recordings import copied

from labctl.cli import call, group
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, unblind_campaign
from labctl.store.journal import events_of
from labctl.store.verifying import verify

# How each verb of a campaign is asked to show it.
SHOWN: dict[str, list[str]] = {
    "export": ["--to", "table", "--out", "{out}.csv"],
    "episodes": [],
    "status": [],
    "review": ["--list"],
    "report": ["--out", "{out}"],
    "publish": ["--licence", "CC0-1.0", "--out", "{out}", "--boot", "9", "--perm", "9"],
    "scene": ["--out", "{out}"],
    "static": ["--policy", "zebra"],
}
# What shows nothing of a campaign but writes into it, and refuses where its chain does not hold; `console` is of a run,
# which looked at its start; `verify` is the looking itself.
NOTHING_SHOWN = {
    "bugreport",
    "close",
    "console",
    "extend",
    "freeze",
    "look",
    "practice",
    "run",
    "stamp",
    "stop",
    "unblind",
    "verify",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = tmp_path_factory.mktemp("lab")
    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], items=2, budget=20.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    close_campaign(folder, who="p-1")
    freeze_campaign(folder, who="p-1", unreviewed=True)
    unblind_campaign(folder, who="p-1")
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    copied(recorded.parents[1], tmp_path / "lab")
    return tmp_path / "lab" / "campaigns" / recorded.name


def change(database: Path, statement: str) -> None:
    raw = sqlite3.connect(database)
    for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {trigger}")
    assert raw.execute(statement).rowcount > 0
    raw.commit()
    raw.close()


def an_outcome(folder: Path) -> None:
    """Another person scored it: nothing about that contradicts the rest."""
    change(folder / "journal.db", f"UPDATE event SET who = 'mallory' WHERE kind = '{Kind.OUTCOME_RECORDED}'")


def a_chunk(folder: Path) -> None:
    change(folder / "traces.db", "UPDATE chunk SET payload = zeroblob(9) WHERE stream = 'arm/state'")


def asked(folder: Path, verb: str, out: Path) -> list[str]:
    return [verb, str(folder), *(word.format(out=out) for word in SHOWN[verb])]


def test_every_verb_of_a_campaign_is_gated_or_shows_nothing_of_it() -> None:
    context = click.Context(group)
    verbs = {name: group.get_command(context, name) for name in group.list_commands(context)}
    of_one = {name for name, verb in verbs.items() if verb and any("campaign" in str(p.name) for p in verb.params)}
    assert of_one - NOTHING_SHOWN == {*SHOWN, "show"} - {"report"}, "report takes several, and tables"


@pytest.mark.parametrize("verb", SHOWN)
def test_an_edited_outcome_is_shown_by_no_verb(
    folder: Path, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 17.7: `verify` exited 1 and `export --to table` 0; `episodes`, `status` and `review` showed it as sound."""
    out = tmp_path / "out"
    an_outcome(folder)
    assert call(asked(folder, verb, out)) == 65
    said = capsys.readouterr()
    assert "edited entry" in said.err and "labctl verify" in said.err and "zebra" not in said.out
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("form", ["parquet", "npz", "mcap", "rrd"])
def test_a_changed_recording_is_exported_in_no_format(folder: Path, form: str, tmp_path: Path) -> None:
    a_chunk(folder)
    assert call(["export", str(folder), "--to", form, "--out", str(tmp_path / "out")]) == 65
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["episodes", "status", "report", "export"])
def test_a_journal_that_changes_while_it_is_read_is_not_shown(
    folder: Path, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After it was verified, before it was opened to be shown."""
    look = Campaign.open
    changes = [an_outcome]

    def changed_first(at: Path, **how: bool) -> Campaign:
        while changes:
            changes.pop()(at)
        return look(at, **how)

    monkeypatch.setattr(Campaign, "open", changed_first)
    assert call(asked(folder, verb, tmp_path / "out")) == 65
    assert "changed while it was read" in capsys.readouterr().err and not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("form", ["table", "npz"])
def test_an_export_verifies_the_journal_once(
    folder: Path, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    look = verify.chain_and_head_problems
    monkeypatch.setattr(verify, "chain_and_head_problems", lambda at, *more: (looks.append(at), look(at, *more))[1])
    assert call(["export", str(folder), "--to", form, "--out", str(tmp_path / "out.csv")]) == 0
    assert looks == [folder]


def test_a_changed_recording_is_not_drawn(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episode = next(event.episode for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED)
    a_chunk(folder)
    words = ["show", str(episode), "--lab", str(folder.parents[1]), "--save", str(tmp_path / "a.rrd")]
    assert call(words) == 65 and "changed trace chunk" in capsys.readouterr().err
    assert not (tmp_path / "a.rrd").exists()


@pytest.mark.parametrize("break_it", [an_outcome, a_chunk])
def test_what_reads_the_journal_alone_is_not_kept_by_a_recording(
    folder: Path, break_it: Callable[[Path], None], tmp_path: Path
) -> None:
    break_it(folder)
    expected = 65 if break_it is an_outcome else 0
    assert [call(asked(folder, verb, tmp_path / "out")) for verb in ("status", "episodes", "review")] == [expected] * 3


def test_what_is_exported_all_the_same_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    an_outcome(folder)
    table = tmp_path / "out.csv"
    assert call([*asked(folder, "export", tmp_path / "out"), "--unverified"]) == 0
    with table.open(newline="") as text:
        assert all("does not hold: edited entry" in row["unverified"] for row in csv.DictReader(text))
    assert "does not hold: edited entry" in capsys.readouterr().out
    words = ["export", str(folder), "--to", "npz", "--out", str(tmp_path / "npz"), "--unverified"]
    assert call(words) == 0
    assert "edited entry" in json.loads((tmp_path / "npz" / "labctl.json").read_text())["unverified"]


@pytest.mark.parametrize("verb", ["episodes", "status"])
def test_what_is_listed_all_the_same_says_so(folder: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    an_outcome(folder)
    assert call([verb, str(folder), "--unverified"]) == 0
    assert "this record does not hold: edited entry" in capsys.readouterr().out
    assert call([verb, str(folder), "--unverified", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert all("edited entry" in one["unverified"] for one in told["episodes" if verb == "episodes" else "campaigns"])


def test_what_holds_has_no_such_column(folder: Path, tmp_path: Path) -> None:
    assert call(asked(folder, "export", tmp_path / "out")) == 0
    assert "unverified" not in (tmp_path / "out.csv").read_text()
