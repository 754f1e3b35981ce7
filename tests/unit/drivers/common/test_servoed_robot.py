"""A real robot over a link that does as told: what it gives, what it refuses, what stops it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import RobotStatus, Setpoints
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.servo import hand_opening, servoed_robot, unrest
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.drivers.common.states import Sample, States
from labctl.errors import DeviceLost, DeviceRefused

pytestmark = pytest.mark.real_time

CLOCK = MonotonicClock()
HOME = FR3.home + 0.05


class Hand:
    """A gripper that is where it was last asked to be."""

    kind, stroke_m = "sim", 0.08

    def __init__(self) -> None:
        self.at, self.sound, self.stops, self.closed = 0.08, RobotStatus("idle"), 0, False
        self.asked: list[float] = []
        self.stuck = False  # it is where a test puts it

    def connect(self) -> None: ...
    def target(self, opening_m: float) -> None:
        self.asked.append(opening_m)
        self.at = self.at if self.stuck else opening_m

    def opening(self) -> float:
        return self.at

    def status(self) -> RobotStatus:
        return self.sound

    def stop(self) -> None:
        self.stops += 1

    def recover(self) -> None: ...
    def close(self) -> None:
        self.closed = True


class Link:
    """A robot that is at once where a setpoint sends it."""

    more: Mapping[str, str] = {}
    measured = None
    law = None
    coast_s = 0.0
    news: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.q = FR3.home.copy()
        self.given: list[np.ndarray] = []
        self.halts = self.recoveries = self.rests = self.idles = 0
        self.settled, self.closed = True, False
        self.fail: Exception | None = None
        self.sound = RobotStatus("idle")
        self.off, self.trembling = np.zeros(7), np.zeros(7)  # how it differs from what it is told
        self.by_joints: list[bool] = []
        self.states: States | None = None

    def open(self, states: States) -> None:
        self.states = states
        self._tell()

    def _tell(self) -> None:
        assert self.states is not None
        zero, now_ns = np.zeros(7), CLOCK.now_ns()
        tcp = np.array([0.4, 0, 0.3, 1, 0, 0, 0.0])
        self.states.add(now_ns, Sample(self.q + self.off, self.trembling.copy(), zero, tcp, now_ns / SECOND))

    def start_q(self) -> np.ndarray:
        return self.q.copy()

    def send_setpoint(self, q: np.ndarray, dq: np.ndarray, *, by_joints: bool = False) -> None:
        self.by_joints.append(by_joints)
        if self.fail is not None:
            raise self.fail
        self.q = q.copy()
        self.given.append(q.copy())
        self._tell()

    def hold(self, q: np.ndarray) -> bool:
        self.rests += 1
        self._tell()
        return self.settled

    def keep_alive(self) -> None:
        self.idles += 1
        self._tell()

    def halt(self) -> None:
        self.halts += 1

    def recover(self) -> bool:
        self.recoveries += 1
        self.fail = None
        return True

    def lost(self) -> str:
        return self.sound.reason if self.sound.mode == "lost" else ""

    def health(self) -> RobotStatus:
        return self.sound

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bench() -> Iterator[Any]:
    made = Bench()
    yield made
    made.arm.close()


class Bench:
    def __init__(self) -> None:
        cell = cell_named("emulated_fr3")
        self.link, self.hand = Link(), Hand()
        self.arm = ServoedRobot(FR3, self.link, self.hand, cell, HOME, 0.3)
        self.arm.connect(CLOCK.now_ns())
        self.events: list[Any] = []

    def play(self, q: np.ndarray) -> Any:
        """Give setpoints of the last tick and wait until they are decided."""
        n = len(q)
        t_ns = CLOCK.now_ns() + (np.arange(n) - n + 1) * 10 * MILLISECOND
        first = self.arm.follow(Setpoints(t_ns, q, np.full(n, 0.04)))
        parts = [first]
        self.until(lambda: sum(self._asked(part) for part in parts + self._more(parts)) >= n)
        return parts

    @staticmethod
    def _asked(part: Any) -> int:
        return int(np.isfinite(part.requested[:, 0]).sum()) if len(part.t_ns) else 0

    def _more(self, parts: list[Any]) -> list[Any]:
        parts.append(self.arm.follow(Setpoints(np.empty(0, np.int64), np.empty((0, 7)), np.empty(0))))
        return []

    def until(self, found: Callable[[], object]) -> None:
        over = CLOCK.now_ns() + 30 * SECOND
        while not found():
            self.events += self.arm.events()
            assert CLOCK.now_ns() < over, "waited for 30 s in vain"
            CLOCK.sleep_until(CLOCK.now_ns() + MILLISECOND)


def near(n: int = 5) -> np.ndarray:
    return FR3.home + 0.001 * np.arange(1, n + 1)[:, None] * np.ones(7)


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
    bench.arm.follow(Setpoints(t_ns, near(10), np.full(10, 0.04)))
    bench.until(lambda: bench.link.given)
    threads = [threading.Thread(target=bench.arm.stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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


def test_staging_goes_home_and_is_done_only_then(bench: Bench) -> None:
    bench.arm.stage({}, 1, CLOCK.now_ns())
    assert not bench.arm.staged()
    bench.until(lambda: len(bench.link.given) > 5)
    assert not bench.arm.staged() and bench.arm.status().mode == "moving"
    bench.until(bench.arm.staged)
    assert np.abs(bench.arm.observe()["q"] - HOME).max() < 1e-9 and all(bench.link.by_joints)
    assert np.abs(np.diff(bench.link.given, axis=0)).max() * bench.arm.control_hz <= 0.3


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
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: len(bench.link.given) > 5)
    asked, bench.arm._asked.recover = bench.link.recoveries, True
    bench.arm._recover_after_ns = 0
    bench.until(lambda: not bench.arm._asked.recover)
    bench.arm.stop()
    bench.until(lambda: bench.link.halts)
    given = len(bench.link.given)
    bench.until(lambda: bench.link.idles)
    assert bench.link.recoveries == asked and len(bench.link.given) == given
    assert not bench.arm.staged()


def test_an_arm_that_goes_elsewhere_is_stopped_in_words(bench: Bench) -> None:
    bench.link.off = 0.3 * np.eye(7)[2]
    bench.play(near(3))
    bench.until(lambda: bench.arm.status().mode == "safety_stop")
    assert bench.link.halts and "joint 3 is 0.3" in bench.arm.status().reason


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
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: len(bench.link.given) > 5)
    bench.link.trembling = 0.08 * np.eye(7)[6]
    bench.until(lambda: bench.arm.status().mode == "safety_stop" or bench.arm.staged())
    assert "home, and does not come to rest: joint 7 at 0.08 rad/s" in bench.arm.status().reason


def test_a_robot_that_stands_beside_its_home_is_a_persons_matter_too(bench: Bench, monkeypatch: Any) -> None:
    """Where it was sent home and stands 0.02 rad off, as one does whose load is not known to it, staging had no end."""
    monkeypatch.setattr(servoed_robot, "RESTLESS_NS", 50 * MILLISECOND)
    bench.arm.stage({}, 1, CLOCK.now_ns())
    bench.until(lambda: len(bench.link.given) > 5)
    bench.link.off = 0.02 * np.eye(7)[3]
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
    before = len(bench.link.given)
    bench.play(near(2))
    assert len(bench.link.given) == before


def test_close_may_be_repeated_and_leaves_no_thread(bench: Bench) -> None:
    bench.arm.close()
    bench.arm.close()
    assert "servo" not in {thread.name for thread in threading.enumerate()}
