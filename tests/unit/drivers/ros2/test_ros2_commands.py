"""How a robot behind ROS 2 is told to come to rest, and what an emulated controller makes of trajectories."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.robots.cells import cell_named
from support.robots.interleaved import after_the_first_read

pytest.importorskip("cyclonedds")
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import limits_of
from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.ros2 import commands as commands_module
from labctl.drivers.ros2.commands import BRAKE_RAD_S2, CORRECT_PER_S, Positions, Twists, braking, commands_of
from labctl.drivers.ros2.emulator.controllers import Joints
from labctl.drivers.ros2.emulator.robot import in_base
from labctl.drivers.ros2.messages import Float64, Float64MultiArray, JointTrajectory, TwistStamped
from labctl.drivers.ros2.options import BASE_FRAMES, MODELS, Ros2Options
from labctl.drivers.ros2.robot import Ros2Link
from labctl.drivers.ros2.speed_scaling import SpeedScaling
from labctl.errors import OptionError

CELL = cell_named("emulated_ros2")
speeds = st.lists(st.floats(-3, 3), min_size=6, max_size=6).map(lambda rows: np.round(rows, 4))


@given(speeds)
def test_braking_ends_at_rest_no_harder_than_it_may(dq: np.ndarray) -> None:
    shares = np.linspace(0.0, 1.0, 201)
    rows, seconds = braking(np.zeros(6), dq, shares)
    if not dq.any():
        assert not rows.any()
        return
    step = seconds / 200
    speed = np.diff(rows, axis=0) / step
    assert np.abs(speed[0] - dq).max() <= BRAKE_RAD_S2 * step and np.abs(speed[-1]).max() <= BRAKE_RAD_S2 * step
    harder = np.abs(np.diff(speed, axis=0)) / step
    assert harder.max() <= BRAKE_RAD_S2 * (1 + 1e-6)


def test_a_trajectory_is_a_straight_line_to_each_point_and_the_next_takes_its_place() -> None:
    joints = Joints(np.zeros(1), np.array([10.0]))
    joints.follow(0.0, [(1.0, np.array([1.0])), (3.0, np.array([0.0]))])
    seen = []
    for k in range(1, 31):
        joints.advance(k / 10, 0.1)
        seen.append(float(joints.q[0]))
    assert seen[:10] == pytest.approx([k / 10 for k in range(1, 11)])
    assert seen[19] == pytest.approx(0.5) and seen[29] == pytest.approx(0.0)
    joints.follow(3.0, [(1.0, np.array([2.0]))])
    joints.advance(3.5, 0.5)
    assert joints.q[0] == pytest.approx(1.0)
    joints.follow(3.5, [])
    joints.advance(4.0, 0.5)
    assert joints.q[0] == pytest.approx(1.0), "an empty trajectory is a stop"


@pytest.mark.parametrize("command", ["trajectory", "action"])
@pytest.mark.parametrize(("hz", "ahead_s"), [(50.0, 0.04), (50.0, 0.002), (20.0, 0.04), (10.0, 0.04)])
def test_a_trajectory_is_gone_no_faster_than_its_setpoints_whatever_their_rate(
    command: Literal["trajectory", "action"], hz: float, ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the rate that docs/ros2.md begins with, 10 Hz, a joint went at 2.5 times the speed that it was led with."""
    options = Ros2Options(command=command, command_topic="/c", ahead_s=ahead_s)
    points = list[JointTrajectory]()
    network: Any = SimpleNamespace(publisher=lambda *_: SimpleNamespace(send=points.append))
    monkeypatch.setattr(commands_module, "Goals", lambda *_: SimpleNamespace(send=points.append))
    commands = commands_of(options, network, UR5E, limits_of(UR5E, CELL.robot.limits, None), 1 / hz)
    joints, led, steps = Joints(np.zeros(6), np.full(6, 10.0)), np.full(6, 1.0), round(500 / hz)
    fastest = []
    for k in range(1, 2 * round(hz)):
        commands.go(led * k / hz, led, led, led)
        (point,) = points.pop().points
        after_s = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        joints.follow((k - 1) / hz, [(after_s, np.array(point.positions))])
        for step in range(1, steps + 1):
            joints.advance((k - 1) / hz + step / 500, 1 / 500)
            fastest.append(float(np.abs(joints.dq).max()))
    assert max(fastest) <= 1.0 + 1e-6 and min(fastest[len(fastest) // 2 :]) > 0.9, "nor does it stand in between"


class Line:
    """Takes what is sent: numbers, or a twist as its six."""

    def __init__(self) -> None:
        self.sent: list[list[float]] = []
        self.frames: list[str] = []
        self.closed_after = -1

    def publisher(self, topic: str, kind: type) -> Line:
        return self

    def send(self, message: Float64MultiArray | TwistStamped) -> None:
        if isinstance(message, Float64MultiArray):
            self.sent.append(list(message.data))
        else:
            self.frames.append(message.header.frame_id)
            parts = (message.twist.linear, message.twist.angular)
            self.sent.append([value for part in parts for value in (part.x, part.y, part.z)])

    def close(self) -> None:
        self.closed_after = len(self.sent)


def test_a_robot_that_is_told_position_by_position_is_at_rest_before_the_line_is_closed() -> None:
    line, period_s = Line(), 0.002
    options = Ros2Options(command="positions", command_topic="/c")
    commands = Positions(options, line, period_s)  # type: ignore[arg-type]
    link = Ros2Link(UR5E, options, CELL.robot)
    link._network, link._commands = line, commands  # type: ignore[assignment]
    q, dq = np.zeros(6), np.full(6, 0.4)
    commands.go(q, dq, q, dq)
    commands.brake(q, dq)
    link.close()
    rows = np.array(line.sent)
    assert line.closed_after == len(rows) == 1 + round(0.4 / BRAKE_RAD_S2 / period_s)
    steps = np.diff(rows, axis=0)[:, 0]
    assert (np.diff(steps) < 0).all() and 0 < steps[-1] < 0.1 * steps[0]


@pytest.mark.parametrize("behind", [0.05, 0.3, 3.0])
def test_a_twist_that_catches_up_stays_within_the_cells_limits(behind: float) -> None:
    """A joint and the tool, however far the robot is behind its setpoint."""
    line, table = Line(), CELL.robot.limits
    table = table.model_copy(update={"tool_speed_m_s": 0.5})
    options = Ros2Options(command="twist", command_topic="/c")
    commands = Twists(options, line, UR5E, limits_of(UR5E, table, None))  # type: ignore[arg-type]
    at, turn = UR5E.home, np.eye(6)
    fast = 0.9 * np.array(table.velocity_rad_s)
    commands.go(at + behind * turn[5], fast * turn[5], at, fast)  # turns the tool alone
    assert np.linalg.norm(line.sent[-1][3:]) <= table.velocity_rad_s[5] * (1 + 1e-9)
    commands.go(at + behind * turn[0], 10 * fast * turn[0], at, fast)
    assert np.linalg.norm(line.sent[-1][:3]) <= 0.5 * (1 + 1e-9)
    commands.go(at + 0.01 * turn[0], np.zeros(6), at, fast)
    jacobian = kinematics.jacobian(UR5E.chain, at[None, :])[0][0]
    assert line.sent[-1] == pytest.approx((jacobian[:, 0] * 0.01 * CORRECT_PER_S).tolist()), (
        "within them it is as it was"
    )


@pytest.mark.parametrize("model", ["ur5e", "ur5", "ur20", "fr3"])
def test_a_twist_moves_the_tool_the_way_that_it_is_led(model: str) -> None:
    """As MoveIt Servo takes it: in the frame that the message names, of the description of the robot's maker."""
    line, options = Line(), Ros2Options(model=model, command="twist", command_topic="/c")  # type: ignore[arg-type]
    robot_model = MODELS[model]
    each = {"velocity_rad_s": [1.5] * robot_model.dof, "acceleration_rad_s2": [5.0] * robot_model.dof}
    limits = limits_of(robot_model, CELL.robot.limits.model_copy(update=each), None)
    commands = Twists(options, line, robot_model, limits)  # type: ignore[arg-type]
    q, chain, dt = robot_model.home.copy(), robot_model.chain, 0.02
    goal, begin = q.copy(), np.array(kinematics.pose(chain, q.tolist()))[:3]
    for _ in range(50):  # 1 s along x at 0.05 m/s
        ahead = kinematics.jacobian(chain, goal[None, :])[0][0]
        dq = np.linalg.lstsq(ahead, np.array([0.05, 0, 0, 0, 0, 0]), rcond=1e-3)[0]
        goal = goal + dq * dt
        commands.go(goal, dq, q, dq)
        wanted = in_base(BASE_FRAMES[model], line.frames[-1], np.array(line.sent[-1]))
        assert wanted is not None
        q = q + np.linalg.lstsq(kinematics.jacobian(chain, q[None, :])[0][0], wanted, rcond=1e-3)[0] * dt
    went = np.array(kinematics.pose(chain, q.tolist()))[:3] - begin
    assert went == pytest.approx([0.05, 0.0, 0.0], abs=2e-3)


def test_a_urs_base_link_is_turned_against_its_chain_and_refused_for_a_twist() -> None:
    """urdf/ur_macro.xacro of Universal_Robots_ROS2_Description: base_link-base_fixed_joint, rpy = 0 0 pi."""
    twist = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    turned = in_base("base", "base_link", twist)
    assert turned is not None
    assert turned.tolist() == [-1.0, -2.0, 3.0, -4.0, -5.0, 6.0]
    assert in_base("base", "world", twist) is None and in_base("fr3_link0", "base_link", twist) is None
    given = {"model": "ur5e", "command": "twist", "command_topic": "/c"}
    for frame in ("base_link", "left_base_link"):
        with pytest.raises(OptionError, match=f'twist_frame = "{frame}" is turned by half a turn'):
            Ros2Options.read({**given, "twist_frame": frame}, "ros2")
    assert Ros2Options.read({**given, "twist_frame": "left_base"}, "ros2").frame() == "left_base"
    Ros2Options.read({**given, "command": "positions", "twist_frame": "base_link"}, "ros2")  # no twist is sent
    Ros2Options.read({**given, "model": "fr3", "twist_frame": "base_link"}, "ros2")


def test_a_robot_whose_slider_is_back_at_full_at_that_moment_is_not_slowed() -> None:
    """It was told to go at 100 % of its speed, and every time would be longer by it."""
    scaling = SpeedScaling("/s", 100.0)
    for full in (0.5, 1.0):
        scaling.read(Float64(data=50.0))
        back = Float64(data=100.0)
        with after_the_first_read(scaling, "_slow_ns", lambda back=back: scaling.read(back)):
            assert not scaling.wrong(), full


def test_joints_that_something_keeps_where_they_are_have_no_speed() -> None:
    """The emulator said the last one for as long as its arm was stuck: it was taken to be moving for ever."""
    joints = Joints(np.zeros(1), np.array([10.0]))
    joints.put(0.0, np.array([1.0]))
    joints.advance(0.01, 0.01)
    assert joints.dq[0] == 10.0
    joints.stand()
    assert joints.dq[0] == 0.0 and joints.q[0] == pytest.approx(0.1)
