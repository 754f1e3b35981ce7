"""The way home and what rest is: a robot that is not there, or does not stand, is a person's matter, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.robots.servo_bench import CLOCK, HOME, Bench, Hand, near

from labctl.clock import MILLISECOND
from labctl.devices import RobotStatus
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.servo import hand_opening, servoed_robot, unrest
from labctl.drivers.common.servo.hand_opening import HandOpening
from labctl.errors import DeviceRefused

pytestmark = pytest.mark.real_time


def test_staging_goes_home_and_is_done_only_then(bench: Bench) -> None:
    under_way = list[tuple[bool, str]]()
    bench.link.on_setpoint = lambda: under_way.append((bench.arm.staged(), bench.arm.status().mode))
    bench.arm.stage({}, 1, CLOCK.now_ns())
    assert not bench.arm.staged()
    bench.until(bench.arm.staged)
    bench.link.on_setpoint = None
    assert len(under_way) > 5 and set(under_way) == {(False, "moving")}
    assert np.abs(bench.arm.observe()["q"] - HOME).max() < 1e-9 and all(bench.link.by_joints)
    assert np.abs(np.diff(bench.link.given, axis=0)).max() * bench.arm.control_hz <= 0.3


def test_a_robot_is_not_staged_at_the_moment_its_servo_thread_takes_up_the_way_home(bench: Bench) -> None:
    """It stood at home with its hand closed, and was taken for staged: the two flags were read one after the other."""
    bench.until(lambda: bench.arm._states.newest is not None and not bench.arm._states.restless())
    bench.arm._end.set()
    thread, bench.arm._thread = bench.arm._thread, None
    assert thread is not None
    thread.join()

    class Between(servoed_robot.ServoedRobot):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name in ("_homing", "_asked_home"):
                self.__dict__.update(_homing=True, _asked_home=False)
            return found

    for asks in ("staged", "_ready"):
        bench.arm.__dict__.update(_homing=False, _asked_home=True)
        bench.arm.__class__ = Between
        assert not getattr(bench.arm, asks)()
        bench.arm.__class__ = servoed_robot.ServoedRobot
    bench.arm._thread = thread


def test_the_hand_opens_before_the_arm_goes_home(bench: Bench) -> None:
    bench.hand.at, bench.hand.stuck = 0.02, True
    bench.arm.stage({}, 1, CLOCK.now_ns())
    idles = bench.link.idles
    bench.until(lambda: bench.link.idles > idles + 5)
    assert bench.hand.asked == [0.08] and not bench.link.given and not bench.arm.staged()
    assert bench.arm.status().mode == "moving"
    bench.hand.at = 0.079
    bench.until(bench.arm.staged)
    assert np.abs(bench.arm.observe()["q"] - HOME).max() < 1e-9


def test_an_arm_that_stays_where_it_is_has_its_hand_opened_all_the_same(bench: Bench) -> None:
    bench.arm._home = None
    bench.hand.at, bench.hand.stuck = 0.02, True
    bench.arm.stage({}, 1, CLOCK.now_ns())
    idles = bench.link.idles
    bench.until(lambda: bench.link.idles > idles + 5)
    assert bench.hand.asked == [0.08] and not bench.arm.staged()
    bench.hand.at = 0.079
    bench.until(bench.arm.staged)
    assert not bench.link.given


def test_a_hand_that_does_not_open_is_told_in_words_and_the_arm_stays(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(hand_opening, "OPEN_NS", 50 * MILLISECOND)
    bench.hand.at, bench.hand.stuck = 0.02, True
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    assert "the hand does not open: it stands at 20 of 80 mm" in bench.arm.status().reason
    assert not bench.link.given and not bench.arm.staged()


def test_a_slow_hand_that_goes_on_opening_has_the_time_for_it_and_one_that_stops_does_not() -> None:
    """A Franka Hand at 0.012 m/s takes 6.7 s from closed: it could never be staged."""
    hand = Hand()
    hand.at, hand.stuck = 0.0, True
    opening = HandOpening(hand)
    opening.begin(0)
    for ms in range(0, 6000, 10):
        hand.at = 0.012 * ms / 1000
        assert not opening.done(ms * MILLISECOND)
    assert not opening.done(10_900 * MILLISECOND)
    with pytest.raises(DeviceRefused, match="the hand does not open: it stands at 72 of 80 mm"):
        opening.done(11_000 * MILLISECOND)
    hand.at = 0.078
    assert opening.done(11_000 * MILLISECOND)


def test_an_arm_that_is_not_at_home_is_not_staged(bench: Bench) -> None:
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(bench.arm.staged)
    bench.link.q = bench.link.q + 0.2
    bench.link._tell()
    assert not bench.arm.staged()


def test_a_stop_on_the_way_home_is_obeyed_while_a_recovery_is_asked_for(bench: Bench) -> None:
    """The node asks for a recovery every 20 ms until it is told that there is one; the last request comes too late."""
    bench.link.sound = RobotStatus("safety_stop", "reflex")
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    with pytest.raises(DeviceRefused, match="reflex"):
        bench.arm.recover()
    bench.until(lambda: bench.link.recoveries)
    bench.link.sound = RobotStatus("idle")
    bench.until(lambda: bench.arm.status().mode in ("idle", "stopped"))
    bench.arm.recover()
    bench.arm._home_rad_s = 1e-3  # it is under way whenever this test comes to stop it
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: len(bench.link.given) > 5)
    asked, bench.arm._asked_recovery = bench.link.recoveries, True
    bench.arm._recover_after_ns = 0
    bench.until(lambda: not bench.arm._asked_recovery)
    bench.arm.stop()
    bench.until(lambda: bench.link.halts)
    given = len(bench.link.given)
    bench.until(lambda: bench.link.idles)
    assert bench.link.recoveries == asked and len(bench.link.given) == given
    assert not bench.arm.staged()


def test_an_arm_that_does_not_come_to_rest_is_a_persons_matter_after_five_seconds(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(servoed_robot, "RESTLESS_NS", 50 * MILLISECOND)
    bench.link.trembling = 0.08 * np.eye(7)[6]
    bench.link._tell()
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    says = "did not reach home: it does not come to rest: joint 7 at 0.08 rad/s"
    assert says in bench.arm.status().reason and not bench.link.given
    with pytest.raises(DeviceRefused, match=r"still moving \(joint 7 at 0\.08 rad/s"):
        bench.arm.recover()


def test_nor_one_that_trembles_once_it_is_home(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(servoed_robot, "RESTLESS_NS", 100 * MILLISECOND)
    bench.link.on_setpoint = lambda: setattr(bench.link, "trembling", 0.08 * np.eye(7)[6])  # on its way
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: bench.arm.status().mode == "safety_stop" or bench.arm.staged())
    assert "home, and does not come to rest: joint 7 at 0.08 rad/s" in bench.arm.status().reason


def test_a_robot_that_stands_beside_its_home_is_a_persons_matter_too(bench: Bench, monkeypatch: Any) -> None:
    """Where it was sent home and stands 0.02 rad off, as one does whose load is not known to it, staging had no end."""
    monkeypatch.setattr(servoed_robot, "RESTLESS_NS", 50 * MILLISECOND)
    bench.link.on_setpoint = lambda: setattr(bench.link, "off", 0.02 * np.eye(7)[3])  # on its way
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: bench.arm.status().mode == "safety_stop" or bench.arm.staged())
    says = "the robot stands, and joint 4 is 0.020 rad from home (at most 0.010)"
    assert says in bench.arm.status().reason and not bench.arm.staged()


def test_a_robot_that_takes_no_setpoints_because_it_trembles_is_a_persons_matter(bench: Bench, monkeypatch) -> None:
    """Its setpoints were left out without a word: a policy that paused while it trembled had a robot that stood."""
    monkeypatch.setattr(unrest, "UNREST_NS", 50 * MILLISECOND)
    bench.link.trembling = 0.08 * np.eye(7)[6]
    bench.link._tell()

    def stopped() -> bool:
        bench.play(near(2))
        return bench.arm.status().mode == "safety_stop"

    bench.until(stopped)
    assert "takes no setpoints while it does not come to rest: joint 7 at 0.08 rad/s" in bench.arm.status().reason
    assert not bench.link.given


def test_a_tremble_that_ends_in_time_is_none(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(unrest, "UNREST_NS", 10_000 * MILLISECOND)
    bench.link.trembling = 0.08 * np.eye(7)[6]
    bench.link._tell()
    bench.play(near(2))
    assert not bench.link.given
    bench.link.trembling = np.zeros(7)
    bench.link._tell()
    bench.play(near(2))
    assert bench.link.given and bench.arm.status().mode in ("idle", "moving")


def test_a_way_home_that_leaves_the_box_is_refused_in_words_and_nothing_moves(bench: Bench) -> None:
    bench.link.q = FR3.home + 1.9 * np.eye(7)[0]
    bench.arm._home = FR3.home - 1.9 * np.eye(7)[0]
    bench.arm._limits.box_max[0] = 0.3
    bench.link._tell()
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    assert "did not reach home: the way home leaves the workspace box at x" in bench.arm.status().reason
    assert not bench.link.given and not bench.arm.staged()


def test_an_arm_that_was_sent_home_before_it_had_settled_does_not_go_back(bench: Bench) -> None:
    bench.link.settled = False
    bench.play(near(2))
    bench.until(lambda: bench.link.rests)
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.link.settled = True
    bench.until(bench.arm.staged)
    rests, idles = bench.link.rests, bench.link.idles
    bench.until(lambda: bench.link.idles > idles + 2 or bench.link.rests > rests)
    assert bench.link.rests == rests


def test_a_way_home_begins_when_what_is_under_way_has_ended(bench: Bench) -> None:
    """Its rows went by meanwhile: the robot then caught up at the cell's speeds, or never moved and was refused."""
    start, bench.link.ends_first = bench.link.q.copy(), 20
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(bench.arm.staged)
    steps = np.abs(np.diff([start, *bench.link.given], axis=0)).max(axis=1)
    assert not bench.link.ends_first and steps.max() * bench.arm.control_hz <= 0.3
