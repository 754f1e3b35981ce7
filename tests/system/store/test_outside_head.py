"""A record holds in itself whoever made it: only what was noted outside tells the first from a second one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind
from support.runs.forging import cut_heads, forge, rewrite_heads
from support.runs.recordings import copied

from labctl.cli import call
from labctl.core.events import Event
from labctl.runtime.campaign_run import run_campaign
from labctl.store.chain_heads import read_heads

NOT_CHECKED = "not checked against an outside head"


def recorded(lab: Path) -> Path:
    folder = make_campaign(lab, [HUMAN, policy("policy-a")]).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, recordings) -> Path:
    """A copy of an unblinded campaign, to be made anew."""
    lab = copied(recordings.of(recorded).parents[1], tmp_path / "lab")
    (found,) = (lab / "campaigns").iterdir()
    return found


def verify(folder: Path, *more: str) -> int:
    return call(["verify", str(folder), *more])


def report(folder: Path, *more: str) -> int:
    out = str(folder.parents[1] / "report")
    return call(["report", str(folder), "--out", out, "--boot", "9", "--perm", "9", *more])


def anchored_to(folder: Path) -> str:
    """What the report's provenance says, on its page and in its data."""
    out = folder.parents[1] / "report"
    said = json.loads((out / "report.json").read_text())["lab"]["provenance"]["anchored to"]
    assert said in (out / "report.md").read_text()
    return str(said)


@pytest.mark.parametrize("heads", [rewrite_heads, cut_heads])
def test_outcomes_made_anew_with_chain_and_heads_are_named_by_a_head_noted_before_and_by_nothing_else(
    folder: Path, heads: Callable[[Path, list[Event]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    noted = read_heads(folder)[-1]
    heads(folder, forge(folder))
    assert verify(folder) == 0
    assert NOT_CHECKED in capsys.readouterr().out, "in itself it holds, and no more is claimed"
    assert verify(folder, "--head", f"{noted.seq}:{noted.hash}") == 1
    assert f"head not in chain: entry {noted.seq}" in capsys.readouterr().out
    assert report(folder, "--head", f"{noted.seq}:{noted.hash}") == 1
    assert "head not in chain" in capsys.readouterr().err
    assert report(folder) == 0 and anchored_to(folder).startswith(NOT_CHECKED)


def test_a_head_noted_outside_binds_the_entries_up_to_it_and_says_how_many_come_after(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = events_of(folder)
    noted, last = events[-3], len(events)
    told = f"entries 1 to {noted.seq} of {last} are bound by the outside head {noted.seq}:{noted.hash}"
    assert verify(folder, "--head", f"{noted.seq}:{noted.hash[:16]}") == 0
    said = capsys.readouterr().out
    assert told in said and "the 2 after it are not" in said and NOT_CHECKED not in said
    assert report(folder, "--head", f"{noted.seq}:{noted.hash}") == 0
    assert anchored_to(folder).startswith(told)


def test_the_last_head_binds_all_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = events_of(folder)[-1]
    assert verify(folder, "--head", f"{last.seq}:{last.hash}", "--json") == 0
    (said,) = json.loads(capsys.readouterr().out)["campaigns"]
    assert said["outside"] == {"head": f"{last.seq}:{last.hash}", "entries": last.seq, "commitment": None}


@pytest.mark.parametrize("written", ["{0.seq} {0.hash}", "{0.hash}", "{0.seq}:{0.hash}"])
def test_a_head_is_taken_as_labctl_wrote_it_anywhere(folder: Path, written: str) -> None:
    assert verify(folder, "--head", written.format(events_of(folder)[4])) == 0


def test_a_head_at_another_position_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifth, last = events_of(folder)[4], events_of(folder)[-1]
    assert verify(folder, "--head", f"4:{fifth.hash}") == 1
    assert "head not in chain: entry 4" in capsys.readouterr().out
    assert verify(folder, "--head", f"{last.seq + 9}:{last.hash}") == 1
    assert f"the journal ends at {last.seq}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [verify, report])
@pytest.mark.parametrize(
    "given", ["", "xyz", "5:0123456789abcde", "0123456789abcde", "0:" + "a" * 64, "-1:" + "a" * 64]
)
def test_a_head_of_fewer_than_16_digits_or_none_is_refused_in_one_line(
    folder: Path, verb: Callable[..., int], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb(folder, "--head", given) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said and "--head" in said and "16" in said


def test_a_commitment_noted_at_opening_is_held_against_the_schedule(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commitment = events_of(folder)[0].body["commitment"]
    assert verify(folder, "--commitment", commitment) == 0
    said = capsys.readouterr().out
    assert "the commitment is the one given" in said and NOT_CHECKED in said, "the schedule is bound, nothing after it"
    assert verify(folder, "--commitment", "f" * 64) == 1
    assert "another commitment" in capsys.readouterr().out
    assert report(folder, "--commitment", "f" * 64) == 1
    assert "another commitment" in capsys.readouterr().err
    assert report(folder, "--commitment", commitment[:16]) == 0
    assert "the commitment is the one given" in anchored_to(folder)
    assert verify(folder, "--commitment", commitment[:8]) == 2
    assert "--commitment" in capsys.readouterr().err


def test_a_table_and_a_whole_lab_are_held_against_no_head(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = folder.parents[1]
    make_campaign(lab, [HUMAN, policy("policy-a")], name="other")
    for option in ("--head", "--commitment"):
        assert call(["verify", "--lab", str(lab), option, "a" * 64]) == 2
        assert f"{option} belongs to one campaign" in capsys.readouterr().err
        assert call(["report", "table.csv", "--out", str(tmp_path / "out"), option, "a" * 64]) == 2
        assert option in capsys.readouterr().err


def test_an_extension_begins_with_a_head_that_is_printed_and_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = folder.parents[1]
    files = [str(lab / "protocols/p.toml"), "--cell", str(lab / "cells/c.toml"), "--lab", str(lab)]
    assert call(["extend", folder.name, *files]) == 0
    said = capsys.readouterr().out
    (later,) = (path for path in (lab / "campaigns").iterdir() if path != folder)
    (head,) = read_heads(later)
    assert f"head 1:{head.hash}" in said
    assert verify(later, "--head", f"1:{head.hash}") == 0
