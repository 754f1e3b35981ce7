"""A servoed robot's loop and its servo thread, and a stop from a third: whatever comes between two steps of another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.interleaved import after_the_first_read, after_the_first_write
from support.robots.servo_bench import CLOCK, HOME, Bench, near

from labctl.clock import SECOND
from labctl.devices import DeviceEvent, RobotStatus, Setpoints
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.errors import DeviceRefused


@pytest.fixture
def arm(bench: Bench) -> Iterator[ServoedRobot]:
    """The bench's, whose servo thread has ended: a test does its cycles."""
    arm = bench.arm
    bench.until(lambda: not arm._states.restless())
    arm._end.set()
    thread, arm._thread = arm._thread, None
    assert thread is not None
    thread.join()
    yield arm
    arm._thread = thread


def give(arm: ServoedRobot, opening_m: float = 0.04) -> None:
    """Setpoints that are due."""
    q, now_ns = near(3), CLOCK.now_ns()
    arm.follow(Setpoints(now_ns - SECOND + np.arange(3), q, np.full(3, opening_m)))


def test_what_happened_is_told_though_it_was_asked_for_at_that_moment(arm: ServoedRobot) -> None:
    told = DeviceEvent("safety_stop", 1, {"reason": "reflex"})
    append = arm._news.append  # what the servo thread has in its hands before the event is made
    assert not [event for event in arm.events() if event.kind == "safety_stop"]
    append(told)
    assert arm.events() == [told]


def test_a_stopped_robot_is_not_idle_while_its_own_stop_ends(arm: ServoedRobot) -> None:
    arm.stop()
    arm._sound = RobotStatus("safety_stop", "reflex")
    with after_the_first_read(arm, "_sound", lambda: setattr(arm, "_sound", RobotStatus("idle"))):
        assert arm.status().mode in ("safety_stop", "stopped")


@pytest.mark.parametrize("asked", ["stage", "recover"])
def test_a_refusal_says_why_though_the_reason_ends_meanwhile(arm: ServoedRobot, asked: str) -> None:
    arm._sound = RobotStatus("safety_stop", "reflex")
    with (
        after_the_first_read(arm, "_sound", lambda: setattr(arm, "_sound", RobotStatus("idle"))),
        pytest.raises(DeviceRefused, match="reflex"),
    ):
        arm.stage({}, 1, 0) if asked == "stage" else arm.recover()


def test_a_robot_beside_its_home_is_not_staged_while_it_is_given_up(bench: Bench, arm: ServoedRobot) -> None:
    """The servo thread ended the wait between two looks of the loop at whether it waits."""
    bench.link.q = HOME + 0.2
    bench.link._tell()
    with after_the_first_write(arm, "_staging", lambda: setattr(arm, "_staging", False)):
        assert not arm.staged()


def test_why_it_did_not_reach_home_is_told_though_the_loop_asks_meanwhile(bench: Bench, arm: ServoedRobot) -> None:
    """It was told that it stands beside its home, and of something that may hold it."""
    bench.link.q = HOME + 0.2
    bench.link._tell()
    arm._homing, arm._still_ns = True, CLOCK.now_ns() - 10 * SECOND
    with after_the_first_write(arm, "_staging", arm.staged):
        arm._fail("the way home leaves the workspace box", CLOCK.now_ns())
    arm._look(CLOCK.now_ns() + 10 * SECOND)
    assert arm.status().reason == "the robot did not reach home: the way home leaves the workspace box"
    arm._asked_recovery, arm._recover_after_ns = True, 0
    arm._cycle(CLOCK.now_ns())
    arm._look(CLOCK.now_ns() + 20 * SECOND)
    assert arm.status().mode == "idle", "where a person left it"


def test_a_robot_is_not_staged_while_it_is_being_stopped(bench: Bench, arm: ServoedRobot) -> None:
    """It stood at home with its hand closed, and was sent home; a stop took that back."""
    bench.link.q = HOME.copy()
    bench.link._tell()
    arm.stage({}, 1, 0)
    seen: list[bool] = []
    with after_the_first_write(arm, "_asked_home", lambda: seen.append(arm.staged())):
        arm.stop()
    assert seen == [False]


def test_a_stop_in_the_middle_of_staging_sends_no_robot_home_once_it_is_recovered(
    bench: Bench, arm: ServoedRobot
) -> None:
    with after_the_first_write(arm, "_still_ns", arm.stop):
        arm.stage({}, 1, 0)
    assert not arm.staged()
    arm._cycle(CLOCK.now_ns())
    arm.recover()
    for _ in range(5):
        arm._cycle(CLOCK.now_ns())
    arm._look(CLOCK.now_ns() + 20 * SECOND)
    assert not bench.link.given and arm.status().mode == "idle"


def test_a_robot_that_was_stopped_on_its_way_home_stays_recovered_whoever_asks_whether_it_is_staged(
    bench: Bench, arm: ServoedRobot
) -> None:
    """A cell whose scene waited for it asked on, and it was refused again and again for standing beside its home."""
    arm.stage({}, 1, 0)
    arm._cycle(CLOCK.now_ns())
    arm.stop()
    arm._cycle(CLOCK.now_ns())
    arm.recover()
    assert not arm.staged()
    arm._look(CLOCK.now_ns() + 20 * SECOND)
    assert arm.status().mode == "idle" and not bench.link.given


def test_a_robot_whose_own_stop_ended_its_way_home_needs_a_persons_word_though_the_stop_passes(
    bench: Bench, arm: ServoedRobot
) -> None:
    """As a user stop does that is released: nothing was wrong then, and the staging never ended."""
    arm._homing = arm._staging = True
    bench.link.sound = RobotStatus("safety_stop", "user stop")
    arm._fail("motion aborted", CLOCK.now_ns())
    assert arm.status().reason == "user stop"
    bench.link.sound = RobotStatus("idle")
    arm._look(CLOCK.now_ns() + 20 * SECOND)
    assert arm.status().reason == "the robot did not reach home: motion aborted"
    with pytest.raises(DeviceRefused, match="motion aborted"):
        arm.recover()
    arm._cycle(CLOCK.now_ns())
    arm.recover()
    assert arm.status().mode == "idle" and not bench.link.given


@pytest.mark.parametrize("taken_up", [False, True], ids=["asked", "on_its_way"])
@pytest.mark.parametrize("whose", ["gripper", "robot"])
def test_why_a_way_home_was_broken_off_needs_a_persons_word_though_it_passes_by_itself(
    bench: Bench, arm: ServoedRobot, whose: str, taken_up: bool
) -> None:
    """It was replaced by "something holds it", or by nothing: a staging that never ended."""
    of, says = (bench.hand, "gripper: too hot") if whose == "gripper" else (bench.link, "too hot")
    arm.stage({}, 1, 0)
    if taken_up:
        arm._cycle(CLOCK.now_ns())
    of.sound = RobotStatus("fault", "too hot")
    arm._look(CLOCK.now_ns())
    arm._cycle(CLOCK.now_ns())
    of.sound = RobotStatus("idle")
    for later_ns in (0, 20 * SECOND):
        arm._look(CLOCK.now_ns() + later_ns)
        assert arm.status() == RobotStatus("safety_stop", f"the robot did not reach home: {says}")
    with pytest.raises(DeviceRefused, match="too hot"):
        arm.recover()
    arm._cycle(CLOCK.now_ns())
    arm.recover()
    arm._look(CLOCK.now_ns() + 40 * SECOND)
    assert arm.status().mode == "idle" and not bench.link.given


def test_fingers_that_are_stopped_stay_though_the_servo_thread_was_about_to_move_them(
    bench: Bench, arm: ServoedRobot
) -> None:
    give(arm)
    bench.link.on_setpoint = arm.stop
    arm._cycle(CLOCK.now_ns())
    bench.link.on_setpoint = None
    assert bench.hand.told == ["stop", 0.04], "the stop came before the target"
    arm._cycle(CLOCK.now_ns())
    arm._cycle(CLOCK.now_ns())
    assert bench.hand.told == ["stop", 0.04, "stop"] and bench.link.halts


def test_a_hand_opens_for_staging_though_the_servo_thread_was_about_to_close_it(
    bench: Bench, arm: ServoedRobot
) -> None:
    give(arm, 0.01)
    bench.link.on_setpoint = lambda: arm.stage({}, 1, 0)
    arm._cycle(CLOCK.now_ns())
    bench.link.on_setpoint = None
    arm._cycle(CLOCK.now_ns())
    assert bench.hand.asked[-1] == 0.08


def test_a_stop_in_the_middle_of_a_recovery_is_its_end(bench: Bench, arm: ServoedRobot) -> None:
    """One more step of it came up to 0.3 s later: a UR's brakes were released after a person had stopped it."""
    bench.link.sound = RobotStatus("safety_stop", "protective stop")
    arm._look(CLOCK.now_ns())
    with pytest.raises(DeviceRefused):
        arm.recover()
    arm.stop()
    arm._cycle(CLOCK.now_ns() + SECOND)
    assert bench.link.recoveries == 0
    with pytest.raises(DeviceRefused):
        arm.recover()
    arm._cycle(CLOCK.now_ns() + 2 * SECOND)
    assert bench.link.recoveries == 1, "who asks anew is heard"


def test_a_way_home_that_was_stopped_does_not_go_on_though_it_is_recovered_at_once(
    bench: Bench, arm: ServoedRobot
) -> None:
    """Before the servo thread had heard of the stop, a recovery took it back."""
    arm.stage({}, 1, 0)
    arm._cycle(CLOCK.now_ns())
    arm.stop()
    with pytest.raises(DeviceRefused, match="not stopped yet"):
        arm.recover()
    arm._cycle(CLOCK.now_ns())
    arm.recover()
    for _ in range(5):
        arm._cycle(CLOCK.now_ns())
    assert not bench.link.given and arm.status().mode == "idle"
