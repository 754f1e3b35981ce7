"""Stages that a device sees: in the journal as they happen, in their order, taken back by a person; else proposed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.messages.body_parts import Detected
from labctl.messages.motion import DeviceReport
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings

SENSED = {
    'definition = "one towel lies in the target tote, out of the fingers"': 'definition = "a"\nsensed = "opened"',
    'definition = "both lie there"': 'definition = "b"\nsensed = "placed"',
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    opened = open_tasks(tmp_path, conditions=["stages"], protocol=SENSED)
    with Campaign.open(opened.folder, writer=True) as campaign:
        yield Bench(campaign)


def sensed(bench: Bench, what: str, *, before_s: float = 0) -> None:
    bench.hear(DeviceReport("sensed", bench.now_ns - round(before_s * SECOND), {"what": what}).to("run"))


def reached(bench: Bench) -> list[int]:
    return [event.body["reached"] for event in bench.events(Kind.STAGE_REACHED)]


def test_a_stage_that_a_device_sees_is_reached_then_and_only_after_those_before(bench):
    bench.running()
    bench.wait(2 * SECOND)
    sensed(bench, "placed")
    assert reached(bench) == [], "the box is not open yet"
    sensed(bench, "opened", before_s=0.5)
    at_ns = bench.events(Kind.STAGE_REACHED)[0].body["t_ns"]
    assert at_ns == bench.now_ns - SECOND // 2
    sensed(bench, "opened")
    sensed(bench, "placed")
    assert reached(bench) == [1, 2]
    sensed(bench, "placed")
    assert reached(bench) == [1, 2], "there is no third"


def test_a_person_takes_back_what_a_device_saw_and_the_device_may_see_it_again(bench):
    bench.running()
    bench.wait(SECOND)
    sensed(bench, "opened")
    assert bench.command("reach")["ok"] and bench.shown()["reached"] == 0
    sensed(bench, "opened")
    assert reached(bench) == [1, 0, 1]
    assert "stage 1 is reached already" in bench.command("reach", stage=1)["error"]


def test_what_was_seen_before_go_or_after_the_end_counts_for_nothing(bench):
    episode = bench.running()
    sensed(bench, "opened", before_s=1)
    bench.wait(31 * SECOND)
    sensed(bench, "opened")
    bench.seal(episode)
    sensed(bench, "opened")
    assert reached(bench) == []
    assert bench.shown()["measured"] == {"reached_s": [], "score": None}


def test_what_is_seen_when_the_budget_is_over_is_not_beyond_it(bench):
    """The device's word is of an episode that was over, the person's counts at its end: the console proposed a time
    that no score may have.
    """
    episode = bench.running()
    deadline_ns = bench.now_ns + bench.node._sequencer.rollout.budget_ns
    bench.wait(deadline_ns + 100 * MILLISECOND - bench.now_ns)
    sensed(bench, "opened")
    assert reached(bench) == []
    assert bench.command("reach", stage=1)["ok"] and bench.command("touch", phase="begin", kind="hand_in_scene")["ok"]
    assert bench.events(Kind.STAGE_REACHED)[0].body["t_ns"] == deadline_ns
    assert bench.events(Kind.INTERVENTION_BEGAN)[0].body["t_ns"] == deadline_ns
    bench.wait(SECOND)
    bench.seal(episode)
    (proposed,) = bench.shown()["measured"]["reached_s"]
    assert bench.command("score", role="assessor", reached_s=[proposed])["ok"]


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Bench]:
    changes = {old: new.replace("opened", "lifted") for old, new in SENSED.items()}
    opened = open_tasks(tmp_path, conditions=["stages"], protocol=changes)
    with Campaign.open(opened.folder, writer=True) as campaign:
        yield Bench(campaign)


def test_where_no_device_saw_a_stage_what_the_traces_tell_is_proposed(traced):
    episode = traced.running()
    go_ns = traced.now_ns
    traced.wait(31 * SECOND)
    hold: Detected = {
        "t_ns": go_ns + 9 * SECOND,
        "edge": "release",
        "zone": "left",
        "result": "success",
        "held_s": 5.0,
        "moved_m": 0.5,
        "grasped_ns": go_ns + 4 * SECOND,
        "lifted_ns": go_ns + 5 * SECOND,
    }
    traced.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
    traced.hear(Message("run", "digested", {"tag": episode, "result": Findings(detected=[hold])}, sender="@host"))
    assert reached(traced) == [], "a proposal is no event"
    assert traced.shown()["measured"] == {"reached_s": [5.0, 9.0], "score": None}
