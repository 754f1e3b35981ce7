"""What `labctl doctor` says of a teleoperation device that it opened, by how the device goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.robots.cells import cell_named

from labctl.checks import probing
from labctl.clock import SECOND, ManualClock
from labctl.config.cell_schema import Setup
from labctl.nodes import asking
from labctl.runtime.hosting.cell_nodes import stand_in


def felt(
    monkeypatch: pytest.MonkeyPatch, says_after_s: float, waits: str = "no input", then: str = "hold the clutch"
) -> tuple[probing.Felt, float]:
    """What is told of a device whose next word comes so late, and when it is told, s."""
    clock = ManualClock(0)

    def hand(q: object) -> dict[str, object]:
        fresh = clock.now_ns() >= says_after_s * SECOND
        return {"fresh": fresh, "waits": then if fresh else waits, "engaged": False}

    person = SimpleNamespace(load=lambda: None, hand=hand, close=lambda: None)
    monkeypatch.setattr(probing, "MonotonicClock", lambda: clock)
    monkeypatch.setattr(probing, "load", lambda *given, **more: person)
    return probing.feel(Setup(cell=cell_named("sim_fr3"), fixture=stand_in())), clock.now_ns() / SECOND


def test_one_that_says_something_is_read_for_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    assert felt(monkeypatch, 0.1) == ({"waits": "hold the clutch", "engaged": False}, 0.5)


def test_one_that_is_heard_late_on_a_busy_computer_is_not_told_to_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was judged by one look, half a second after it was opened, at what it had said in the moment before."""
    assert felt(monkeypatch, 1.2)[0] == {"waits": "hold the clutch", "engaged": False}


def test_one_that_says_nothing_more_is_told_to_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    found, after_s = felt(monkeypatch, 60.0)
    assert "said nothing more" in found["problem"] and after_s < 2.1


def test_of_one_that_is_gone_the_drivers_words_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, after_s = felt(monkeypatch, 60.0, "gello is gone: its serial line broke")
    assert (found["problem"], after_s) == ("gello is gone: its serial line broke", 0.5)


def test_a_leader_of_another_robot_fails_with_what_to_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    other = "the leader has another number of joints (6) than the robot (7)"
    found, _ = felt(monkeypatch, 0.1, then=other)
    assert found == {"problem": other, "remedy": "correct [teleop.options] of the cell file"}
    shown = {"device": "gello", "waits": other, "engaged": True, "fresh": True}
    person: Any = SimpleNamespace(hand=lambda q: shown)
    clock = ManualClock(0)
    assert asking._by_hand(person, 7, clock) == {"problem": other}, "and so does the question before an episode"
    shown["waits"] = "hold the clutch"
    assert asking._by_hand(person, 7, clock) == {}
