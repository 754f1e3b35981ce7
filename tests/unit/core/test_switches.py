"""Switches of the instruction: what a protocol may script, when each is sent, and that only a taken one is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.handwritten_journal import TO_ARMED, Book
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.config.protocol_schema import parse_protocol
from labctl.core import timeline
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import fold
from labctl.errors import InputError, StateError
from labctl.store.campaign import Campaign
from labctl.viewing.status import recorded

DEMO = files("labctl.protocols").joinpath("demo.toml").read_text("utf-8")  # an episode of it has 120 s
TWO = """
[[switch]]
name = "small ones"
at_s = 1.5
instruction = "Move the small items."
[[switch]]
name = "back"
at_s = 2.5
instruction = "Move the items."
"""


def switch(name: str = "s", at_s: object = 10.0, instruction: str = "Now the red ones.", more: str = "") -> str:
    return f'[[switch]]\nname = "{name}"\nat_s = {at_s}\ninstruction = "{instruction}"\n{more}'


@pytest.mark.parametrize(
    ("tables", "at", "says"),
    [
        (switch(at_s=120.0), "at_s = 120.0", "is over after 120 s; allowed: more than 0 and less than 120"),
        (switch(at_s=0), "at_s = 0\n", "is 0; it must be greater than 0"),
        (switch(at_s='"12"'), 'at_s = "12"', "is '12'; it must be a number"),
        (switch() + switch("t", 10.0, "Now the blue ones."), "at_s = 10.0", "not after the switch before it (10 s)"),
        (switch() + switch("t", 9.0, "Now the blue ones."), "at_s = 9.0", "list switches in order"),
        (switch() + switch("s", 20.0, "Now the blue ones."), 'name = "s"', "'s' appears twice in 'switch'"),
        (switch() + switch("t", 20.0), "instruction = ", "this instruction stands already"),
        (switch(instruction=""), 'instruction = ""', "it is empty; write something"),
        (switch(more='target = "right"\n'), "target", "unknown key 'target'"),
        (switch(more='ignored = "went on"\n'), "ignored = ", "unknown tag 'went on'"),
        ('[[switch]]\nname = "s"\nat_s = 3.0\n', "[[switch]]", "needs the key 'instruction'"),
    ],
)
def test_a_switch_that_cannot_be_is_one_line_at_its_place(tables: str, at: str, says: str):
    text = DEMO + "\n" + tables
    with pytest.raises(InputError) as caught:
        parse_protocol(text, "p.toml")
    line = text[: text.rindex(at)].count("\n") + 1
    message = str(caught.value)
    assert message.startswith(f"p.toml:{line}: ") and says in message and "\n" not in message, message


def test_a_protocol_without_switches_says_nothing_of_them(tmp_path: Path):
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra")]).folder
    with Campaign.open(folder) as campaign:
        assert "switches" not in campaign.opened and parse_protocol(DEMO, "p").switch == ()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    with Campaign.open(make_campaign(tmp_path, arms, items=2, link=TWO).folder, writer=True) as campaign:
        yield Bench(campaign)


def sent(bench: Bench) -> list[dict[str, Any]]:
    return [dict(message.body) for message in bench.sent if message.kind == "switch"]


def takes(bench: Bench, episode: str, number: int, t_ns: int | None = None) -> None:
    body = {"episode": episode, "number": number, "t_ns": bench.now_ns if t_ns is None else t_ns}
    bench.hear(Message("run", "switched", body, sender="controller"))


def gone(bench: Bench) -> tuple[str, int]:
    episode = bench.running()
    return episode, bench.now_ns


def test_a_switch_is_sent_once_when_it_is_due_and_told_once_it_was_taken(bench: Bench):
    episode, go_ns = gone(bench)
    due = bench.node.step(bench.now_ns, []).due_ns
    assert due is not None and due <= go_ns + 1500 * MILLISECOND
    bench.wait(1400 * MILLISECOND)
    assert sent(bench) == []
    bench.wait(300 * MILLISECOND)
    assert sent(bench) == [{"episode": episode, "number": 0, "instruction": "Move the small items."}]
    assert {message.to for message in bench.sent if message.kind == "switch"} == {"controller"}
    assert bench.events(Kind.INSTRUCTION_SWITCHED) == [], "sent is not taken"
    took_ns = bench.now_ns
    takes(bench, episode, 0)
    takes(bench, episode, 0)
    (event,) = bench.events(Kind.INSTRUCTION_SWITCHED)
    planned = {"name": "small ones", "instruction": "Move the small items.", "planned_ns": go_ns + 1500 * MILLISECOND}
    assert (event.episode, event.body) == (episode, {"number": 0, "t_ns": took_ns, **planned})
    bench.wait(SECOND)
    assert [body["number"] for body in sent(bench)] == [0, 1]
    shown = bench.shown()["instructions"]
    assert [(entry["at_s"], entry["taken_ns"]) for entry in shown] == [(0.0, go_ns), (1.5, took_ns), (2.5, None)]


def test_a_long_step_sends_every_switch_that_became_due_in_order(bench: Bench):
    gone(bench)
    bench.clock.sleep_until(bench.now_ns + 3 * SECOND)
    bench.hear(Message("run", "beats", {"names": ["arm", "recorder", "controller"]}))
    assert [body["number"] for body in sent(bench)] == [0, 1]


def test_a_switch_that_nobody_was_sent_or_of_another_episode_is_not_told(bench: Bench):
    episode, _ = gone(bench)
    takes(bench, episode, 0)
    bench.wait(1700 * MILLISECOND)
    takes(bench, "e-other", 0)
    assert bench.events(Kind.INSTRUCTION_SWITCHED) == []


@pytest.mark.parametrize("how", ["operator", "controller"])
def test_after_the_end_no_switch_is_sent_and_none_counts_as_taken(bench: Bench, how: str):
    episode, _ = gone(bench)
    bench.wait(1700 * MILLISECOND)
    if how == "operator":
        assert bench.command("end")["ok"]
    else:
        failed = {"name": "controller", "episode": episode, "private": "it died"}
        bench.hear(Message("run", "failed", failed, sender="controller"))
    takes(bench, episode, 0)
    bench.wait(2 * SECOND)
    assert [body["number"] for body in sent(bench)] == [0]
    assert bench.events(Kind.INSTRUCTION_SWITCHED) == []


def test_a_switch_makes_no_command_stale(bench: Bench):
    episode, _ = gone(bench)
    version = bench.shown()["version"]
    bench.wait(1700 * MILLISECOND)
    takes(bench, episode, 0)
    assert bench.shown()["version"] == version
    assert bench.command("end", version=version)["ok"]


BODY = {"number": 0, "name": "s", "instruction": "Now the red ones.", "planned_ns": 110, "t_ns": 120}
RUNNING = (*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO)


@pytest.mark.parametrize(
    ("before", "body", "episode"),
    [
        (RUNNING[:-1], BODY, "e-1"),
        (RUNNING, BODY, "e-2"),
        (RUNNING, {**BODY, "t_ns": 99}, "e-1"),
        (RUNNING, {**BODY, "number": None}, "e-1"),
        ((*RUNNING, Kind.EPISODE_ENDED), BODY, "e-1"),
    ],
    ids=["before go", "another episode", "taken before go", "no number", "after the end"],
)
def test_a_journal_with_an_impossible_switch_is_refused(before: tuple[Kind, ...], body: dict[str, Any], episode: str):
    with pytest.raises(StateError, match="the instruction cannot be switched"):
        Book(*before).add(Kind.INSTRUCTION_SWITCHED, "t-0", episode, **body)


def test_a_journal_may_tell_each_switch_once_and_of_the_next_attempt_again():
    book = Book(*RUNNING)
    book.add(Kind.INSTRUCTION_SWITCHED, "t-0", "e-1", **BODY)
    with pytest.raises(StateError, match="number 1 or a later one"):
        book.add(Kind.INSTRUCTION_SWITCHED, "t-0", "e-1", **BODY)
    assert fold(book.events).trials["t-0"].switches == 1
    book.on(Kind.EPISODE_ENDED)
    book.on(Kind.EPISODE_VOIDED, after_go=True)
    for kind in RUNNING[1:]:
        book.on(kind)
    book.add(Kind.INSTRUCTION_SWITCHED, "t-0", "e-2", **BODY)
    episodes = record_of(book.events).episodes.values()
    assert [len(episode.switches) for episode in episodes] == [1, 1]


def test_switches_are_found_by_episode_and_stand_in_lanes_lines_and_lists():
    book = Book(*RUNNING)
    book.add(Kind.INSTRUCTION_SWITCHED, "t-0", "e-1", **BODY)
    book.on(Kind.EPISODE_ENDED)
    record = record_of(book.events)
    episode = record.episodes["e-1"]
    taken = {"number": 0, "name": "s", "instruction": "Now the red ones.", "planned_ns": 110, "t_ns": 120}
    assert episode.switches == (taken,)
    told: list[Event] = timeline.attempt(book.events, "e-1")
    assert [(m.t_ns, m.label) for m in timeline.instruction_timeline(episode)] == [
        (120, "switch s: Now the red ones."),
        (200, ""),
    ]
    assert (120, "INFO", "switch s: Now the red ones.") in timeline.event_lines(told)
    assert timeline.instruction_timeline(replace(episode, switches=())) == []
    assert "switched" not in recorded(record)[0]
    record.state.opened["switches"] = [{"name": "s", "at_s": 1.0, "instruction": "Now the red ones."}]
    assert recorded(record)[0]["switched"] == 1
