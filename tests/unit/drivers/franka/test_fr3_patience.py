"""How long an emulated FR3 waits for a client in control: time in which it could have read the answer."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from support.robots.emulators import address

from labctl.clock import MILLISECOND, ManualClock
from labctl.devices import load
from labctl.drivers.franka.emulator import fr3, wire
from labctl.drivers.franka.emulator.robot import FciRobot, _Move
from labctl.testing.given import FIXTURE

ECHO_NS = 200 * MILLISECOND


class Bench:
    """An emulator that waits for an answer; what is given to `serve` stands for its sockets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.errors = ManualClock(0), list[str]()
        monkeypatch.setattr(fr3, "CLOCK", self.clock)
        self.emulator = load("labctl.drivers.franka.emulator.fr3:build", {}, host=address(), fixture=FIXTURE)
        self.close = self.emulator.close
        self.robot = SimpleNamespace(waits_for_echo=True, waits_for_first=False, reflex=self.errors.extend)
        self.emulator._robot = self.robot

    def passes(self, ns: int) -> None:
        self.clock.sleep_until(self.clock.now_ns() + ns)

    def serve(self, listens: Callable[[float], None]) -> None:
        self.emulator._poll = listens
        self.emulator._serve(self.clock.now_ns())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(monkeypatch)
    yield made
    made.close()


def test_a_client_that_answers_no_more_stops_the_robot_after_the_time_that_was_said(bench: Bench) -> None:
    bench.serve(lambda seconds: bench.passes(round(seconds * 1e9)))
    assert bench.errors == ["communication_constraints_violation"]
    assert bench.clock.now_ns() == ECHO_NS


def test_an_answer_that_lay_there_while_this_machine_did_not_run_the_emulator_is_read(bench: Bench) -> None:
    """It used to look at the clock first, and stopped a robot whose client had answered within a millisecond."""

    def away(seconds: float) -> None:
        bench.passes(2 * ECHO_NS)
        bench.robot.waits_for_echo = False

    bench.serve(away)
    assert bench.errors == []


def test_a_client_that_was_as_late_as_the_emulator_has_its_time_all_the_same(bench: Bench) -> None:
    looks = iter(range(1000))

    def away(seconds: float) -> None:
        bench.passes(ECHO_NS)  # each time, of which it listened a few milliseconds
        bench.robot.waits_for_echo = next(looks) < 20

    bench.serve(away)
    assert bench.errors == []


def test_a_hand_is_heard_while_the_robots_time_waits(bench: Bench) -> None:
    """It fell silent with a client that had no core for a second, and that client stopped the robot for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        bench.emulator._hand._peer = heard.getsockname()
        bench.serve(lambda seconds: bench.passes(round(seconds * 1e9)))
        heard.setblocking(False)
        for _ in range(ECHO_NS // (20 * MILLISECOND)):
            assert heard.recv(1024)


def test_the_robots_time_waits_for_the_first_command_of_a_motion_but_not_for_ever(bench: Bench) -> None:
    """States went by each millisecond, and a client that was late led on from several: its first command was a leap,
    "the commanded jerk was too high".
    """
    bench.robot.waits_for_echo, bench.robot.waits_for_first = False, True
    bench.serve(lambda seconds: bench.passes(round(seconds * 1e9)))
    assert bench.errors == [] and bench.clock.now_ns() == fr3.FIRST_NS

    def comes(seconds: float) -> None:
        bench.passes(5 * MILLISECOND if seconds else 0)
        bench.robot.waits_for_first = False

    begun_ns = bench.clock.now_ns()
    bench.serve(comes)
    assert bench.clock.now_ns() - begun_ns == 5 * MILLISECOND


def test_a_motions_first_state_is_not_answered_and_its_first_command_ends_the_wait() -> None:
    move = _Move(1, wire.JOINT_VELOCITY, 0)
    robot = SimpleNamespace(_move=None)
    first = FciRobot.waits_for_first.fget
    assert not first(robot)
    robot._move = move
    for shown, answered, waits in ((0, False, False), (1, False, False), (2, False, True), (3, True, False)):
        move.shown, move.answered = shown, answered
        assert first(robot) is waits
