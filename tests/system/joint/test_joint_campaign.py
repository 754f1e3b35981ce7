"""A joint campaign from sealing to unblinding, in simulated time: two labs, a real door between them, one cell after
the other.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from support.joint.joint_labs import Labs, answering, finish, make_labs, unblind
from support.runs.campaigns import events_of

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.errors import BrokenRecord, Held, InputError, StateError
from labctl.joint.asking import SealLink
from labctl.joint.cell import link_of
from labctl.joint.checking import verify_joint
from labctl.joint.keys import Invitation
from labctl.joint.seal_host import writing
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import unblind_campaign
from labctl.store.lab_folder import campaigns
from labctl.store.ledger import Ledger
from labctl.store.opened_list import opened_in
from labctl.store.verifying.verify import verify_campaign


def silent(line: str) -> None:
    """What a run says goes nowhere."""


def run(folder: Path) -> list[str]:
    said: list[str] = []
    run_campaign(folder, said.append)
    return said


def test_two_cells_run_their_parts_and_the_joint_record_holds_before_and_after_unblinding(tmp_path: Path) -> None:
    labs = make_labs(tmp_path, blocks=2)
    with answering(labs):
        folders = [labs.join(cell) for cell in "ab"]
        for folder in folders:
            said = "\n".join(run(folder))
            assert "policy-a" not in said and "human" not in said
            finish(folder)
        before = verify_joint(labs.made.folder, folders)
        with pytest.raises(StateError, match="is not unblinded"):
            unblind(folders[0])
        with writing(labs.made.folder, "test") as host:
            assert not host.unblind(who="lee", reason="")
        for folder in folders:
            unblind(folder)
    after = verify_joint(labs.made.folder, folders)
    assert before.problems == after.problems == [] and after.given == 4
    arms: dict[str, list[str]] = {}
    for folder in folders:
        events = events_of(folder)
        schedule = {slot["trial"]: slot["arm"] for slot in events[-1].body["schedule"]}
        arms[folder.name] = sorted(schedule[str(e.trial)] for e in events if e.kind == Kind.OUTCOME_RECORDED)
        assert verify_campaign(folder).problems == []
    assert arms == {name: ["human", "policy-a"] for name in ("two-a", "two-b")}


def test_without_its_seal_host_no_trial_begins_and_the_run_ends_at_a_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def briefly(invitation: Invitation, part: int) -> SealLink:
        return SealLink(invitation, part=part, patience_s=0.5, try_s=0.2)

    monkeypatch.setattr("labctl.runtime.seal.link_of", partial(link_of, asks=briefly))
    monkeypatch.setattr("labctl.runtime.seal.PATIENCE_NS", 5 * SECOND)
    labs = make_labs(tmp_path)
    with answering(labs):
        folder = labs.join("a")
    with pytest.raises(Held, match=r"the seal host at tcp://127.0.0.1:[0-9]+ does not answer within"):
        run_campaign(folder, silent)
    kinds = [event.kind for event in events_of(folder)]
    assert Kind.ARM_REVEALED not in kinds and Kind.EPISODE_VOIDED not in kinds
    assert Ledger.open(folder).revealed() == {}


@pytest.mark.thorough
def test_a_cell_that_is_gone_is_told_nothing_and_goes_on_without_what_was_given_away(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    with answering(labs):
        folder = labs.join("b")
        with writing(labs.made.folder, "test") as host:
            host.gone("b", who="lee", reason="broken")
            moved = host.move({host.state.part("b", 1).blocks[0]: "a"}, who="lee", reason="not today")
        with pytest.raises(
            Held, match=r"declared gone; a person orders there: labctl joint back two [ab] --reason TEXT"
        ):
            run_campaign(folder, silent)
        with writing(labs.made.folder, "test") as host:
            host.back("b", who="lee", reason="repaired")
        run(folder)
        other = labs.join("a", part=2)
        run(other)
    states = [(e.kind, e.body["reason"]) for e in events_of(folder) if e.kind == Kind.TRIAL_SKIPPED]
    assert states == [(Kind.TRIAL_SKIPPED, "another cell has this block")] * 2 and len(moved) == 1
    scored = [sum(e.kind == Kind.OUTCOME_RECORDED for e in events_of(one)) for one in (folder, other)]
    assert scored == [2, 2]
    assert verify_joint(labs.made.folder, [folder, other]).problems == []


def test_a_cell_joins_again_after_it_was_interrupted_and_never_with_two_folders(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    with answering(labs):
        folder = labs.join("a")
        assert labs.join("a") == folder
        folder.rename(tmp_path / "aside")
        with pytest.raises(StateError, match="has joined with another campaign"):
            labs.join("a")
    nothing_more(labs, "a", opened=1)


def test_a_join_that_the_seal_host_refuses_opens_no_campaign(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    with answering(labs):
        labs.join("a")
        for_b = labs.invitation("b").read_text()
        labs.invitation("b").write_text(labs.invitation("a").read_text())
        with pytest.raises(StateError, match="cell a has joined with another campaign"):
            labs.join("b")
        labs.invitation("b").write_text(for_b)
        with writing(labs.made.folder, "test") as host:
            host.gone("b", who="lee", reason="broken")
        with pytest.raises(StateError, match="cell b was declared gone"):
            labs.join("b")
        nothing_more(labs, "b", opened=0)
        with writing(labs.made.folder, "test") as host:
            host.back("b", who="lee", reason="repaired")
        assert labs.join("b").name == "two-b"


def nothing_more(labs: Labs, cell: str, *, opened: int) -> None:
    """A cell's lab has no campaign, and its list as many as were opened."""
    assert not campaigns(labs.cells[cell]) and len(opened_in(labs.cells[cell])) == opened


def test_another_protocol_and_a_plain_open_are_refused(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    path = labs.cells["a"] / "protocols/two.toml"
    path.write_text(path.read_text().replace('question = "a test"', 'question = "another"'))
    with answering(labs), pytest.raises(InputError, match="the protocol is not the seal host's, byte for byte"):
        labs.join("a")
    assert not list((labs.cells["a"] / "campaigns").iterdir())


@pytest.mark.thorough
def test_an_arm_that_was_changed_at_a_cell_is_found_before_anything_is_written(tmp_path: Path) -> None:
    labs = make_labs(tmp_path, blocks=2)
    with answering(labs):
        folder = labs.join("a")
        run(folder)
        finish(folder)
        path = folder / "seal/reveals.jsonl"
        lines = path.read_text().splitlines()
        turned = lines[0].replace("policy-a", "x").replace("human", "policy-a").replace('"x"', '"human"')
        path.write_text("\n".join([turned, *lines[1:]]) + "\n")
        with writing(labs.made.folder, "test") as host:
            host.unblind(who="lee", reason="b is not ready")
        with pytest.raises(BrokenRecord, match="opens another arm than it revealed"):
            unblind(folder)
        with pytest.raises(StateError, match="its arms are at the seal host"):
            unblind_campaign(folder, who="lee")


def test_arms_that_were_planted_in_a_cells_seal_are_run_by_nobody(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    with answering(labs):
        folder = labs.join("a")
        path = folder / "seal/schedule.json"
        path.write_text(path.read_text().replace('"arm":""', '"arm":"human"', 1))
        with pytest.raises(BrokenRecord, match="an arm stands in it, which only the seal host may have"):
            run_campaign(folder, silent)
    assert {problem.what for problem in verify_campaign(folder).problems} == {"broken commitment"}


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["learn", "seal_value"])
def test_a_run_that_dies_between_an_arm_and_its_entry_gets_the_same_arm_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    labs = make_labs(tmp_path, blocks=2)

    def die(*given: str) -> str:
        raise KeyboardInterrupt

    with answering(labs):
        folder = labs.join("a")
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Ledger, step, die)
            run_campaign(folder, silent)
        run(folder)
        finish(folder)
    events = events_of(folder)
    voided = {event.episode for event in events if event.kind == Kind.EPISODE_VOIDED}
    revealed = [event.episode for event in events if event.kind == Kind.ARM_REVEALED]
    # A trial that this machine was too slow to arm is void and is run again, and its arm is told again.
    whole = [episode for episode in revealed if episode not in voided]
    assert whole == [event.episode for event in events if event.kind == Kind.OUTCOME_RECORDED] and len(whole) == 2
    found = verify_joint(labs.made.folder, [folder])
    assert found.problems == [] and found.given == 2


@pytest.mark.thorough
def test_a_cells_chain_that_was_made_anew_disagrees_with_the_seal_host(tmp_path: Path) -> None:
    joint = make_labs(tmp_path, blocks=2)
    with answering(joint):
        folder = joint.join("a")
        run(folder)
    with writing(joint.made.folder, "test") as host:
        noted = host.state.part("a", 1).head
    assert noted is not None
    other = make_labs(tmp_path / "again", blocks=2, address=f"tcp://127.0.0.1:{_port(joint)}")
    with answering(other):
        forged = other.join("a")
        run(forged)
    found = {problem.what for problem in verify_joint(joint.made.folder, [forged]).problems}
    assert found == {"not given", "chains disagree"}


def test_a_cells_entry_that_was_tampered_with_is_named_whatever_it_holds(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    with answering(labs):
        folder = labs.join("a")
    with closing(sqlite3.connect(folder / "journal.db")) as raw, raw:
        raw.execute("DROP TRIGGER event_no_update")
        raw.execute("UPDATE event SET body = json_set(body, '$.joint', 3)")
    found = {problem.what for problem in verify_joint(labs.made.folder, [folder]).problems}
    assert {"edited entry", "unreadable entry"} <= found


def _port(labs: Labs) -> str:
    return labs.made.folder.joinpath("keys.toml").read_text().split(":")[2].split('"')[0]
