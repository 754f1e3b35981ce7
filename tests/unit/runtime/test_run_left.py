"""Before go: leaving a run costs no trial one of its voids, and whoever or whatever ends an episode makes it void:
nothing was tried, and it is run again. What is said of a void is so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.reviewed_now import correct
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.cli import call
from labctl.clock import SECOND, ManualClock
from labctl.core.events import EndReason, Kind
from labctl.core.published_state import published
from labctl.core.recovery import reconcile
from labctl.core.rollout import void_reason
from labctl.core.trial import State, Trial, fold
from labctl.errors import InputError
from labctl.messages.processes import EndRun
from labctl.runtime.readiness import BECAUSE
from labctl.store.campaign import Campaign
from labctl.store.locks import CONTACT
from labctl.ui.console.refusals import offers
from labctl.ui.console.stops_and_voids import AskVoid

MAX_VOIDS = 2
ARMS = [HUMAN, policy("zebra", endpoint="sim://zebra")]
REST = {"items_staged": 2, "moved": 0, "lost": 0, "remaining": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    return make_campaign(tmp_path, arms, max_voids=MAX_VOIDS).folder


@contextmanager
def run(folder: Path, clock: ManualClock) -> Iterator[Bench]:
    """A run of the campaign, started anew, everyone there; the session is the first run's."""
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign, clock=clock)
        bench.ids = 100 * len(bench.events())  # what the runs before had carried out is not carried out again
        if campaign.state.session is None:
            bench.begin_session()
        else:
            bench.hear(*(Message("run", "hello", sender=name) for name in ("arm", "recorder", *bench.cameras)))
            bench.wait(SECOND // 10)
        yield bench


def first(bench: Bench) -> Trial:
    return next(iter(fold(bench.events()).trials.values()))


def left_while_armed(folder: Path, clock: ManualClock, ask: Message) -> Trial:
    """The first trial, after a run that was left with it armed."""
    with run(folder, clock) as bench:
        bench.stage()
        bench.commit()
        bench.hear(ask)
        assert bench.node.finished and first(bench).state == State.PLANNED
        assert f"trial 1 of {bench.shown()['progress'][1]}: voided before go (run_left); stage it again" in bench.lines
        return first(bench)


@pytest.mark.parametrize(
    "ask", [Message("run", "shutdown", sender="@host"), EndRun("lea").to("run")], ids=["Ctrl-C", "labctl stop"]
)
def test_a_run_that_is_left_again_and_again_with_a_trial_armed_loses_no_trial(folder: Path, ask: Message) -> None:
    clock = ManualClock(SECOND)
    for times in range(1, MAX_VOIDS + 3):
        trial = left_while_armed(folder, clock, ask)
        assert (trial.voids, trial.exhausted, trial.next_void_is_last) == (times, False, False)
    voided = [event for event in events_of(folder) if event.kind == Kind.EPISODE_VOIDED]
    assert [event.body["reason"] for event in voided] == ["run_left"] * (MAX_VOIDS + 2)
    assert {event.who for event in voided} == {"lea" if ask.kind == "end_run" else "run"}


def test_other_voids_count_as_before_and_the_last_says_that_the_trial_is_skipped(folder: Path) -> None:
    clock = ManualClock(SECOND)
    left_while_armed(folder, clock, Message("run", "shutdown", sender="@host"))
    said = []
    with run(folder, clock) as bench:
        reason = bench.campaign.opened["void_reasons"][0]
        for _ in range(MAX_VOIDS):
            bench.stage()
            bench.commit()
            said.append((bench.shown()["last_void"], AskVoid(published(bench.shown())).title_text))
            assert bench.command("void", reason=reason)["ok"]
            said.append(next(line for line in bench.lines[::-1] if "voided" in line).partition("; ")[2])
        assert first(bench).exhausted and bench.shown()["exhausted"]
    assert said == [
        (False, "Void this episode: it is run again with the same arm"),
        "stage it again",
        (True, "Void this episode: the protocol allows no further attempt, its trial is skipped"),
        "that was the last void the protocol allows: skip it",
    ]


def test_a_killed_run_is_still_a_lost_process_and_counts(folder: Path) -> None:
    with run(folder, ManualClock(SECOND)) as bench:
        bench.stage()
        bench.commit()
        (void,) = reconcile(bench.events(), rule="void", last_sample_ns={})
    assert void.body["reason"] == "process_lost" and "stage its scene anew" in void.text


def test_status_says_of_a_run_that_was_killed_that_nobody_runs_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said of a trial that it is running, and no more."""
    with run(folder, ManualClock(100 * SECOND)) as bench:
        bench.stage()
        bench.start()
    lab = ["--lab", str(folder.parents[1])]
    gone = "its run has ended without a word, and none goes on; start it again with: labctl run trial-run"
    for contact, says in ((None, False), ({"pid": 2**22 + 1, "began": "1"}, True), ({"pid": os.getpid()}, False)):
        if contact is not None:
            (folder / CONTACT).write_text(json.dumps(contact))
        assert call(["status", folder.name, *lab]) == 0
        said = capsys.readouterr().out
        assert ": running\n" in said and (gone in said.splitlines()) is says


def made(lab: Path, **rules: Any) -> Path:
    return make_campaign(
        lab, ARMS, **{"items": 2, "blocks": 2, "process_lost": "score", "max_voids": 3, **rules}
    ).folder


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Campaign.open(made(tmp_path), writer=True) as campaign:
        bench = Bench(campaign)
        bench.begin_session(bob=["operator"])
        yield bench


@pytest.fixture
def scored(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A journal from before such an episode was void: it was scored."""
    monkeypatch.setattr("labctl.runtime.episode_sequencer.voided_by_rule", lambda ended, opened, *, went: False)
    bench.stage()
    episode = bench.start()
    by_an_end(bench)
    bench.seal(episode)
    assert bench.command("score", **REST)["ok"]
    return bench


def by_an_end(bench: Bench) -> None:
    assert bench.command("end", reason="operator")["ok"]


def by_futility(bench: Bench) -> None:
    assert bench.command("end", reason="futility")["ok"]


def by_the_stop_key(bench: Bench) -> None:
    assert bench.command("stop")["ok"]
    assert bench.command("acknowledge", code="operator_stop", cause="mistaken_key", why="a sleeve")["ok"]


def by_the_robot(bench: Bench) -> None:
    bench.mode, bench.reason = "safety_stop", "joint reflex"
    body = {"kind": "safety_stop", "t_ns": bench.now_ns, "body": {"reason": "joint reflex"}}
    bench.hear(Message("run", "event", body, sender="arm"))
    bench.mode, bench.reason = "idle", ""
    assert bench.command("acknowledge", code="safety_stop", why="it was caught", contact=False)["ok"]


def by_its_controller(bench: Bench) -> None:
    bench.hear(Message("run", "done", {"episode": bench.shown()["episode"]}, sender="controller"))


def by_the_end_of_the_run(bench: Bench) -> None:
    bench.hear(EndRun("ann", now=True).to("run", sender="cli"))


ENDS: dict[str, Callable[[Bench], None]] = {
    "operator": by_an_end,
    "futility": by_futility,
    "stop key": by_the_stop_key,
    "safety_stop": by_the_robot,
    "controller_done": by_its_controller,
    "run_left": by_the_end_of_the_run,
}


def ended(bench: Bench, end: Callable[[Bench], None]) -> str:
    bench.stage()
    episode = bench.start()
    end(bench)
    bench.seal(episode)
    return episode


@pytest.mark.parametrize("how", ENDS)
def test_it_is_void_for_what_ended_it_and_its_trial_is_planned_again(bench: Bench, how: str) -> None:
    """It waited for a score: a stop was a failed operation of its arm after 0 s, F an end for lack of progress."""
    episode = ended(bench, ENDS[how])
    (void,) = bench.events(Kind.EPISODE_VOIDED)
    reason = "safety_stop" if how == "stop key" else how
    assert (void.episode, void.body["reason"], void.body["after_go"]) == (episode, reason, False)
    assert bench.events(Kind.RECORDING_SEALED)[0].seq < void.seq, "what was recorded is kept"
    assert bench.state() == "planned" and not bench.command("score", **REST)["ok"]
    assert any("voided since it had not begun" in line for line in bench.lines)
    assert first(bench).left == (how == "run_left"), "leaving a run costs no trial one of its voids"


def test_after_go_each_of_them_is_scored_as_before(bench: Bench) -> None:
    for number, how in enumerate(("operator", "stop key", "futility"), 1):
        bench.stage()
        episode = bench.start()
        bench.go(episode)
        bench.wait(SECOND)
        ENDS[how](bench)
        bench.seal(episode)
        assert bench.command("score", **{**REST, "moved": 1, "remaining": 1})["ok"]
        assert len(bench.events(Kind.OUTCOME_RECORDED)) == number and not bench.events(Kind.EPISODE_VOIDED)


@pytest.mark.parametrize("how", [how for how in ENDS if how != "run_left"])
def test_two_of_them_in_a_row_are_a_hold_and_cost_the_trial_nothing_once_a_person_looked(
    bench: Bench, how: str
) -> None:
    for _ in range(2):
        assert "voids_alike" not in fold(bench.events()).holds
        ended(bench, ENDS[how])
    text = fold(bench.events()).holds["voids_alike"]
    assert f"void for the same reason, {bench.events(Kind.EPISODE_VOIDED)[0].body['reason']}: " in text
    assert not bench.command("stage", role="setter")["ok"]
    assert bench.command("acknowledge", code="voids_alike")["ok"]
    assert (first(bench).voids, first(bench).left) == (2, 2)
    bench.stage()


def test_ends_before_go_that_differ_are_counted_by_the_protocols_limit(bench: Bench) -> None:
    for how in ("operator", "futility", "operator"):
        ended(bench, ENDS[how])
    assert first(bench).exhausted and not bench.command("stage", role="setter")["ok"]
    assert bench.command("skip", reason="enough")["ok"]


def test_the_hold_has_words_for_every_end_before_go() -> None:
    never = {EndReason.ALL_DONE, EndReason.BUDGET, EndReason.SHUTDOWN}  # all after go, or the run is left
    assert {void_reason(reason) for reason in EndReason if reason not in never} <= BECAUSE.keys()


def test_no_item_is_counted_before_go(bench: Bench) -> None:
    bench.stage()
    bench.start()
    assert "before go" in bench.command("count", by=1)["error"]
    by_an_end(bench)
    assert "before go" in bench.command("count", by=1)["error"] and not bench.events(Kind.ITEM_COUNTED)


def test_of_an_episode_without_go_that_was_scored_once_nothing_is_moved_or_lost(scored: Bench) -> None:
    """A count of 2 of 2 moved was taken, beside a row of the table that was censored after 0 s."""
    trial = scored.events(Kind.OUTCOME_RECORDED)[0].trial
    for wrong in ({"moved": 2, "remaining": 0}, {"lost": 1, "remaining": 1}):
        error = scored.command("correct", role="assessor", trial=trial, why="x", **{**REST, **wrong})["error"]
        assert "ended before go" in error and "\n" not in error
    assert scored.command("correct", role="assessor", trial=trial, why="x", notes="no go", **REST)["ok"]
    scored.campaign.close()
    with pytest.raises(InputError, match="ended before go"):
        correct(scored.campaign.folder, trial, {**REST, "moved": 2, "remaining": 0}, who="ann", why="x")


def test_a_void_of_it_asks_for_no_second_person_at_any_console(bench: Bench) -> None:
    """While its recording is sealed the form asked for one, which the run does not need."""
    bench.stage()
    bench.start()
    by_the_stop_key(bench)
    shown = bench.shown()
    assert (shown["trial_state"], shown["evidence"], shown["needs_second"]) == ("scoring", None, False)
    state = published(shown)
    assert not AskVoid(state).words
    assert not offers("confirm", state, "bob", read_only=False, may_undo=False)
    assert bench.command("void", reason=bench.campaign.opened["void_reasons"][0])["ok"]


def test_a_void_after_go_that_nothing_stands_behind_asks_for_one(bench: Bench) -> None:
    bench.stage()
    bench.go(bench.start())
    bench.wait(SECOND)
    by_the_stop_key(bench)
    state = published(bench.shown())
    assert state["needs_second"] and AskVoid(state).words
    assert offers("confirm", state, "bob", read_only=False, may_undo=False)
