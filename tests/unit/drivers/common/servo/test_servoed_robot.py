"""A real robot over a link that does as told: what it gives, what it refuses, what stops it."""

from __future__ import annotations

import os
import threading
from typing import Any, Literal

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.servo_bench import CLOCK, HOME, Bench, Hand, Link, near

from labctl.clock import MILLISECOND
from labctl.devices import RobotStatus, Setpoints
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.errors import DeviceLost, DeviceRefused

pytestmark = pytest.mark.real_time


def test_what_is_given_is_what_the_limits_left_and_the_gripper_gets_its_opening(bench: Bench) -> None:
    parts = bench.play(near())
    limited = np.concatenate([part.limited for part in parts])
    sent = np.concatenate([part.sent for part in parts])
    assert (limited == sent).all()
    assert bench.link.given and bench.hand.at == 0.04


def test_a_loop_held_up_while_it_limits_setpoints_leads_to_no_jump(bench: Bench, monkeypatch: Any) -> None:
    arm, limits = bench.arm, cell_named("emulated_fr3").robot.limits
    follow, calls = arm._setpoints.limiter.follow, []

    def held_up(wanted: np.ndarray) -> Any:
        found = follow(wanted)
        calls.append(1)
        if len(calls) == 3:
            bench.until(lambda: arm._setpoints.parted)
        return found

    monkeypatch.setattr(arm._setpoints.limiter, "follow", held_up)
    swing = FR3.home + 0.2 * (1 - np.cos(np.linspace(0, np.pi, 60)))[:, None] * np.ones(7)
    parts = [part for rows in np.array_split(swing, 12) for part in bench.play(rows)]
    sent = np.concatenate([np.repeat(FR3.home[None, :], 2, axis=0), *(part.sent[:, :-1] for part in parts)])
    change = np.diff(sent, n=2, axis=0) * arm.control_hz**2
    assert len(calls) > 3 and (np.abs(change) <= np.array(limits.acceleration_rad_s2) * (1 + 1e-9)).all()


def test_a_stop_from_two_threads_halts_once_and_holds_until_a_persons_word(bench: Bench) -> None:
    t_ns = CLOCK.now_ns() + np.arange(10) * 10 * MILLISECOND
    threads = [threading.Thread(target=bench.arm.stop) for _ in range(2)]

    def stopped() -> None:
        """In the middle of the motion, however late this machine is."""
        bench.link.on_setpoint = None
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    bench.link.on_setpoint = stopped
    bench.arm.follow(Setpoints(t_ns, near(10), np.full(10, 0.04)))
    bench.until(lambda: bench.link.halts)
    assert bench.arm.status().mode == "stopped"
    before = len(bench.link.given)
    bench.until(lambda: CLOCK.now_ns() > t_ns[-1] + 30 * MILLISECOND)  # what is played reaches back that far
    parts = bench.play(near(3))
    assert len(bench.link.given) == before and bench.link.halts == 1
    after = np.concatenate([part.sent[part.t_ns > t_ns[-1]] for part in parts])
    assert len(after) >= 3 and (after == after[0]).all()
    bench.arm.recover()
    assert bench.arm.status().mode == "idle"


def test_a_refusal_is_a_stop_told_once_that_only_a_recovery_clears(bench: Bench) -> None:
    bench.link.fail = DeviceRefused("not in this mode")
    bench.play(near(3))
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    bench.until(lambda: bench.events)
    assert [(e.kind, e.body["reason"]) for e in bench.events] == [("safety_stop", "not in this mode")]
    with pytest.raises(DeviceRefused, match="not in this mode"):
        bench.arm.recover()
    bench.until(lambda: bench.arm.status().mode == "idle")
    assert bench.link.recoveries == 1


def test_a_lost_link_is_raised_by_every_verb_of_the_loop(bench: Bench) -> None:
    bench.link.sound = RobotStatus("lost", "the cable is out")
    with pytest.raises(DeviceLost, match="the cable is out"):
        bench.arm.observe()
    with pytest.raises(DeviceLost):
        bench.arm.follow(Setpoints(np.empty(0, np.int64), np.empty((0, 7)), np.empty(0)))
    with pytest.raises(DeviceLost):
        bench.arm.drain(0)


def test_after_a_pause_a_motion_begins_where_the_arm_stands(bench: Bench) -> None:
    bench.play(near(2))
    bench.until(lambda: bench.link.rests and bench.arm.status().mode == "idle")
    given = len(bench.link.given)
    bench.link.q = bench.link.q + 0.2  # moved meanwhile, unseen by the loop
    stood = bench.link.q.copy()
    idles = bench.link.idles
    bench.until(lambda: bench.link.idles > idles + 1)
    bench.play(near(2))
    assert bench.arm.status().mode in ("idle", "moving")
    assert np.abs(bench.link.given[given] - stood).max() < 0.01


def test_an_arm_that_goes_elsewhere_is_stopped_in_words(bench: Bench) -> None:
    bench.link.off = 0.3 * np.eye(7)[2]
    bench.play(near(3))
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    assert bench.link.halts and "joint 3 is 0.3" in bench.arm.status().reason


def test_a_robot_that_is_lost_while_it_is_connected_leaves_nothing_behind() -> None:
    link, hand = Link(), Hand()
    link.sound = RobotStatus("lost", "the cable is out")
    arm = ServoedRobot(FR3, link, hand, cell_named("emulated_fr3"), HOME, 0.3)
    with pytest.raises(DeviceLost, match="the cable is out"):
        arm.connect(CLOCK.now_ns())
    assert link.closed and hand.closed and os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_fault_of_the_gripper_stops_the_arm(bench: Bench) -> None:
    bench.hand.sound = RobotStatus("fault", "too hot")
    bench.until(lambda: bench.arm.status().mode == "fault")
    assert bench.arm.status().reason == "gripper: too hot"
    bench.until(lambda: bench.events)
    assert [(e.kind, e.body["reason"]) for e in bench.events] == [("fault", "gripper: too hot")], "scored as nobody's"
    before = len(bench.link.given)
    bench.play(near(2))
    assert len(bench.link.given) == before


@pytest.mark.parametrize("mode", ["fault", "safety_stop"])
def test_what_the_robot_says_of_itself_is_told_as_what_it_is(
    bench: Bench, mode: Literal["fault", "safety_stop"]
) -> None:
    """A speed slider that somebody turned was the policy's own safety stop."""
    bench.link.sound = RobotStatus(mode, "see the pendant")
    bench.until(lambda: bench.events)
    assert [(e.kind, e.body["reason"]) for e in bench.events] == [(mode, "see the pendant")]


def test_close_may_be_repeated_and_leaves_no_thread(bench: Bench) -> None:
    bench.arm.close()
    bench.arm.close()
    assert "servo" not in {thread.name for thread in threading.enumerate()}


def test_a_fault_in_the_link_s_driver_stops_the_robot_and_is_told_as_what_it_is(bench: Bench) -> None:
    bench.link.fail = ZeroDivisionError("in a driver")
    with pytest.raises(DeviceLost, match="ZeroDivisionError: in a driver"):
        bench.play(near(3))
        bench.until(lambda: bench.arm.drain(0) is None)  # setpoints are let go of when it is lost, and answered so
    bench.until(lambda: bench.link.halts == 1)
    begun = bench.link.idles
    bench.until(lambda: bench.link.idles > begun + 20)  # a link may give the way to rest cycle by cycle
    assert bench.arm.status().mode == "lost"
