"""An emulated FR3 that checks as its maker's source says, without slack: near every joint's end and in every stop."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import Emulator

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3
from labctl.testing.robot import RobotRig
from labctl.testing.robot_rig import PATIENCE_NS

pytestmark = [pytest.mark.real_time, pytest.mark.alone, pytest.mark.thorough]

HIGH = np.array([0.0, -0.4, 0.0, -1.4, 0.0, 1.9, 0.8])  # the tool above all that stands there, whichever joint turns
LOW_M = 0.1
LATE_US, AGAIN_US = 100_000, 60_000
FULL_RAD_S, STOOD_US = 0.9, 300_000
STOP_RAD, STOP_N = 0.75, 90  # a way of 0.9 s: at full speed from a third of it on (3 rad/s^2), by the cell's limits
SHORT_RAD = 0.35  # of a goal that lies 0.3 rad beyond the end


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    running = Emulator("fr3", "ahead=true")
    yield running
    running.end()


@pytest.fixture
def rig(emulator: Emulator) -> Iterator[RobotRig]:
    """The emulated cell's robot at HIGH, its box wide enough for every joint's end, as fast as franky goes."""
    wide = {"box_min_m": (-1.2, -1.2, -0.6), "box_max_m": (1.2, 1.2, 1.5), "tool_speed_m_s": 3.0}
    quick = {"velocity_rad_s": (1.0, 1.0, 1.0, 1.0, 1.3, 1.3, 1.3)}
    robot = cell_named("emulated_fr3").robot
    robot = robot.model_copy(update={"limits": robot.limits.model_copy(update={**wide, **quick})})
    cell, options = cell_named("emulated_fr3").model_copy(update={"robot": robot}), robot.options
    options["driver_options"] |= {"host": emulator.host, "home_rad": HIGH.tolist(), "home_speed_rad_s": 0.8}
    made = RobotRig("emulated", options, cell, live=True)
    try:
        made.connect()
        yield made
    finally:
        made.robot.close()


def outermost(joint: int, end: int) -> np.ndarray:
    """HIGH with one joint 0.3 rad beyond an end, or as far as the tool stays above the table."""
    far = (FR3.upper if end > 0 else FR3.lower)[joint] - HIGH[joint]
    way = HIGH + np.linspace(0.0, 1.0, 200)[:, None] * far * np.eye(7)[joint]
    high = kinematics.positions(FR3.chain, way)[2] > LOW_M
    last = way[-1 if high.all() else int(np.argmin(high)) - 1]
    return last + 0.3 * end * high.all() * np.eye(7)[joint]


def led(rig: RobotRig, goal: np.ndarray, n: int) -> None:
    rig.follow(np.repeat(goal[None, :], n, axis=0))


# Joints that go their ways at the same time. Where the first, third, fifth and seventh stand, the tool stays half a
# metre above the table; each of the others takes it down to LOW_M.
TOGETHER = [(0, 2, 4, 6), (1,), (3,), (5,)]


def outward(rig: RobotRig, joints: tuple[int, ...], goal: np.ndarray) -> None:
    """Led from where they are as near the goal as the robot may go."""

    def short_rad() -> float:
        return float(np.abs(goal - rig.robot.observe()["q"])[[*joints]].max())

    over_ns = rig.now_ns + PATIENCE_NS
    led(rig, goal, 40 + round(110 * short_rad()))
    while short_rad() >= SHORT_RAD and rig.robot.status().mode in ("idle", "moving") and rig.now_ns < over_ns:
        led(rig, goal, 60)  # setpoints that a machine without time left out


@pytest.mark.parametrize("joints", TOGETHER, ids=lambda joints: "+".join(str(joint + 1) for joint in joints))
def test_no_joint_is_too_fast_for_what_is_left_of_its_way(
    rig: RobotRig, emulator: Emulator, joints: tuple[int, ...]
) -> None:
    reached = {}
    for end in (1, -1):
        goal, before = HIGH.copy(), emulator.stats()["reflexes"]
        for joint in joints:
            goal[joint] = outermost(joint, end)[joint]
        outward(rig, joints, goal)
        status, stats = rig.robot.status(), emulator.stats()
        found = (end, status, stats["errors"], stats["beyond"])
        assert status.mode in ("idle", "moving") and stats["reflexes"] == before, found
        short = goal - rig.robot.observe()["q"]
        reached |= {(joint + 1, end): round(float(short[joint]), 3) for joint in joints}
    assert max(abs(short) for short in reached.values()) < SHORT_RAD, reached


def test_a_robot_that_goes_on_while_labctl_stands_still_is_not_taken_for_one_that_does_not_follow(
    rig: RobotRig, emulator: Emulator
) -> None:
    """At full speed the servo thread stands still for longer than a speed is held and the robot takes to rest. It is
    .16 rad beyond the last setpoint then (1 rad/s for .1 s, and 1^2 / (2 * 9) rad to rest), and does as it was told:
    the stop "does not follow" of 25 November 2026, 15:43, whose cause this is.
    """
    link, usleep, stalls = rig.robot._inner._link, ctypes.PyDLL(None).usleep, []  # type: ignore[attr-defined]
    move = link._move

    def late_move(made: object) -> None:
        move(made)
        if not stalls and (dq := float(link._reading.newest().dq[0])) > FULL_RAD_S:
            stalls.append(dq)
            usleep(STOOD_US)

    link._move = late_move
    before = emulator.stats()["reflexes"]
    led(rig, HIGH - np.eye(7)[0], 200)
    led(rig, HIGH + np.eye(7)[0], 300)
    status = rig.robot.status()
    assert stalls and status.mode in ("idle", "moving") and emulator.stats()["reflexes"] == before, (stalls, status)
    assert abs(float(rig.robot.observe()["q"][0]) - 1.0) < SHORT_RAD


@pytest.mark.parametrize("left_rad", [0.2, 0.05])
def test_a_speed_that_is_late_is_none_of_where_the_robot_was(
    rig: RobotRig, emulator: Emulator, left_rad: float
) -> None:
    """Near the end of joint 1 the servo thread stands still for as long as a speed is held, once it has read where the
    robot is, and again after it has given the speed: the reflex of one in four runs on 25 November 2026, whose cause
    this is (a speed of 100 ms ago, held for 60 ms: joint_motion_generator_velocity_limits_violation, 0.7436 rad/s
    where 0.7435 were allowed).
    """
    link, goal, stalls = rig.robot._inner._link, outermost(0, 1), []  # type: ignore[attr-defined]
    motion, move, usleep = link._motion, link._move, ctypes.PyDLL(None).usleep

    def late_motion(q: np.ndarray, dq: np.ndarray, late_s: float = 0.0) -> object:
        if len(stalls) == 0 and FR3.upper[0] - link._reading.newest().q_d[0] < left_rad:
            stalls.append("read")
            made = motion(q, dq, late_s)
            usleep(LATE_US)
            return made
        return motion(q, dq, late_s)

    def late_move(made: object) -> None:
        move(made)
        if stalls == ["read"]:
            stalls.append("given")
            usleep(AGAIN_US)

    link._motion, link._move = late_motion, late_move
    before = emulator.stats()["reflexes"]
    led(rig, goal - 1.3 * np.eye(7)[0], 200)
    led(rig, goal, 260)
    stats = emulator.stats()
    assert stalls == ["read", "given"]
    assert stats["reflexes"] == before, (stats["errors"], stats["beyond"])


@pytest.mark.parametrize("joint", range(7))
def test_a_stop_at_full_speed_is_none_of_the_robots_own(rig: RobotRig, emulator: Emulator, joint: int) -> None:
    """Out, and on the way back."""
    before = emulator.stats()["reflexes"]
    for goal in (HIGH + STOP_RAD * np.eye(7)[joint], HIGH):
        start = rig.robot.observe()["q"]
        rig.follow(start + np.linspace(0.0, 1.0, STOP_N)[:, None] * (goal - start))
        rig.robot.stop()
        rig.at_rest()
        assert rig.robot.status().mode == "stopped" and emulator.stats()["reflexes"] == before, emulator.stats()
        rig.recover()
