"""A person voids an episode whose recording is not sealed yet: it is sealed all the same, and the next trial waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.rollout import CLOSE_PATIENCE_NS
from labctl.core.trial import State, fold
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings


def benched(lab: Path, max_voids: int) -> Iterator[Bench]:
    """process_lost = "score": a lost process voids nothing by itself."""
    arms, rules = [HUMAN, policy("zebra")], {"process_lost": "score", "max_voids": max_voids}
    with Campaign.open(make_campaign(lab, arms, faults=True, **rules).folder, writer=True) as campaign:
        yield Bench(campaign)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield from benched(tmp_path, 3)


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Bench]:
    """A trial that is void is not run again."""
    yield from benched(tmp_path, 1)


def voided(bench: Bench, before: Callable[[Bench, str], None] = lambda bench, episode: None) -> str:
    """An episode that ended with its recorder, and that a person voids after what `before` does. Its id."""
    episode = bench.running()
    recorder_is_killed(bench)
    before(bench, episode)
    (end,) = bench.events(Kind.EPISODE_ENDED)
    assert bench.command("void", reason="recorder_lost", evidence=end.seq)["ok"]
    return episode


def recorder_is_killed(bench: Bench) -> None:
    bench.hear(Message("run", "exited", {"name": "recorder", "reason": "ended by signal 9"}))
    bench.hear(Message("run", "hello", sender="recorder"))


def delivered(bench: Bench, episode: str) -> None:
    body = {"episode": episode, "streams": {}, "private": [], "gaps": []}
    bench.hear(Message("run", "closed", body, sender="recorder"))


def looked_at(bench: Bench, episode: str) -> None:
    bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))


def sealed(bench: Bench) -> list[str]:
    return [event.episode for event in bench.events(Kind.RECORDING_SEALED)]


def asked_of_recorder(bench: Bench) -> list[str]:
    return [message.kind for message in bench.sent if message.to == "recorder"]


@pytest.mark.parametrize("when", ["before it is delivered", "while its videos are looked at"])
def test_the_recording_is_sealed_after_the_void_and_nothing_begins_before(bench: Bench, when: str) -> None:
    """At either step of the closing; what holds the next trial says which recording, and goes away by itself."""
    late = when == "while its videos are looked at"
    episode = voided(bench, delivered if late else lambda bench, episode: None)
    assert sealed(bench) == []
    held = bench.command("stage", role="setter")
    assert not held["ok"] and f"the recording of episode {episode}, which is void, is being sealed" in held["error"]
    (shown,) = [hold for hold in bench.shown()["holds"] if hold["code"] == "sealing"]
    assert shown["awaited"] and not shown["needs_person"]
    if not late:
        delivered(bench, episode)
    looked_at(bench, episode)
    assert sealed(bench) == [episode]
    after = [event.kind for event in bench.events() if event.seq > bench.events(Kind.EPISODE_VOIDED)[0].seq]
    assert after == [Kind.GAP, Kind.RECORDING_SEALED], "nothing is left out of what is found missing"
    assert len(bench.events(Kind.EPISODE_VOIDED)) == 1, "the protocol's rule does not void it again"
    assert bench.command("stage", role="setter")["ok"]


def test_a_recorder_that_is_killed_after_the_void_is_asked_again(bench: Bench) -> None:
    episode = voided(bench)
    bench.sent.clear()
    recorder_is_killed(bench)
    assert [message.body for message in bench.sent if message.kind == "spawn"] == [{"name": "recorder"}]
    assert asked_of_recorder(bench) == ["open"], "the same episode"
    assert not [message for message in bench.sent if message.kind == "resend"], "what came before that would be lost"
    bench.hear(Message("run", "opened", {"episode": episode}, sender="recorder"))
    assert asked_of_recorder(bench) == ["open", "close"], "and at once its end"
    assert {message.to for message in bench.sent if message.kind == "resend"} == {"arm", "controller"}
    delivered(bench, episode)
    looked_at(bench, episode)
    assert sealed(bench) == [episode]


@pytest.mark.parametrize("first", ["void", "fault"])
def test_a_recorder_that_never_delivers_keeps_nobody_longer_than_before(bench: Bench, first: str) -> None:
    """The cell is faulted, a person acknowledges that, and the next trial is staged; the next start seals what is
    there. In either order of the void and the fault.
    """

    def wait_for_the_fault(bench: Bench, episode: str = "") -> None:
        bench.wait(CLOSE_PATIENCE_NS + SECOND)
        assert "the recorder did not deliver" in (fold(bench.events()).faulted or "")

    voided(bench, wait_for_the_fault if first == "fault" else lambda bench, episode: None)
    if first == "void":
        wait_for_the_fault(bench)
    assert bench.command("acknowledge", code="cell_faulted")["ok"]
    assert bench.command("stage", role="setter")["ok"]
    assert sealed(bench) == [] and "controller" in str([m.body for m in bench.sent if m.kind == "kill"])


def test_a_run_whose_last_trial_is_void_ends_once_its_recording_is_sealed(strict: Bench) -> None:
    """The trial is skipped and the session closed while the recorder is still at it."""
    episode = voided(strict)
    assert strict.command("skip", reason="enough")["ok"]
    (other,) = [t.id for t in fold(strict.events()).trials.values() if t.state == State.PLANNED]
    strict.node._writer.log(Kind.TRIAL_SKIPPED, {"reason": "enough"}, trial=other)
    assert strict.command("session_close", handover="done")["ok"]
    assert not strict.node.finished
    delivered(strict, episode)
    looked_at(strict, episode)
    assert sealed(strict) == [episode] and strict.node.finished


def test_what_a_controller_says_after_the_void_is_sealed_nowhere(bench: Bench) -> None:
    """A value that is sealed for an episode that is over is what verify takes for added."""
    episode = voided(bench)
    before = bench.campaign.ledger.open_all()["openings"]
    bench.hear(Message("run", "exited", {"name": "controller", "reason": "no answer from sim://zebra"}))
    assert bench.campaign.ledger.open_all()["openings"] == before
    delivered(bench, episode)
    looked_at(bench, episode)
    assert sealed(bench) == [episode]


def test_a_voided_episode_that_is_being_sealed_shows_nothing_of_itself_as_the_trial_at_hand(bench: Bench) -> None:
    voided(bench)
    shown = bench.shown()
    assert not shown["operator_ready"] and not shown["withheld"] and not shown["touching"]


@pytest.mark.parametrize("lost", ["arm", "controller", "nobody goes"])
def test_a_loss_before_go_is_void_though_the_protocol_scores_lost_processes(bench: Bench, lost: str) -> None:
    """It waited for a score, and once it had one it was a failure of the arm after 0 s; a run that was started again
    voided it.
    """
    bench.begin()
    episode = bench.start()
    if lost == "nobody goes":
        bench.wait(3 * SECOND)
    else:
        bench.hear(Message("run", "exited", {"name": lost, "reason": "ended by signal 9"}))
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    delivered(bench, episode)
    looked_at(bench, episode)
    (void,) = bench.events(Kind.EPISODE_VOIDED)
    assert (void.body["reason"], void.body["after_go"]) == (ended.body["reason"], False)
    assert bench.state() == "planned"
