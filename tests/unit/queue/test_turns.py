"""The order of the queue and the way of a submission through it, as its journal tells them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runs.campaigns import make_campaign
from support.submissions.outside import WORDS, Outside, outside, unopened

from labctl.backup.repository import Repository
from labctl.backup.restoring import restore
from labctl.backup.snapshot import take_snapshot
from labctl.clock import ManualClock
from labctl.core.design import Schedule, Slot
from labctl.core.events import Event
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.plain import Json
from labctl.queue import acts, book, lab_files, turns
from labctl.queue.entries import Did, Queue, Step, after, fold
from labctl.store.chain_heads import HEADS
from labctl.store.lab_folder import read_plan
from labctl.store.ledger import Ledger
from labctl.store.opened_list import OPENED

WHO = "p01"
NAMES = ("a", "b", "c", "d")


def event(did: Did, who: str = WHO, **body: Json) -> Event:
    return Event(1, did, 0, "boot", "2026-01-02T00:00:00+00:00", who, body=body)


def queued(*entries: tuple[str, int]) -> Queue:
    return fold(event(Did.ADDED, name=name, kind="campaign", priority=priority) for name, priority in entries)


def names(queue: Queue) -> list[str]:
    return [entry.name for entry in queue.entries]


def test_entries_stand_by_priority_and_within_one_in_the_order_they_came() -> None:
    assert names(queued(("a", 5), ("b", 1), ("c", 5), ("d", 1))) == ["b", "d", "a", "c"]


def test_a_move_stays_within_a_priority_and_a_new_priority_is_the_end_of_its_own() -> None:
    queue = queued(("a", 5), ("b", 5), ("c", 5), ("d", 1))
    queue = after(queue, event(Did.MOVED, name="c", before="a"))
    assert names(queue) == ["d", "c", "a", "b"]
    with pytest.raises(StateError, match="priority"):
        after(queue, event(Did.MOVED, name="c", before="d"))
    assert names(after(queue, event(Did.PRIORITY, name="c", priority=1))) == ["d", "c", "a", "b"]
    assert names(after(queue, event(Did.PRIORITY, name="d", priority=5))) == ["c", "a", "b", "d"]


@pytest.mark.parametrize(
    "act",
    [
        lambda lab, clock: turns.pause(lab, "first", "repair", clock, WHO),
        lambda lab, clock: turns.move(lab, "first", "second", clock, WHO),
        lambda lab, clock: acts.approve(lab, "s-4fa2c1", "fits", clock, WHO),
        lambda lab, clock: acts.withdraw(lab, "s-4fa2c1", "asked for", clock, WHO),
    ],
)
def test_an_act_that_a_lab_without_a_queue_refuses_makes_none(
    tmp_path: Path, act: Callable[[Path, ManualClock], acts.Done]
) -> None:
    with pytest.raises(StateError):
        act(tmp_path, ManualClock())
    assert not (tmp_path / book.FOLDER).exists() and book.verify(tmp_path)[0] == 0


def test_an_opened_campaign_takes_its_protocols_place() -> None:
    queue = queued(("a", 5), ("b", 5), ("c", 5))
    queue = after(queue, event(Did.ADDED, name="b", kind="campaign", priority=5, instead_of="b"))
    assert names(queue) == ["a", "b", "c"]
    with pytest.raises(StateError, match="already"):
        after(queue, event(Did.ADDED, name="c", kind="campaign", priority=5, instead_of="a"))


def test_what_takes_a_place_stands_by_its_own_priority_from_the_start() -> None:
    queue = queued(("a", 2), ("b", 5), ("c", 7))
    assert names(after(queue, event(Did.ADDED, name="d", kind="campaign", priority=6, instead_of="a"))) == [
        "b",
        "d",
        "c",
    ]


NAME, PRIORITY = st.sampled_from(NAMES), st.integers(1, 9)
ACTS = st.one_of(
    st.builds(lambda n, p: event(Did.ADDED, name=n, kind="campaign", priority=p), NAME, PRIORITY),
    st.builds(lambda n, p: event(Did.PRIORITY, name=n, priority=p), NAME, PRIORITY),
    st.builds(lambda n, m: event(Did.MOVED, name=n, before=m), NAME, NAME),
    st.builds(lambda n: event(Did.PAUSED, name=n, reason="r"), NAME),
    st.builds(lambda n: event(Did.WITHDRAWN, name=n, reason="r"), NAME),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTS, max_size=20))
def test_whatever_is_done_each_stands_once_and_by_its_priority(done: list[Event]) -> None:
    queue = Queue()
    for one in done:
        try:
            queue = after(queue, one)
        except StateError:
            continue
    assert len(set(names(queue))) == len(queue.entries)
    priorities = [entry.priority for entry in queue.entries]
    assert priorities == sorted(priorities)


@pytest.fixture
def theirs(tmp_path: Path) -> Outside:
    return outside(tmp_path)


def passed(theirs: Outside, id: str) -> None:
    """As a dry run that passed leaves it."""
    with book.writing(theirs.lab, "dry-run", theirs.clock, WHO) as writer:
        kept = writer.seal(f"{id}.dry-run-001.json", {"endpoint": "wss://gnu.okapi.example:8443", "result": "{}"})
        writer.log(Did.DRY_RUN, {"id": id, "passed": True, "read": True, "sealed": kept})


def sealed_joint(folder: Path, protocol: str) -> None:
    """A joint campaign as far as its protocol is asked for."""
    folder.mkdir(parents=True)
    (folder / "journal.db").touch()
    Ledger.create(folder, Schedule((Slot(0, "t1", 0, 0, "sponge/l1", "a"),)), bytes(32), protocol)


def test_nothing_is_approved_before_its_dry_run_passed_and_nothing_twice(theirs: Outside) -> None:
    id, clock = theirs.taken_in(), theirs.clock
    with pytest.raises(StateError, match="labctl queue dry-run"):
        acts.approve(theirs.lab, id, "it fits", clock, WHO)
    passed(theirs, id)
    acts.approve(theirs.lab, id, "it fits", clock, WHO, 2)
    found = book.read(theirs.lab).queue
    assert found.submission(id).step == Step.APPROVED and names(found) == [id]
    for again in (acts.approve, acts.refuse):
        with pytest.raises(StateError, match="approved"):
            again(theirs.lab, id, "again", clock, WHO)
    acts.withdraw(theirs.lab, id, "asked for", clock, WHO)
    assert book.read(theirs.lab).queue.entries == ()
    with pytest.raises(StateError, match="withdrawn"):
        acts.withdraw(theirs.lab, id, "again", clock, WHO)


def test_a_key_that_was_revoked_since_and_a_request_that_is_over_are_not_approved(theirs: Outside) -> None:
    id, late = theirs.taken_in(), theirs.taken_in(days=1)
    passed(theirs, id)
    passed(theirs, late)
    theirs.clock.sleep_until(3 * 86_400 * 10**9)
    with pytest.raises(StateError, match="expired"):
        acts.approve(theirs.lab, late, "it fits", theirs.clock, WHO)
    lab_files.revoke(theirs.lab, theirs.public[:8], "stolen", theirs.clock.anchor().wall)
    with pytest.raises(StateError, match="revoked"):
        acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)


def test_a_key_that_was_revoked_after_the_approval_makes_no_arm(theirs: Outside) -> None:
    id, protocol = theirs.taken_in(), theirs.lab / "protocols/p.toml"
    passed(theirs, id)
    acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)
    before = protocol.read_bytes()
    lab_files.revoke(theirs.lab, theirs.public[:8], "stolen", theirs.clock.anchor().wall)
    with pytest.raises(StateError, match="revoked"):
        acts.enter(theirs.lab, id, protocol, theirs.clock, WHO)
    assert protocol.read_bytes() == before


def test_an_approved_request_that_is_over_makes_no_arm_and_an_arm_that_is_there_stays_one(theirs: Outside) -> None:
    """Approved in time and forgotten, one was made an arm after its sender had said that it holds no more."""
    id, late, protocol = theirs.taken_in(days=1), theirs.taken_in(days=1), theirs.lab / "protocols/p.toml"
    for each in (id, late):
        passed(theirs, each)
        acts.approve(theirs.lab, each, "it fits", theirs.clock, WHO)
    make_campaign(theirs.lab)
    acts._write_arm(protocol, acts.sealed_of(book.read(theirs.lab), id), "wss://gnu.okapi.example:8443")  # then killed
    before = protocol.read_bytes()
    theirs.clock.sleep_until(3 * 86_400 * 10**9)
    with pytest.raises(StateError, match="expired"):
        acts.enter(theirs.lab, late, protocol, theirs.clock, WHO)
    acts.enter(theirs.lab, id, protocol, theirs.clock, WHO)
    assert protocol.read_bytes() == before
    assert book.read(theirs.lab).queue.submission(id).step == Step.ENTERED


def test_an_arm_is_written_once_though_its_writer_was_killed_before_the_entry(theirs: Outside) -> None:
    make_campaign(theirs.lab)
    id, protocol = theirs.taken_in(), theirs.lab / "protocols/p.toml"
    passed(theirs, id)
    acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)
    sealed = acts.sealed_of(book.read(theirs.lab), id)
    acts._write_arm(protocol, sealed, "wss://gnu.okapi.example:8443")
    acts.enter(theirs.lab, id, protocol, theirs.clock, WHO)
    arms = [arm.name for arm in read_plan(protocol).protocol.arm]
    assert arms == ["human", "policy-a", sealed.alias]
    assert protocol.read_text("utf-8").count(f'name = "{sealed.alias}"') == 1
    found = book.read(theirs.lab).queue
    assert found.submission(id).entered == "trial-run" and found.entries == ()


@pytest.mark.parametrize("of", ["trial-run", "both-labs"])
def test_a_protocol_that_was_opened_takes_no_arm_and_its_copy_by_another_name_does(theirs: Outside, of: str) -> None:
    """The campaign that ran never had the arm, and the submission was over; so it was of a joint campaign (both-labs)
    that `joint open --name` called otherwise than its protocol.
    """
    id, protocol = theirs.taken_in(), theirs.lab / "protocols/p.toml"
    make_campaign(theirs.lab)
    if of != "trial-run":
        (theirs.lab / OPENED).unlink()
        sealed_joint(theirs.lab / "joint" / of, protocol.read_text("utf-8"))
    passed(theirs, id)
    acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)
    before = protocol.read_bytes()
    with pytest.raises(StateError, match=rf"p\.toml: campaign {of} was opened .*another name in \[protocol\]"):
        acts.enter(theirs.lab, id, protocol, theirs.clock, WHO)
    assert protocol.read_bytes() == before and not (protocol.parent / "cards").exists()
    assert names(book.read(theirs.lab).queue) == [id]
    acts.enter(theirs.lab, id, unopened(theirs.lab), theirs.clock, WHO)
    assert book.read(theirs.lab).queue.submission(id).entered == "next"


def test_a_protocol_and_the_keys_keep_their_permissions_when_labctl_writes_into_them(theirs: Outside) -> None:
    """The group of a rig could not read its protocol any more, once an arm was written into it."""
    make_campaign(theirs.lab)
    id, protocol, keys = theirs.taken_in(), unopened(theirs.lab), theirs.lab / lab_files.KEYS
    passed(theirs, id)
    acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)
    protocol.chmod(0o664)
    acts.enter(theirs.lab, id, protocol, theirs.clock, WHO)
    (card,) = (protocol.parent / "cards").glob("arm-*.toml")
    assert (protocol.stat().st_mode & 0o777, card.stat().st_mode & 0o777) == (0o664, 0o600)
    keys.chmod(0o640)
    lab_files.revoke(theirs.lab, theirs.public[:8], "stolen", theirs.clock.anchor().wall)
    assert keys.stat().st_mode & 0o777 == 0o640


def test_a_backup_has_the_queue_and_its_seal(theirs: Outside, tmp_path: Path) -> None:
    id = theirs.taken_in()
    repository = Repository.made(tmp_path / "backups", of=theirs.lab)
    taken = take_snapshot(theirs.lab, repository, theirs.clock.anchor())
    assert not taken.snapshot.damaged and not taken.snapshot.left_out
    restore(repository, tmp_path / "again", None, lambda line: None)
    found = book.read(tmp_path / "again")
    assert found.head == book.read(theirs.lab).head and book.verify(tmp_path / "again")[2] == []
    assert acts.sealed_of(found, id).asked.policy == WORDS["policy"]


def test_who_reads_the_seal_is_kept_and_reasons_are_in_the_seal(theirs: Outside) -> None:
    id = theirs.taken_in()
    passed(theirs, id)
    acts.read_seal(theirs.lab, id, theirs.clock, "p07")
    acts.refuse(theirs.lab, id, "the okapi people ask too much", theirs.clock, "p03")
    assert book.read(theirs.lab).queue.submission(id).read_by == (WHO, "p07", "p03")
    assert b"okapi people" not in (theirs.lab / book.FOLDER / book.DATABASE).read_bytes()
    assert acts.read_seal(theirs.lab, id, theirs.clock, "p07")[1]["refusal"]["reason"].startswith("the okapi")


def test_the_queues_record_is_held_against_its_chain_heads_and_seal(theirs: Outside) -> None:
    id = theirs.taken_in()
    assert book.verify(theirs.lab)[2] == []
    sealed = theirs.lab / book.FOLDER / book.SEAL / f"{id}.request.json"
    whole = sealed.read_bytes()
    sealed.write_bytes(whole.replace(b"okapi", b"zorse"))
    assert [problem.what for problem in book.verify(theirs.lab)[2]] == ["broken seal"]
    with pytest.raises(BrokenRecord, match="not what was sealed"):
        acts.read_seal(theirs.lab, id, theirs.clock, WHO)
    sealed.write_bytes(whole)
    heads = theirs.lab / book.FOLDER / HEADS
    lines = heads.read_text()
    heads.write_text(lines + f"9 {'0' * 64} 2026-01-02T00:00:00+00:00\n")
    assert [problem.what for problem in book.verify(theirs.lab)[2]] == ["cut tail"]
    with pytest.raises(BrokenRecord, match="labctl queue verify"):
        book.read(theirs.lab)
    with pytest.raises(BrokenRecord, match="nothing more is written"):
        theirs.taken_in()


def test_one_writes_at_a_time_and_readers_wait_for_nobody(theirs: Outside) -> None:
    theirs.taken_in()
    with book.writing(theirs.lab, "approve", theirs.clock, WHO):
        assert len(book.read(theirs.lab).queue.submissions) == 1
        with pytest.raises(StateError, match="in use by `queue approve`"):
            theirs.taken_in()


def test_a_line_of_the_keys_is_not_lost_to_who_writes_another_meanwhile(theirs: Outside) -> None:
    # a key was revoked, and said to be, between another command's reading of the file and its writing
    with book.writing(theirs.lab, "trust", theirs.clock, WHO), pytest.raises(StateError, match="in use by"):
        lab_files.revoke(theirs.lab, theirs.public[:8], "stolen", theirs.clock.anchor().wall)
    with book.writing(theirs.lab, "revoke", theirs.clock, WHO), pytest.raises(StateError, match="in use by"):
        lab_files.trust(theirs.lab, theirs.folder / "ours.toml")


def test_a_campaign_keeps_priority_and_pause_of_the_protocol_that_it_was_opened_from(theirs: Outside) -> None:
    name, clock = make_campaign(theirs.lab).folder.name, theirs.clock
    turns.add(theirs.lab, str(theirs.lab / "protocols/p.toml"), clock, WHO, priority=2)
    turns.pause(theirs.lab, name, "camera 2 at repair", clock, WHO)
    turns.add(theirs.lab, name, clock, WHO, instead_of=name)
    (found,) = book.read(theirs.lab).queue.entries
    assert (found.kind, found.priority, found.paused) == ("campaign", 2, "camera 2 at repair")
    turns.add(theirs.lab, name, clock, WHO, instead_of=name, priority=7)
    assert book.read(theirs.lab).queue.entry(name).priority == 7


def test_a_submission_gives_its_place_to_no_campaign(theirs: Outside) -> None:
    id, name = theirs.taken_in(), make_campaign(theirs.lab).folder.name
    passed(theirs, id)
    acts.approve(theirs.lab, id, "it fits", theirs.clock, WHO)
    with pytest.raises(StateError, match=f"labctl queue arm {id}"):
        turns.add(theirs.lab, name, theirs.clock, WHO, instead_of=id)
    assert names(book.read(theirs.lab).queue) == [id]


def test_a_protocol_outside_of_the_lab_and_a_priority_that_is_none_do_not_wait(theirs: Outside, tmp_path: Path) -> None:
    clock = ManualClock()
    with pytest.raises(InputError, match=r"none/p\.toml: no such file"):  # typed from another folder
        turns.add(theirs.lab, "none/p.toml", clock, WHO)
    (tmp_path / "p.toml").touch()
    with pytest.raises(InputError, match="outside of the lab"):
        turns.add(theirs.lab, str(tmp_path / "p.toml"), clock, WHO)
    with pytest.raises(InputError, match="1, the first, to 9"):
        turns.checked(0)
    with pytest.raises(StateError, match="there waits: nothing"):
        turns.pause(theirs.lab, "first", "why", clock, WHO)
