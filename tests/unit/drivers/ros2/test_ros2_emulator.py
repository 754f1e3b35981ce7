"""An emulated robot behind ROS 2 goes on whatever is asked of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
from support.robots.emulators import address, own_domain

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import load
from labctl.drivers.ros2.action_messages import (
    ABORTED,
    EXECUTING,
    SUCCEEDED,
    Goal,
    Result,
    SendGoalRequest,
    Uuid,
)
from labctl.drivers.ros2.messages import (
    Duration,
    Float64MultiArray,
    Header,
    JointTrajectory,
    TrajectoryPoint,
    Twist,
    TwistStamped,
    Vector3,
    duration,
    time_of,
)
from labctl.errors import InputError
from labctl.testing.given import FIXTURE

BUILD, CLOCK = "labctl.drivers.ros2.emulator.robot:build", MonotonicClock()


@pytest.fixture(scope="module")
def emulator() -> Iterator[Any]:
    made = load(BUILD, {"domain": own_domain()}, host=address(), fixture=FIXTURE)
    yield made
    made.close()


def trajectory(names: list[str], *positions: list[float]) -> JointTrajectory:
    points = [TrajectoryPoint(positions=given, time_from_start=Duration(1, 0)) for given in positions]
    return JointTrajectory(joint_names=names, points=points)


NAN, FEW, MANY, WELL = [math.nan] * 6, [0.1] * 5, [0.1] * 7, [0.1] * 6


@pytest.mark.parametrize("positions", [[NAN], [FEW], [MANY], [[]], [WELL, FEW]], ids=str)
def test_a_trajectory_without_a_number_for_each_joint_is_refused(emulator: Any, positions: list[list[float]]) -> None:
    assert emulator._follow(trajectory(emulator._names, *positions)) is None
    assert emulator._follow(trajectory([*emulator._names, emulator._names[0]], *positions)) is None


def test_positions_and_speeds_that_are_no_numbers_move_no_joint(emulator: Any) -> None:
    q, asked = emulator._joints.q.copy(), emulator._commands
    emulator._put(Float64MultiArray(data=NAN))
    emulator._grip(Float64MultiArray(data=[math.nan]))
    away = Vector3(math.nan, 0.0, 0.0)
    emulator._servo(TwistStamped(header=Header(frame_id=emulator._frame), twist=Twist(linear=away)))
    emulator._tick(1)
    assert (emulator._joints.q == q).all() and emulator._commands == asked
    assert emulator.plant.opening > 0.0 and np.isfinite(emulator.plant.opening)


def point(after_s: float, **more: Any) -> TrajectoryPoint:
    return TrajectoryPoint(positions=WELL, time_from_start=duration(after_s), **more)


@pytest.mark.parametrize(
    ("stamp_ns", "points"),
    [
        (0, []),
        (0, [point(0.1), point(0.1)]),
        (0, [point(0.2), point(0.1)]),
        (10**9, [point(0.1)]),
        (0, [point(0.1, velocities=[1.0] * 6)]),
        (0, [point(0.1, velocities=[0.0])]),
    ],
    ids=["empty", "at-once", "back", "past", "moving-at-its-end", "speed-of-one"],
)
def test_a_trajectory_that_a_real_controller_refuses_is_refused(
    emulator: Any, stamp_ns: int, points: list[TrajectoryPoint]
) -> None:
    """validate_trajectory_msg of ros2_controllers; the driver's way to rest has rows a millisecond apart for it."""
    assert emulator._follow(JointTrajectory(Header(time_of(stamp_ns)), emulator._names, points)) is None


def test_a_trajectory_that_begins_later_ends_later(emulator: Any) -> None:
    stamp_ns = round((CLOCK.now_ns() + CLOCK.wall_ahead_ns()) + 5 * SECOND)
    ends_s, _ = emulator._follow(JointTrajectory(Header(time_of(stamp_ns)), emulator._names, [point(1.0)]))
    assert ends_s - emulator._now_s == pytest.approx(6.0, abs=1.0)


def test_a_controller_that_is_inactive_hears_and_does_nothing_until_it_is_active(emulator: Any) -> None:
    q, asked = emulator._joints.q.copy(), emulator._commands
    emulator._obey("controller_inactive", {})
    assert emulator._follow(trajectory(emulator._names, WELL)) is None
    emulator._put(Float64MultiArray(data=WELL))
    forward = Twist(linear=Vector3(0.1, 0.0, 0.0))
    emulator._servo(TwistStamped(header=Header(frame_id=emulator._frame), twist=forward))
    emulator._tick(1)
    assert emulator._commands == asked and (emulator._joints.q == q).all()
    emulator._obey("", {})
    emulator._put(Float64MultiArray(data=WELL))
    assert emulator._commands == asked + 1


def test_a_goal_is_given_up_though_none_is_under_way_when_that_is_asked_for(emulator: Any) -> None:
    """On a busy machine the last one had come to its end by then, and the fault was none."""
    action = emulator._action
    emulator._obey("", {})
    action._end(SUCCEEDED, Result())
    emulator._obey("goal_aborted", {})
    for number in (1, 2):
        goal = Goal(trajectory(emulator._names, WELL))
        action._goal(SendGoalRequest(1, number, Uuid([number] * 16), goal))
        assert action.status == (ABORTED if number == 1 else EXECUTING)
    emulator._obey("goal_aborted", {})
    assert action.status == ABORTED
    action._goal(SendGoalRequest(1, 3, Uuid([3] * 16), Goal(trajectory(emulator._names, WELL))))
    assert action.status == EXECUTING, "one fault, one goal"
    emulator._stay()


def test_a_second_robot_in_one_domain_is_refused_whatever_its_host(emulator: Any) -> None:
    """Both printed that they serve, and each moved by what was sent to the other."""
    with pytest.raises(InputError, match=f"ROS 2 domain {emulator._domain} has a robot on this computer already"):
        load(BUILD, {"domain": emulator._domain}, host=address(), fixture=FIXTURE)


def test_what_is_whole_is_followed(emulator: Any) -> None:
    after, at = emulator._follow(trajectory(emulator._names, WELL))
    assert after >= 1.0 and at.tolist() == WELL


@pytest.mark.parametrize("kept", ["stuck", "contact"])
def test_joints_that_are_let_go_stay_until_something_is_asked_anew(emulator: Any, kept: str) -> None:
    """They leapt at once to where they had been led while something kept them."""
    period_ns = emulator._period_ns
    now_ns = round(emulator._now_s * SECOND) + period_ns
    if kept == "stuck":
        emulator._obey("stuck", {})
    else:
        emulator.plant.contact = "the floor"
    stood = emulator._joints.q.copy()

    def goes_on(for_s: float) -> np.ndarray:
        nonlocal now_ns
        for _ in range(round(for_s * SECOND / period_ns)):
            emulator._tick(now_ns)
            now_ns += period_ns
        return emulator._joints.q

    emulator._put(Float64MultiArray(data=(stood + 0.3).tolist()))
    assert (goes_on(0.2) == stood).all() and not emulator._joints.dq.any()
    emulator._obey("", {})
    assert (goes_on(0.2) == stood).all() and not emulator._joints.dq.any()
    emulator._put(Float64MultiArray(data=(stood + 0.01).tolist()))
    assert goes_on(0.2) == pytest.approx(stood + 0.01), "and then it is led as ever"
