"""Submissions that get no further: what the list says of them, and that they take no hours of a shift."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from support.runs.campaigns import ROOT, make_campaign
from support.submissions.outside import DAY_NS, Outside, outside, unopened

from labctl.cli import call
from labctl.cli.queueing.queue import _print
from labctl.errors import Exit, StateError
from labctl.queue import acts, book, lab_files
from labctl.queue.entries import Did, Step
from labctl.queue.shown import Shown, shown
from labctl.store.lab_folder import read_plan

WHO = "p01"


@pytest.fixture
def theirs(tmp_path: Path) -> Outside:
    """With one long shift to come."""
    found = outside(tmp_path)
    shutil.copytree(ROOT / "fixtures", found.lab / "fixtures")
    (found.lab / "shifts.toml").write_text(
        '[[shift]]\nfrom = 2026-01-20T08:00:00Z\nto = 2026-01-20T20:00:00Z\nwho = ["p07"]\n'
    )
    return found


def approved(theirs: Outside, **given: str) -> str:
    """The id of a submission that passed its dry run and waits for the rig."""
    id = theirs.taken_in(**given)
    with book.writing(theirs.lab, "dry-run", theirs.clock, WHO) as writer:
        kept = writer.seal(f"{id}.dry-run-001.json", {"endpoint": "wss://gnu.okapi.example:8443", "result": "{}"})
        writer.log(Did.DRY_RUN, {"id": id, "passed": True, "read": True, "sealed": kept})
    acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)
    return id


def listed(theirs: Outside) -> Shown:
    return shown(theirs.lab, book.read(theirs.lab), theirs.clock.anchor().wall)


def test_a_wish_takes_hours_until_a_campaign_is_opened_from_its_protocol(theirs: Outside) -> None:
    """It had hours of a shift though the campaign was unblinded: nothing is recorded in one that is opened already,
    of an arm that it does not have.
    """
    id = approved(theirs, campaign="trial-run")
    (before,) = listed(theirs)["entries"]
    assert before["trials"] == 1 and [fit["trials"] for fit in before["fits"]] == [1]
    make_campaign(theirs.lab)
    found = listed(theirs)
    (after,) = found["entries"]
    assert (after["trials"], after["hours"], after["fits"], after["ends"]) == (0, None, [], None)
    assert after["times"].startswith(f"none for {id}: campaign trial-run was opened from protocol 'trial-run'")
    assert found["shifts"][0]["entries"] == []


@pytest.mark.parametrize("why", ["it has expired", "its key was revoked", "its key is not trusted here"])
def test_what_can_become_no_arm_any_more_is_said_to_be_and_takes_no_hours(
    theirs: Outside, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a revoked key's the next command was the dry run, which is refused; an approved one kept its hours."""
    waits, received = approved(theirs, days=1), theirs.taken_in(days=1)
    assert [one["ended"] for one in listed(theirs)["submissions"]] == [None, None]
    if why == "it has expired":
        theirs.clock.sleep_until(3 * DAY_NS)
    elif why == "its key was revoked":
        lab_files.revoke(theirs.lab, theirs.public[:8], "stolen", theirs.clock.anchor().wall)
    else:
        (theirs.lab / lab_files.KEYS).unlink()
    found = listed(theirs)
    assert [one["ended"] for one in found["submissions"]] == [why, why]
    (entry,) = found["entries"]
    assert (entry["hours"], entry["fits"], entry["times"]) == (None, [], f"none for {waits}: {why}")
    _print(found)
    said = capsys.readouterr().out
    for id in (waits, received):
        words = "expired" if "expired" in why else why
        assert re.search(f"submission {id} for .*; {words}.*; next: labctl queue withdraw {id} --reason TEXT\n", said)
    acts.withdraw(theirs.lab, waits, "it is over", theirs.clock, WHO)


def test_an_arm_is_taken_out_of_its_protocol_until_a_campaign_is_opened_from_it(theirs: Outside) -> None:
    """There was nothing to withdraw, it said, and no way to be rid of the arm; whose it is stays sealed."""
    protocol = unopened(theirs.lab)
    before, id, other = protocol.read_text("utf-8"), approved(theirs), approved(theirs)
    for each in (id, other):
        acts.enter(theirs.lab, each, protocol, theirs.clock, WHO)
    kept, _ = (acts.sealed_of(book.read(theirs.lab), each).alias for each in (other, id))
    acts.withdraw(theirs.lab, id, "its sender asked for it", theirs.clock, WHO)
    assert [arm.name for arm in read_plan(protocol).protocol.arm][2:] == [kept]
    assert [path.stem for path in (protocol.parent / "cards").iterdir()] == [kept]
    assert book.read(theirs.lab).queue.submission(id).step == Step.WITHDRAWN
    with pytest.raises(StateError, match="was an arm of next, and no campaign that has it is unblinded"):
        acts.read_seal(theirs.lab, id, theirs.clock, WHO)
    acts.withdraw(theirs.lab, other, "likewise", theirs.clock, WHO)
    assert protocol.read_text("utf-8") == before and book.verify(theirs.lab)[2] == []


def test_an_arm_that_was_changed_by_hand_is_taken_out_by_hand_and_one_that_is_opened_stays(theirs: Outside) -> None:
    protocol, id = unopened(theirs.lab), approved(theirs)
    acts.enter(theirs.lab, id, protocol, theirs.clock, WHO)
    whole = protocol.read_text("utf-8")
    changed = whole.replace("gnu.okapi.example", "emu.okapi.example")
    protocol.write_text(changed, "utf-8")
    line = whole[: whole.index('name = "arm-')].count("\n") + 1
    with pytest.raises(
        StateError, match=rf"next\.toml:{line}: the arm that submission {id} became was changed by hand"
    ):
        acts.withdraw(theirs.lab, id, "asked for", theirs.clock, WHO)
    assert protocol.read_text("utf-8") == changed
    make_campaign(theirs.lab, name="next")
    with pytest.raises(StateError, match=f"submission {id} is an arm of campaign next, opened from protocol 'next'"):
        acts.withdraw(theirs.lab, id, "asked for", theirs.clock, WHO)
    assert book.read(theirs.lab).queue.submission(id).step == Step.ENTERED


@pytest.mark.parametrize("file", [lab_files.KEYS, lab_files.SHIFTS])
def test_a_faulty_file_of_the_lab_is_said_with_its_line_and_the_rest_is_listed(
    theirs: Outside, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip in the keys, of which no line of the list is made, and there was no list."""
    id = approved(theirs)
    path = theirs.lab / file
    path.write_text(path.read_text("utf-8") + "\nwh = 3\n", "utf-8")
    line = len(path.read_text("utf-8").splitlines())
    assert call(["queue", "--lab", str(theirs.lab)]) == Exit.BAD_INPUT
    said = capsys.readouterr()
    assert said.err.startswith(f"{path}:{line}: unknown key 'wh'") and said.err.count("\n") == 1
    assert f"{id}   submission" in said.out
    assert ("no shift to come" in said.out) == (file == lab_files.KEYS), "of shifts that cannot be read nothing is said"
    assert call(["queue", "--lab", str(theirs.lab), "--json"]) == Exit.BAD_INPUT
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["entries"]] == [id] and found["faults"] == [said.err.rstrip()]


def test_of_keys_that_cannot_be_read_none_is_called_unknown_or_revoked(theirs: Outside) -> None:
    old, waits = approved(theirs, days=1), approved(theirs, days=9)
    keys = theirs.lab / lab_files.KEYS
    keys.write_text("[[key]\n")
    theirs.clock.sleep_until(3 * DAY_NS)
    found = listed(theirs)
    assert {one["submission"]: one["ended"] for one in found["submissions"]} == {old: "it has expired", waits: None}
    assert [fault.split(": ")[0] for fault in found["faults"]] == [f"{keys}:1"]
