"""The Franka Hand's driver on a hand as users tell of real ones: a move that an object stops does not return, a stop
may be answered late or never, and a hand may refuse whatever it is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.drivers.franka.options import FrankaHandOptions
from labctl.errors import DeviceRefused

WAIT_S = 60.0
ITEM_M = 0.05
STATE_NS = 20 * MILLISECOND
STEP_M = 0.002  # 0.1 m/s


class Hand:
    """franky.Gripper with an item between its fingers. In a command its time goes on, state by state, for whoever reads
    them: `bench.see`.
    """

    max_width, server_version = 0.08, 3

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.width, self.asked = 0.08, list[tuple[str, float]]()
        self.refuses, self.obeys, self.answers = False, True, threading.Event()
        self.answers.set()
        self.ended = threading.Event()

    def _go(self, wanted: float, most_states: int) -> None:
        if self.refuses:
            raise self._bench.refused("libfranka gripper: Command failed!")
        self.ended.clear()
        for _ in range(most_states):
            self.width = max(self.width + max(min(wanted - self.width, STEP_M), -STEP_M), ITEM_M)
            self._bench.see(self.width)
            if self._bench.stop_was_given() and self.obeys:
                assert self.ended.wait(WAIT_S)
                raise self._bench.refused("libfranka gripper: Command aborted!")
            if self.width == wanted:
                return

    def move(self, wanted: float, speed: float) -> bool:
        self.asked.append(("move", wanted))
        self._go(wanted, 10_000)
        return True

    def grasp(self, wanted: float, *_: float, **__: float) -> bool:
        self.asked.append(("grasp", wanted))
        self._go(wanted, 30)
        return True

    def stop(self) -> bool:
        self.asked.append(("stop", self.width))
        assert self.answers.wait(WAIT_S)
        self.ended.set()
        return True


class Bench:
    """A hand's driver whose threads are not started: what they do is called."""

    def __init__(self) -> None:
        franky = pytest.importorskip("franky")
        from labctl.drivers.franka.hand import build

        self.refused: type[Exception] = franky.CommandException
        self.clock = ManualClock(SECOND)
        self.hand = Hand(self)
        self.driver: Any = build(FrankaHandOptions(), host="127.0.0.1")
        self.driver._hand, self.driver._clock, self.driver._work.opening = self.hand, self.clock, 0.08
        self.at: dict[int, Callable[[], object]] = {}  # what befalls at which state
        self._states = 0

    def see(self, width: float) -> None:
        self._states += 1
        self.at.get(self._states, lambda: None)()
        self.clock.sleep_until(self.clock.now_ns() + STATE_NS)
        self.driver._see(width)

    def stop_was_given(self) -> bool:
        return self.driver._command is not None and self.driver._command.stopped

    def visit(self) -> None:
        """Once the last stop is answered: as often as the worker's thread does."""
        if (stop := self.driver._stop) is not None:
            stop.join(WAIT_S)
        self.driver._visit()
        self.clock.sleep_until(self.clock.now_ns() + STATE_NS)

    def asked(self) -> list[str]:
        return [f"{what} {1000 * where:.0f}" for what, where in self.hand.asked]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_fingers_that_close_by_steps_upon_an_item_are_stopped_there_and_the_item_is_grasped(bench: Bench) -> None:
    """The move never returned, and the item was held without the force that was set."""
    for wanted in (0.07, 0.06, 0.055, 0.045):
        bench.driver.target(wanted)
        bench.visit()
    assert bench.asked() == ["move 70", "move 60", "move 55", "move 45", "stop 50"]
    for wanted in (0.03, 0.015, 0.0):
        bench.driver.target(wanted)
        bench.visit()
    assert bench.asked()[5:] == ["grasp 30"], "and held: no further command lets go of it"
    assert bench.driver.status().mode == "idle"
    bench.driver.target(0.08)
    bench.visit()
    assert bench.asked()[6:] == ["move 80"]


def test_fingers_that_begin_late_are_not_taken_for_stopped(bench: Bench) -> None:
    bench.driver.target(0.02)
    command = _command(0.08, 0.02, bench.clock.now_ns())
    assert not command.stands_still(0.08, bench.clock.now_ns() + 900 * MILLISECOND)
    assert command.stands_still(0.08, bench.clock.now_ns() + 1000 * MILLISECOND)
    assert not command.stands_still(0.07, bench.clock.now_ns() + 1001 * MILLISECOND), "they move"
    assert not command.stands_still(0.0205, bench.clock.now_ns() + 9000 * MILLISECOND), "they are there"


def _command(seen: float, going: float, now_ns: int) -> Any:
    from labctl.drivers.franka.hand import _Command

    return _Command(going, seen, now_ns, watched=True)


@pytest.mark.parametrize("state", [20, 30])  # while the fingers stand there, and as that is seen
def test_who_opens_instead_while_the_item_stops_the_fingers_gets_no_grasp(bench: Bench, state: int) -> None:
    bench.driver.target(0.02)
    bench.at[state] = lambda: bench.driver.target(0.08)
    bench.visit()
    bench.visit()
    assert bench.asked() == ["move 20", "stop 50", "move 80"]


def test_a_stop_of_a_person_upon_an_item_is_followed_by_no_grasp_and_what_is_asked_for_again_is_done(
    bench: Bench,
) -> None:
    bench.driver.target(0.02)
    bench.at[5] = bench.driver.stop
    bench.visit()
    for _ in range(5):
        bench.visit()
    assert bench.asked() == ["move 20", "stop 70"]
    bench.driver.target(0.06)
    bench.visit()
    bench.driver.stop()
    bench.visit()
    bench.driver.target(0.06)
    bench.visit()
    assert bench.asked()[2:] == ["move 60", "move 60"]


def test_while_a_stop_is_not_answered_the_opening_is_read_and_after_some_seconds_it_is_a_fault(bench: Bench) -> None:
    """It was given by the thread that reads, and the opening of before stood as measured."""
    bench.hand.answers.clear()
    bench.hand.obeys = False
    bench.driver.target(0.02)
    seen = list[tuple[float, str]]()
    bench.at[5] = bench.driver.stop
    bench.at[12] = lambda: seen.append((bench.driver.opening(), bench.driver.status().mode))
    bench.at[300] = lambda: setattr(bench.hand, "obeys", bench.hand.answers.set() is None)
    bench.driver._visit()
    assert seen[0][0] < 0.06 and seen[0][1] == "moving"
    assert bench.driver.status().mode == "fault" and "has not taken a stop for 3 s" in bench.driver.status().reason
    assert bench.asked() == ["move 20", "stop 70"]
    bench.visit()
    bench.driver.recover()
    assert bench.driver.status().mode == "idle"


def test_a_hand_that_does_not_answer_a_stop_is_not_there_again_on_a_persons_word(bench: Bench) -> None:
    bench.hand.answers.clear()
    bench.driver._command = command = _command(0.08, 0.02, bench.clock.now_ns())
    for _ in range(200):
        bench.see(0.06)
    with pytest.raises(DeviceRefused, match="has not taken a stop"):
        bench.driver.recover()
    assert command.stopped
    bench.hand.answers.set()


def test_a_stop_that_is_answered_and_not_obeyed_is_given_again(bench: Bench) -> None:
    bench.driver._command = _command(0.08, 0.02, bench.clock.now_ns())
    for _ in range(40):
        bench.see(0.06)
        bench.driver._stop.join(WAIT_S)
    assert 3 <= bench.asked().count("stop 80") <= 4, "each 0.2 s of 0.8 s"


def test_a_hand_that_refuses_each_command_is_a_fault_that_says_so(bench: Bench) -> None:
    """It was asked fifty times a second, for ever, and stood as idle."""
    bench.hand.refuses = True
    bench.driver.target(0.0)
    with pytest.raises(DeviceRefused, match=r"Command failed! \(5 commands in a row\): see its state in Desk"):
        for _ in range(1000):
            bench.visit()
    assert len(bench.hand.asked) == 5 and bench.clock.now_ns() >= SECOND + 4 * 200 * MILLISECOND
    bench.hand.refuses = False
    bench.visit()
    bench.driver.target(0.0)
    for _ in range(20):
        bench.visit()
    assert bench.asked()[5:] == ["grasp 0"]


def test_a_hand_without_a_state_is_lost(bench: Bench) -> None:
    bench.driver._reader, bench.driver._seen_ns = threading.current_thread(), bench.clock.now_ns()
    for _ in range(150):
        bench.clock.sleep_until(bench.clock.now_ns() + STATE_NS)
        status = bench.driver.status()
    assert status.mode == "lost" and "no state from it for 2.0 s" in status.reason
