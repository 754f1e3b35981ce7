"""A run that somebody ends from another shell: whatever moves or has moved is finished and scored first, nothing new
begins, and the journal has who it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.core.rollout import CLOSE_PATIENCE_NS
from labctl.core.trial import State, fold
from labctl.errors import Held, StorageError
from labctl.messages.processes import EndRun
from labctl.runtime import campaign_run
from labctl.runtime.hosting.store_copy import StoreCopy
from labctl.runtime.runner import SEALING_NS
from labctl.store.campaign import Campaign

OUTCOME = {"items_staged": 1, "moved": 1, "lost": 0, "remaining": 0}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=1).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def ask(bench: Bench, *, now: bool = False) -> str:
    """End the run as `labctl stop` does; what it answers."""
    out = bench.hear(EndRun("lea", "stop-1", now).to("run", sender="stop"))
    (reply,) = [message for message in out if message.kind == "reply"]
    assert (reply.to, reply.body["id"], reply.body["ok"]) == ("stop", "stop-1", True)
    return reply.body["note"]


def running(bench: Bench) -> str:
    bench.begin_session(bob=["setter"])
    bench.stage()
    episode = bench.start()
    bench.go(episode)
    return episode


def left(bench: Bench) -> tuple[str, str]:
    """Who ended the run, by its last entry, and why."""
    assert bench.node.leave() is False, "it was asked to"
    last = bench.events()[-1]
    assert last.kind == Kind.RUN_STOPPED
    return last.who, last.body["reason"]


def test_a_run_that_cannot_be_prepared_ends_what_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def breaks(*given: object, **named: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(campaign_run, "_prepare", breaks)
    monkeypatch.setattr(campaign_run.Alerts, "close", lambda alerts: said.append("alerts"))
    monkeypatch.setattr(StoreCopy, "close", lambda copied: said.append("copies") or "")
    with pytest.raises(StorageError, match="the disk is full"):
        campaign_run.run_campaign(make_campaign(tmp_path).folder, said.append, manual=False)
    assert said == ["alerts", "copies"]


def test_before_a_trial_a_run_ends_at_once_and_the_journal_has_who_ended_it(bench):
    bench.begin_session()
    assert "at once" in ask(bench) and bench.node.finished
    assert left(bench) == ("lea", "asked")


def test_a_trial_that_is_staged_is_planned_again_and_its_robot_stops(bench):
    bench.begin_session()
    assert bench.command("stage", role="setter")["ok"]
    bench.sent.clear()
    ask(bench)
    assert bench.node.finished and bench.state() == State.PLANNED
    assert [(m.kind, m.to) for m in bench.sent if m.kind in ("lease", "stop")] == [("lease", "@lease"), ("stop", "arm")]


def test_an_armed_trial_has_not_begun_and_is_planned_again(bench):
    bench.begin()
    bench.commit()
    ask(bench)
    assert bench.node.finished and bench.state() == State.PLANNED
    assert not bench.events(Kind.EPISODE_STARTED)


def test_a_trial_that_runs_is_finished_and_scored_first(bench):
    episode = running(bench)
    note = ask(bench)
    assert "running" in note and "after its score" in note
    bench.wait(SECOND)
    assert not bench.node.finished and not bench.events(Kind.EPISODE_ENDED)
    assert "lea ends this run after this trial" in [hold["text"] for hold in bench.shown()["holds"]]
    assert bench.command("end")["ok"]
    bench.seal(episode)
    bench.wait(SECOND)
    assert not bench.node.finished, "it waits for the score"
    assert bench.command("score", role="assessor", **OUTCOME)["ok"]
    assert bench.node.finished and left(bench) == ("lea", "asked")
    assert not [m for m in bench.sent[-20:] if m.kind == "stage"]


def test_a_void_instead_of_the_score_ends_it_too(bench):
    episode = running(bench)
    ask(bench)
    assert bench.command("end")["ok"]
    bench.seal(episode)
    reason = bench.campaign.opened["void_reasons"][0]
    assert bench.command("void", reason=reason, confirmed_by="bob")["ok"]
    assert bench.node.finished and bench.state() == State.PLANNED


def test_at_once_the_motion_ends_and_what_was_recorded_is_sealed_and_scored_another_time(bench):
    episode = running(bench)
    bench.sent.clear()
    assert "at once" in ask(bench, now=True)
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "shutdown"
    assert ("stop", "arm") in [(message.kind, message.to) for message in bench.sent]
    assert not bench.node.finished, "its recording is not sealed yet"
    bench.seal(episode)
    assert bench.node.finished and bench.state() == State.SCORING and left(bench) == ("lea", "asked")


def test_whoever_waits_for_the_score_may_still_have_it_end_at_once(bench):
    running(bench)
    ask(bench)
    assert not bench.events(Kind.EPISODE_ENDED)
    assert "at once" in ask(bench, now=True)
    assert [event.body["reason"] for event in bench.events(Kind.EPISODE_ENDED)] == ["shutdown"]


def test_a_recorder_that_never_delivers_keeps_no_run_from_its_end(bench):
    running(bench)
    ask(bench, now=True)
    bench.wait(SEALING_NS - 100 * MILLISECOND)
    assert not bench.node.finished
    bench.wait(SECOND)
    assert bench.node.finished


def test_a_request_that_does_not_say_who_asks_is_refused(bench):
    step = bench.node.step(bench.now_ns, [Message("run", "end_run", {"now": True}, sender="x")])
    assert [line for line in step.refused if "who is missing" in line]
    assert not bench.node.finished


def never_delivered(bench: Bench) -> None:
    running(bench)
    bench.command("end", reason="operator")
    bench.wait(CLOSE_PATIENCE_NS + SECOND)
    assert "the recorder did not deliver" in (fold(bench.events()).faulted or "")


def test_a_trial_that_only_the_next_run_can_seal_is_not_waited_for(bench: Bench) -> None:
    """It cannot be scored in this run: `labctl stop`, which the screen asks for, waited for a score that never came."""
    never_delivered(bench)
    assert "at once" in ask(bench)
    bench.wait(SEALING_NS)
    assert bench.node.finished and left(bench) == ("lea", "asked")


def test_a_run_that_nobody_attends_ends_where_only_the_next_one_can_seal(tmp_path: Path) -> None:
    """A recorder that was killed left it "sealing" for ever, with a robot that nobody looked at."""
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=1).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign, attended=False)
        never_delivered(bench)
        bench.wait(SEALING_NS)
        assert bench.node.finished
        with pytest.raises(Held, match=r"the recorder did not deliver; end this run.*go on with: labctl run trial-run"):
            bench.node.leave()
        assert bench.events()[-1].body["reason"] == "held"
