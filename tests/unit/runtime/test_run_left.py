"""Leaving a run costs no trial one of its voids, and what is said of a void is so."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.cli import call
from labctl.clock import SECOND, ManualClock
from labctl.core.events import Kind
from labctl.core.published_state import published
from labctl.core.recovery import reconcile
from labctl.core.trial import State, Trial, fold
from labctl.messages.processes import EndRun
from labctl.store.campaign import Campaign
from labctl.store.locks import CONTACT
from labctl.ui.console.stops_and_voids import AskVoid

MAX_VOIDS = 2


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
