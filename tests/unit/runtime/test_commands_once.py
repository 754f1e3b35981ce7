"""A command that is sent again, as a client does after a timeout, is answered as the first was and carried out once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.runs.scene_bench import scene_benches

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.timeline import event_lines
from labctl.errors import StorageError
from labctl.messages.processes import EndRun
from labctl.store.campaign import Campaign
from labctl.viewing.status import recorded

ALREADY = "already carried out"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def twice(bench: Bench, verb: str, **args: object) -> tuple[dict, dict, int]:
    """Both answers to a command that is sent twice as it was, and how many entries the second wrote."""
    version = bench.shown()["version"]
    first = bench.command(verb, id_=f"id-{verb}", version=version, **args)
    written = len(bench.events())
    again = bench.command(verb, id_=f"id-{verb}", version=version, **args)
    return first, again, len(bench.events()) - written


def test_every_verb_of_a_trial_that_is_sent_again_is_answered_and_not_carried_out_again(bench: Bench) -> None:
    bench.begin_session()
    first, again, written = twice(bench, "stage", role="setter")
    assert first["ok"] and again["ok"] and again["note"] == ALREADY and not written
    trial = [message.body["trial"] for message in bench.sent if message.kind == "stage"]
    assert len(trial) == 1, "the robot is sent home once"
    bench.hear(Message("run", "staged", {"trial": trial[0]}, sender="arm"))
    first, again, written = twice(bench, "commit")
    assert first["ok"] and again["ok"] and again["note"] == ALREADY and not written
    (episode,) = [m.body["episode"] for m in bench.sent if m.to == "recorder" and m.kind == "open"]
    bench.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
    bench.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
    first, again, written = twice(bench, "start")
    assert first["ok"] and again["ok"] and again["note"] == ALREADY and not written
    bench.wait(4 * SECOND)
    bench.go(episode)
    first, again, written = twice(bench, "end")
    assert first["ok"] and again["ok"] and again["note"] == ALREADY and not written
    bench.seal(episode)
    first, again, written = twice(bench, "score", items_staged=2, moved=1, lost=0, remaining=1)
    assert first["ok"] and again["ok"] and again["note"] == ALREADY and not written
    assert len(bench.events(Kind.EPISODE_ENDED)) == len(bench.events(Kind.OUTCOME_RECORDED)) == 1


def test_what_was_refused_is_asked_anew(bench: Bench) -> None:
    bench.begin_session()
    assert not bench.command("commit", id_="c-early")["ok"]
    bench.stage()
    assert bench.command("commit", id_="c-early")["ok"]


def test_a_later_run_still_knows_what_an_earlier_one_journalled(bench: Bench) -> None:
    bench.begin()
    episode = bench.start()
    bench.go(episode)
    assert bench.command("end")["ok"]
    bench.seal(episode)
    outcome = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}
    version = bench.shown()["version"]
    assert bench.command("score", id_="s-1", version=version, **outcome)["ok"]
    bench.campaign.close()
    with Campaign.open(bench.campaign.folder, writer=True) as campaign:
        later = Bench(campaign, clock=bench.clock)
        again = later.command("score", id_="s-1", version=version, **outcome)
        assert again["ok"] and again["note"] == ALREADY and len(later.events(Kind.OUTCOME_RECORDED)) == 1


def test_an_id_of_another_order_is_no_repetition(bench: Bench) -> None:
    bench.begin_session()
    assert bench.command("note", id_="n", text="lamp replaced")["ok"]
    refused = bench.command("stage", role="setter", id_="n")
    assert refused["error"] == "id 'n' is that of another order, note; each order has an id of its own"
    assert bench.command("stage", role="setter")["ok"]


def test_a_stop_is_carried_out_whatever_its_id(bench: Bench) -> None:
    """Its hold and the end of its episode would be missing, where another order had the id before."""
    bench.running()
    assert bench.command("note", id_="n", text="lamp replaced")["ok"]
    for _ in range(2):
        bench.sent.clear()
        assert bench.command("stop", id_="n")["ok"]
        assert any(m.to == "arm" and m.kind == "stop" for m in bench.sent)
    assert [event.body["code"] for event in bench.events(Kind.HOLD_RAISED)] == ["operator_stop"]
    assert [event.body["reason"] for event in bench.events(Kind.EPISODE_ENDED)] == ["safety_stop"]


def test_commands_without_an_id_are_each_carried_out(tmp_path: Path) -> None:
    """One that came while a commit waited for its photos was taken for that commit, and never answered."""
    orders = (("commit", {}), ("note", {"text": "lamp replaced"}), ("note", {"text": "again"}))
    with scene_benches(tmp_path) as build:
        bench = build()
        bench.begin()
        bench.taking.clear()
        answers = []
        for verb, args in orders:
            body = {"verb": verb, "who": "ann", "role": "operator", "args": args}
            out = bench.hear(Message("run", "command", body, sender="console"))
            answers.append([message.body["ok"] for message in out if message.kind == "reply"])
        assert answers == [[], [True], [True]], "the commit waits for its photos"
        assert [event.body["text"] for event in bench.events(Kind.NOTE)] == ["lamp replaced", "again"]


def test_the_end_that_a_person_orders_names_them_and_another_names_nobody(bench: Bench) -> None:
    episode = bench.running()
    assert bench.command("end")["ok"]
    bench.seal(episode)
    (end,) = bench.events(Kind.EPISODE_ENDED)
    assert end.body["by"] == "ann"
    record = record_of(bench.events())
    assert record.episodes[episode].ended_by == "ann"
    assert recorded(record)[0]["ended_by"] == "ann"
    assert any(text == "ended: operator, by ann" for _, _, text in event_lines(record.episodes[episode].events))


def test_a_stop_reaches_the_robot_while_the_journal_can_be_neither_read_nor_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> bool:
        raise StorageError("disk I/O error")

    bench.begin_session()
    journal = bench.campaign.journal
    for name in ("carried_out", "append"):
        monkeypatch.setattr(journal, name, broken)
    bench.sent.clear()
    bench.command("stop", id_="id-stop")
    assert [message for message in bench.sent if message.to == "arm" and message.kind == "stop"]


def test_only_who_ends_a_run_at_once_has_ended_its_episode(bench: Bench) -> None:
    """A person had asked for the end after the score; the host's end came first."""
    episode = bench.running()
    bench.hear(EndRun("ann", "a", False).to("run", sender="console"))
    bench.hear(Message("run", "shutdown", sender="@host"))
    (ended,) = [event for event in bench.events() if event.kind == Kind.EPISODE_ENDED]
    assert ended.episode == episode and "by" not in ended.body
