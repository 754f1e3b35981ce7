"""A void that is given before the recording is sealed leaves nothing without a seal: not in a run that goes on, and not
when that run or its next start is killed at any entry of the journal.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.sealed_recordings import assert_all_sealed

from labctl.bus import Message, Node, Step
from labctl.cli import call
from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.trial import State, fold
from labctl.errors import DeviceLost
from labctl.runtime.campaign_run import run_campaign
from labctl.store.journal import Journal
from labctl.store.verifying.verify import verify_campaign

VOIDS = {'operator = "sim_operator"  ': 'operator = "support.screens.voiding_operator:build"  '}
LATE_NS = 2 * SECOND  # what the recorder delivers comes so long after it was asked for


class Killed(BaseException):
    """The process is gone: nothing of it catches this."""


class LostOnce:
    """The robot's process: it ends by itself at a visit, once."""

    def __init__(self, inner: Node, left: list[int]) -> None:
        self._inner, self._left = inner, left
        self.name, self.topics = inner.name, inner.topics

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self._left[0] -= 1
        if self._left[0] == 0:
            raise DeviceLost("the link to the robot is gone")
        return self._inner.step(now_ns, inbox)


class Slow:
    """The recorder, whose word that all is there comes late: whoever voids is quicker."""

    def __init__(self, inner: Node) -> None:
        self._inner, self._held = inner, list[tuple[int, Message]]()
        self.name, self.topics = inner.name, inner.topics

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        step = self._inner.step(now_ns, inbox)
        self._held += [(now_ns + LATE_NS, message) for message in step.out if message.kind == "closed"]
        due = [message for at_ns, message in self._held if at_ns <= now_ns]
        self._held = [one for one in self._held if one[0] > now_ns]
        step.out = [message for message in step.out if message.kind != "closed"] + due
        soon = [at_ns for at_ns, _ in self._held] + ([] if step.due_ns is None else [step.due_ns])
        step.due_ns = min(soon) if soon else None
        return step

    @property
    def finished(self) -> bool:
        return bool(getattr(self._inner, "finished", True)) and not self._held


def wrapped(visit: int) -> Callable[[Node], Node]:
    left = [visit]

    def wrap(node: Node) -> Node:
        return LostOnce(node, left) if node.name == "arm" else Slow(node) if node.name == "recorder" else node

    return wrap


def opened(lab: Path) -> Path:
    arms = [policy("first", skill="swift"), HUMAN]
    return make_campaign(lab, arms, budget=6.0, arming=1.0, process_lost="score", cell=VOIDS, faults=True).folder


def run(folder: Path, *, lost_at: int = 0) -> None:
    run_campaign(folder, lambda line: None, manual=True, wrap=wrapped(lost_at))


def check_all_sealed(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[Event]:
    """After closing: each episode of which there is a recording is sealed, once, and verify has nothing to say."""
    assert call(["close", str(folder), "--json"]) == 0
    events = events_of(folder)
    assert_all_sealed(folder, events)
    capsys.readouterr()
    return events


def change_a_chunk(folder: Path, episode: str | None) -> None:
    with closing(sqlite3.connect(folder / "traces.db")) as store:
        (payload,) = store.execute(
            "SELECT payload FROM chunk WHERE episode = ? AND stream = 'arm/state' ORDER BY seq", (episode,)
        ).fetchone()
        changed = payload[:-1] + bytes([payload[-1] ^ 1])
        store.execute("UPDATE chunk SET payload = ? WHERE episode = ? AND payload = ?", (changed, episode, payload))
        store.commit()


def test_an_episode_that_a_person_voided_before_its_seal_is_sealed_by_the_run_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was left without any digest for ever: its traces could be changed, and verify said nothing of it."""
    folder = opened(tmp_path)
    run(folder, lost_at=120)
    events = events_of(folder)
    (void,) = [event for event in events if event.kind == Kind.EPISODE_VOIDED]
    (sealed,) = [event for event in events if event.kind == Kind.RECORDING_SEALED and event.episode == void.episode]
    assert sealed.seq > void.seq, "a control: the void came first"
    again = next(event for event in events if event.kind == Kind.TRIAL_STAGING and event.seq > void.seq)
    assert again.seq > sealed.seq, "the next trial waits for it"
    assert {trial.state for trial in fold(events).trials.values()} == {State.SCORED}
    assert not [event for event in events if event.kind == Kind.CELL_FAULTED]
    check_all_sealed(folder, capsys)
    change_a_chunk(folder, void.episode)
    problems = verify_campaign(folder).problems
    assert [problem.what for problem in problems] == ["changed trace chunk"]
    assert void.episode is not None and void.episode in problems[0].where


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[int, str], bool], bool], None]]:
    """Sets which entry a process is killed at, by its number and kind, and whether it was on the disk by then."""
    append = Journal.append
    at: list[tuple[Callable[[int, str], bool], bool]] = []

    def killing(self: Journal, kind: Kind, **given: object) -> Event:
        seq = self.head()[0] + 1
        wanted, written = at[0] if at else (lambda seq, kind: False, False)
        if wanted(seq, kind) and not written:
            raise Killed
        event = append(self, kind, **given)  # type: ignore[arg-type]
        if wanted(seq, kind):
            raise Killed
        return event

    def set_to(wanted: Callable[[int, str], bool], written: bool) -> None:
        at[:] = [(wanted, written)]

    monkeypatch.setattr(Journal, "append", killing)
    yield set_to


def entries_of_the_first_episode(folder: Path) -> list[int]:
    """The numbers of the journal's entries from the reveal of the voided episode to its seal, and one beyond."""
    events = events_of(folder)
    void = next(event for event in events if event.kind == Kind.EPISODE_VOIDED)
    own = [event.seq for event in events if event.episode == void.episode]
    return list(range(own[0], own[-1] + 2))


def never(seq: int, kind: str) -> bool:
    return False


def kill_and_go_on(
    folder: Path, killer: Callable[[Callable[[int, str], bool], bool], None], entry: int, written: bool
) -> None:
    """A run that is killed at an entry, a next start that is killed when it wants to seal, and one that is not."""
    killer(lambda seq, kind: seq == entry, written)
    with pytest.raises(Killed):
        run(folder, lost_at=120)
    killer(lambda seq, kind: kind == Kind.RECORDING_SEALED, False)
    try:
        run(folder)
    except Killed:
        assert verify_campaign(folder).problems == [], "what was half sealed breaks nothing"
    killer(never, False)
    run(folder)


EVERY = pytest.param(True, marks=[pytest.mark.thorough, pytest.mark.limit(900)])


@pytest.mark.parametrize("every", [False, EVERY])
def test_a_kill_at_any_entry_leaves_every_recording_sealed_in_the_end(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    killer: Callable[[Callable[[int, str], bool], bool], None],
    every: bool,
) -> None:
    """The run process, before and after an entry is on the disk, from the reveal to the seal that comes after a void;
    and the start after it, between the values that it seals and the entry that binds them. The quick run: after the
    void, and before the seal.
    """
    plain = opened(tmp_path / "plain")
    run(plain, lost_at=120)
    entries = entries_of_the_first_episode(plain)
    cases = [(entry, written) for entry in entries for written in (False, True)]
    (void,) = [event.seq for event in events_of(plain) if event.kind == Kind.EPISODE_VOIDED]
    for number, (entry, written) in enumerate(cases if every else [(void, True), (entries[-2], False)]):
        folder = opened(tmp_path / str(number))
        kill_and_go_on(folder, killer, entry, written)
        events = check_all_sealed(folder, capsys)
        assert {trial.state for trial in fold(events).trials.values()} == {State.SCORED}, (entry, written)


def test_closing_seals_what_no_run_will_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], killer: Callable[[Callable[[int, str], bool], bool], None]
) -> None:
    """A person voids, the run is killed, and nobody starts it again."""
    folder = opened(tmp_path)
    killer(lambda seq, kind: kind == Kind.EPISODE_VOIDED, True)
    with pytest.raises(Killed):
        run(folder, lost_at=120)
    killer(never, False)
    (note,) = [note for note in verify_campaign(folder).notes if "is not sealed" in note]
    assert "a change of them cannot be seen" in note and "labctl close" in note
    assert call(["close", str(folder), "--reason", "enough", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["said"]
    assert "sealed what was recorded of" in said[0] and said[1].startswith("closed: ")
    kinds = [event.kind for event in events_of(folder)]
    assert kinds.count(Kind.RECORDING_SEALED) == 1 and kinds[-1] == Kind.CAMPAIGN_CLOSED
    found = verify_campaign(folder)
    assert found.problems == [] and not [note for note in found.notes if "not sealed" in note]


@pytest.mark.parametrize("verb", ["close", "unblind"])
@pytest.mark.parametrize("json_", [[], ["--json"]])
def test_what_a_verb_sealed_is_said_also_where_the_verb_itself_is_refused_then(
    verb: str,
    json_: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    killer: Callable[[Callable[[int, str], bool], bool], None],
) -> None:
    """Neither is done without a reason, and a seal is for good: it is said before."""
    folder = opened(tmp_path)
    killer(lambda seq, kind: kind == Kind.EPISODE_VOIDED, True)
    with pytest.raises(Killed):
        run(folder, lost_at=120)
    killer(never, False)
    assert call([verb, str(folder), *json_]) != 0
    assert [event.kind for event in events_of(folder)][-1] == Kind.RECORDING_SEALED
    said = capsys.readouterr()
    assert "sealed what was recorded of" in (said.err if json_ else said.out) and "--reason" in said.err
    if json_:
        assert json.loads(said.out)["schema"] == "labctl.error/1"
    assert call([verb, str(folder), "--reason", "enough"]) == 0
    assert "sealed what was recorded of" not in capsys.readouterr().out, "once"
