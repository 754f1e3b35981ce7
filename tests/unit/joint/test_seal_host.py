"""The seal host reveals one trial at a time, the same arm however often it is asked, never one trial to two cells."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.joint.joint_labs import SECRET, Labs, make_labs

from labctl.backup.repository import Repository
from labctl.backup.restoring import restore
from labctl.backup.snapshot import take_snapshot
from labctl.clock import ManualClock
from labctl.core.events import Event
from labctl.errors import InputError, LabctlError, StateError
from labctl.joint.checking import verify_joint
from labctl.joint.making import drawn
from labctl.joint.seal_host import SealHost, writing
from labctl.joint.state import ClockBody, HeadBody, JointKind
from labctl.store.journal import events_of
from labctl.store.lab_folder import read_plan

CLOCK = ClockBody(offset_s=0.001, bound_s=0.002)


def head(seq: int, of: str = "a") -> HeadBody:
    return HeadBody(seq=seq, hash=f"{of * 4}{seq:060x}")


@pytest.fixture
def labs(tmp_path: Path) -> Labs:
    return make_labs(tmp_path, address="tcp://127.0.0.1:7441")


@pytest.fixture
def joined(labs: Labs) -> Labs:
    with writing(labs.made.folder, "test", ManualClock()) as host:
        host.join("a", 1, head(1))
        host.join("b", 1, head(1, "b"))
    return labs


def asked(labs: Labs, act: Callable[[SealHost], object]) -> object:
    """One answer of a seal host that is opened anew, as the door does it for each question."""
    with writing(labs.made.folder, "test", ManualClock()) as host:
        return act(host)


def give(labs: Labs, cell: str, trial: str, seq: int, *, part: int = 1, skipped: tuple[str, ...] = ()) -> str:
    found = asked(labs, lambda host: host.give(cell, part, trial, head(seq, cell), CLOCK, skipped).arm)
    return str(found)


def order(labs: Labs, cell: str, part: int = 1) -> list[str]:
    with writing(labs.made.folder, "test", ManualClock()) as host:
        return [slot["trial"] for slot in host.state.slots(host.state.part(cell, part))]


def given_events(labs: Labs) -> list[Event]:
    return [event for event in events_of(labs.made.folder) if event.kind == JointKind.GIVEN]


def test_trials_are_given_in_order_and_the_arm_is_the_one_that_was_sealed(joined: Labs) -> None:
    plan = read_plan(joined.host / "protocols/two.toml")
    sealed = {slot.trial: slot.arm for cell in "ab" for slot in drawn(plan, SECRET).of(cell).slots}
    for seq, trial in enumerate(order(joined, "a"), 2):
        assert give(joined, "a", trial, seq) == sealed[trial]
    assert verify_joint(joined.made.folder, []).problems == []


def test_the_same_trial_asked_again_gets_the_same_arm_and_the_journal_says_again(joined: Labs) -> None:
    first = order(joined, "a")[0]
    arms = {give(joined, "a", first, seq) for seq in (2, 2, 5)}
    assert len(arms) == 1 and [event.body["again"] for event in given_events(joined)] == [False, True, True]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda labs: give(labs, "a", order(labs, "a")[1], 9), "not the next"),
        (lambda labs: give(labs, "a", order(labs, "b")[0], 9), "not of this cell"),
        (lambda labs: give(labs, "a", "t-zzzzzz", 9), "not in the sealed schedule"),
        (lambda labs: give(labs, "a", order(labs, "a")[0], 9, part=2), "has no part 2"),
        (lambda labs: asked(labs, lambda host: host.join("a", 1, head(1, "b"))), "joined with another campaign"),
        (lambda labs: asked(labs, lambda host: host.to_join("b", 1)), "cell b has joined with another campaign"),
        (lambda labs: asked(labs, lambda host: host.gone("c", who="lee", reason="x")), "no cell 'c'"),
        (lambda labs: asked(labs, lambda host: host.opening("a", 1)), "is not unblinded; not over yet: a, b"),
        (lambda labs: asked(labs, lambda host: host.unblind(who="lee", reason="")), "not over: a, b"),
        (lambda labs: asked(labs, lambda host: host.move({0: "a"}, who="lee", reason="x")), "it stays where it is"),
    ],
)
def test_what_may_not_be_is_refused_and_nothing_is_written(
    joined: Labs, what: Callable[[Labs], object], said: str
) -> None:
    before = len(events_of(joined.made.folder))
    with pytest.raises(LabctlError, match=said):
        what(joined)
    assert len(events_of(joined.made.folder)) == before


def test_an_earlier_trial_is_over_once_the_next_was_given(joined: Labs) -> None:
    first, second = order(joined, "a")[:2]
    give(joined, "a", first, 2)
    give(joined, "a", second, 3)
    with pytest.raises(StateError, match="it is over"):
        give(joined, "a", first, 4)


def test_a_journal_that_was_cut_or_rewritten_gets_no_arm(joined: Labs) -> None:
    first, second = order(joined, "a")[:2]
    give(joined, "a", first, 7)
    with pytest.raises(StateError, match="it was cut, or is a copy from before"):
        give(joined, "a", second, 6)
    with pytest.raises(StateError, match="entry 7 of cell a is not the one"):
        asked(joined, lambda host: host.give("a", 1, second, head(7, "b"), CLOCK, ()))


def test_no_second_arm_is_given_before_the_cell_has_journalled_anything_of_the_first(joined: Labs) -> None:
    first, second = order(joined, "a")[:2]
    give(joined, "a", first, 7)
    give(joined, "a", first, 8)
    with pytest.raises(StateError, match=f"ends at entry 8, as when it was told its last arm: trial {first} begins"):
        give(joined, "a", second, 8)
    give(joined, "a", second, 9)
    assert [event.body["again"] for event in given_events(joined)] == [False, True, False]


def test_arms_that_were_given_at_one_entry_of_a_cell_are_named_by_verify(
    joined: Labs, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = order(joined, "a")[:2]
    with monkeypatch.context() as patched:
        patched.setattr("labctl.joint.seal_host.may_give", lambda *about: False)  # a host that does not look
        for trial in trials:
            give(joined, "a", trial, 7)
    (problem,) = verify_joint(joined.made.folder, []).problems
    assert problem.what == "given against the rule" and "as when it was told its last arm" in problem.detail


def test_a_clock_that_is_surely_too_far_away_gets_no_arm(joined: Labs) -> None:
    first = order(joined, "a")[0]
    for offset, bound in ((1.6, 0.5), (-3.0, 1.9)):
        away = ClockBody(offset_s=offset, bound_s=bound)
        with pytest.raises(StateError, match="the limit is 1 s: set both by NTP"):
            asked(joined, lambda host, away=away: host.give("a", 1, first, head(2), away, ()))
    unsure = ClockBody(offset_s=1.6, bound_s=0.7)
    asked(joined, lambda host: host.give("a", 1, first, head(2), unsure, ()))


def test_the_heads_of_all_cells_are_joined_where_a_block_begins(joined: Labs) -> None:
    trials = order(joined, "a")
    for seq, trial in enumerate(trials[:3], 2):
        give(joined, "a", trial, seq)
    joins = [event for event in events_of(joined.made.folder) if event.kind == JointKind.HEADS]
    named = [[(one["cell"], one["head"]["seq"]) for one in event.body["heads"]] for event in joins]
    assert named == [[("a", 2), ("b", 1)], [("a", 4), ("b", 1)]]


def test_before_unblinding_no_byte_of_the_seal_hosts_journal_depends_on_the_arms(labs: Labs) -> None:
    text = (labs.made.folder / "journal.db").read_bytes() + (labs.made.folder / "heads.log").read_bytes()
    assert b"policy-a" not in text and b"human" not in text
    private = [path for path in labs.made.folder.rglob("*") if path.suffix in (".json", ".toml", ".jsonl")]
    assert private and all(path.stat().st_mode & 0o077 == 0 for path in private)


def test_blocks_of_a_cell_that_is_gone_go_whole_to_others_with_their_sealed_arms(joined: Labs) -> None:
    begun, rest = order(joined, "b")[0], order(joined, "b")[2:]
    give(joined, "b", begun, 2)
    asked(joined, lambda host: host.gone("b", who="lee", reason="broken"))
    with pytest.raises(
        StateError,
        match=r"declared gone; a person at the seal host orders: labctl joint back [a-z]+ [a-z]+ --reason TEXT",
    ):
        give(joined, "b", begun, 3)
    parts = asked(joined, lambda host: host.move(host.dealt_anew(), who="lee", reason="will not return"))
    assert [(one["cell"], one["part"]) for one in parts] == [("a", 2)]  # pyright: ignore[reportGeneralTypeIssues]
    assert order(joined, "a", 2) == rest
    asked(joined, lambda host: host.join("a", 2, head(1)))
    arms = [give(joined, "a", trial, seq, part=2) for seq, trial in enumerate(rest, 2)]
    assert sorted(arms) == ["human", "policy-a"]
    asked(joined, lambda host: host.back("b", who="lee", reason="repaired"))
    with pytest.raises(StateError, match="not of this cell any more"):
        give(joined, "b", rest[0], 9)
    second = order(joined, "b")[1]
    assert {give(joined, "b", begun, 10), give(joined, "b", second, 11)} == {"human", "policy-a"}
    assert verify_joint(joined.made.folder, []).problems == []


def test_a_backup_of_the_seal_hosts_lab_has_its_folder_whole_and_restores_it(joined: Labs, tmp_path: Path) -> None:
    give(joined, "a", order(joined, "a")[0], 2)
    repository = Repository.made(tmp_path / "backups", of=joined.host)
    taken = take_snapshot(joined.host, repository, ManualClock().anchor())
    assert taken.snapshot.damaged == []
    restore(repository, tmp_path / "again")
    again = tmp_path / "again/joint/two"
    assert verify_joint(again, []).problems == [] and (again / "keys.toml").stat().st_mode & 0o077 == 0
    assert len(events_of(again)) == len(events_of(joined.made.folder))


def test_a_reason_is_wanted_for_every_order(joined: Labs) -> None:
    with pytest.raises(InputError, match="say why with --reason"):
        asked(joined, lambda host: host.gone("b", who="lee", reason="  "))


def test_unblinding_early_takes_a_reason_and_opens_what_was_committed(joined: Labs) -> None:
    assert asked(joined, lambda host: host.unblind(who="lee", reason="the rig is sold")) is True
    slots, nonce = asked(joined, lambda host: host.opening("a", 1))  # pyright: ignore[reportGeneralTypeIssues]
    assert len(slots) == 4 and len(nonce) == 64
    assert verify_joint(joined.made.folder, []).problems == []


def test_a_cell_that_closed_and_is_gone_then_makes_no_unblinding_early(joined: Labs) -> None:
    asked(joined, lambda host: host.close("a", 1, head(2), "frozen"))
    asked(joined, lambda host: host.close("b", 1, head(2, "b"), "closed"))
    with pytest.raises(StateError, match="not over: a cell that is not frozen"):
        asked(joined, lambda host: host.unblind(who="lee", reason=""))
    asked(joined, lambda host: host.gone("b", who="lee", reason="the lab is closed"))
    assert asked(joined, lambda host: host.unblind(who="lee", reason="")) is False


def test_of_blocks_that_stand_together_none_is_free_once_one_is_begun(joined: Labs) -> None:
    """What is said to be free is what is dealt."""

    found: list[tuple[set[int], set[int]]] = []

    def look(host: SealHost) -> None:
        (mine,) = host.state.parts_of("b")
        blocks = dict(host.state.blocks)
        for number in mine.blocks:
            blocks[number] = {**blocks[number], "together": -1}
        host.state = replace(host.state, blocks=blocks)
        found.append((host.free_blocks(), set(host.dealt_anew())))

    asked(joined, lambda host: host.gone("b", who="lee", reason="broken"))
    asked(joined, look)
    asked(joined, lambda host: host.back("b", who="lee", reason="repaired"))
    give(joined, "b", order(joined, "b")[0], 2)
    asked(joined, lambda host: host.gone("b", who="lee", reason="broken"))
    asked(joined, look)
    (free, dealt), after = found
    assert free == dealt and len(free) == 2 and after == (set(), set())


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    acts=st.lists(
        st.tuples(st.sampled_from(["give", "again", "jump", "gone", "back", "move"]), st.sampled_from("ab")),
        max_size=24,
    )
)
def test_whatever_is_asked_in_whatever_order_no_trial_is_given_to_two_cells(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, str]]
) -> None:
    labs = make_labs(tmp_path_factory.mktemp("joint"), address="tcp://127.0.0.1:7441")
    seq = 1
    with writing(labs.made.folder, "test", ManualClock()) as host:
        host.join("a", 1, head(1))
        host.join("b", 1, head(1, "b"))
        for act, cell in acts:
            seq += 1
            try:
                _try(host, act, cell, seq)
            except LabctlError:
                continue
    events = given_events(labs)
    to = {(str(event.trial), event.body["cell"]) for event in events}
    assert len({trial for trial, _ in to}) == len(to)
    assert verify_joint(labs.made.folder, []).problems == []


def _try(host: SealHost, act: str, cell: str, seq: int) -> None:
    if act in ("give", "again", "jump"):
        part = host.state.parts_of(cell)[-1]
        if part.head is None:
            host.join(cell, part.number, head(seq, cell))
        left = [slot["trial"] for slot in host.state.slots(part) if slot["trial"] not in part.given]
        if not left:  # its part is through
            return
        trial = part.given[-1] if act == "again" and part.given else left[2 if act == "jump" and len(left) > 2 else 0]
        host.give(cell, part.number, trial, head(seq, cell), CLOCK, ())
    elif act == "move":
        host.move(host.dealt_anew(), who="lee", reason="x")
    else:
        getattr(host, act)(cell, who="lee", reason="x")


@pytest.mark.parametrize("seq", [1, 2])
def test_an_entry_that_was_tampered_with_is_named_whatever_it_lacks(joined: Labs, seq: int) -> None:
    with closing(sqlite3.connect(joined.made.folder / "journal.db")) as raw, raw:
        raw.execute("DROP TRIGGER event_no_update")
        raw.execute("UPDATE event SET body = '{}' WHERE seq = ?", [seq])
    found = {problem.what: problem.detail for problem in verify_joint(joined.made.folder, []).problems}
    assert list(found) == ["edited entry", "broken journal of the seal host"]
    assert f"entry {seq} lacks what its kind must say" in found["broken journal of the seal host"]
