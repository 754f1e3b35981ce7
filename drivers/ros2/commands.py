"""The four ways in which ROS 2 takes motion: points for joint_trajectory_controller, as messages or as goals of
FollowJointTrajectory, positions for a position group controller, twists for MoveIt Servo; and how a
robot is brought to rest by each.

May not: decide where the robot goes, or wait for anything.
"""

from __future__ import annotations

from typing import Generic, Protocol

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import RobotStatus
from labctl.drivers.common.limits import Limits, tool_twist
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.ros2.goals import SOUND, Goals
from labctl.drivers.ros2.messages import (
    Float64MultiArray,
    Header,
    JointTrajectory,
    Time,
    TrajectoryPoint,
    TwistStamped,
    duration,
    time_of,
    twist,
)
from labctl.drivers.ros2.network import M, Network, Publisher
from labctl.drivers.ros2.options import Ros2Options

BRAKE_RAD_S2 = 4.0  # of the fastest joint: the others come to rest with it
BRAKE_POINTS = 10
CORRECT_PER_S = 5.0  # of a twist: how fast it makes good what the robot is off


class Commands(Protocol):
    """`go`: be at q (dof,) moving with dq (dof,); `at`, `speed` are where the robot is. `rest`: it is at q, and stays.
    `brake`: slow down now, from what was commanded last, so that the robot never turns back to where it was seen;
    `go_on` is called every period after that until the robot stands, and returns whether there are further messages to
    send. `readers`: how many controllers listen. `problem`: why the controller does not follow, where it answers, else
    "idle"; `forget` clears it. `leave`: end what still runs on the robot's side.
    """

    def go(self, q: np.ndarray, dq: np.ndarray, at: np.ndarray, speed: np.ndarray) -> None: ...
    def rest(self, q: np.ndarray) -> None: ...
    def brake(self, at: np.ndarray, speed: np.ndarray) -> None: ...
    def go_on(self) -> bool: ...
    def readers(self) -> int: ...
    def problem(self) -> RobotStatus: ...
    def forget(self) -> None: ...
    def leave(self) -> None: ...


class OnTopic(Generic[M]):
    """Commands that are published on a topic of ROS, whose readers answer nothing."""

    _publisher: Publisher[M]

    def go_on(self) -> bool:
        """No further messages: the whole way to rest has been sent."""
        return False

    def readers(self) -> int:
        return self._publisher.readers()

    def problem(self) -> RobotStatus:
        return SOUND

    def forget(self) -> None:
        """Nothing is kept."""

    def leave(self) -> None:
        """Nothing goes on."""


def commands_of(
    options: Ros2Options, network: Network, robot_model: RobotModel, limits: Limits, period_s: float
) -> Commands:
    """The way that the options name."""
    if options.command == "trajectory":
        return TrajectoryPoints(options, network, period_s)
    if options.command == "action":
        return GoalPoints(options, network, period_s)
    if options.command == "positions":
        return Positions(options, network, period_s)
    return Twists(options, network, robot_model, limits)


def braking(q: np.ndarray, dq: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """Where the joints are (n, dof) at these shares of the time (s) in which they come to rest, none harder than
    BRAKE_RAD_S2.
    """
    seconds = float(np.abs(dq).max()) / BRAKE_RAD_S2
    spent = shares * seconds
    return q + np.outer(spent - spent**2 / (2 * seconds) if seconds else spent, dq), seconds


class TrajectoryPoints(OnTopic[JointTrajectory]):
    """A trajectory of one point each period, which replaces the one before. Positions alone: the controller refuses a
    speed at a trajectory's end (`allow_nonzero_velocity_at_trajectory_end`), and goes between positions in a straight
    line.
    """

    def __init__(self, options: Ros2Options, network: Network, period_s: float) -> None:
        self._names, self._ahead_s = list(options.names()), options.reached_s(period_s)
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self._begin(options.command_topic, network)

    def _begin(self, topic: str, network: Network) -> None:
        self._publisher = network.publisher(topic, JointTrajectory)

    def _send(self, rows: np.ndarray, seconds: np.ndarray) -> None:
        self._publisher.send(self._trajectory(rows, seconds))

    def _trajectory(self, rows: np.ndarray, seconds: np.ndarray) -> JointTrajectory:
        points = [
            TrajectoryPoint(positions=row, time_from_start=duration(after))
            for row, after in zip(rows.tolist(), seconds.tolist(), strict=True)
        ]
        return JointTrajectory(Header(), self._names, points)  # stamp zero: from now on

    def go(self, q: np.ndarray, dq: np.ndarray, at: np.ndarray, speed: np.ndarray) -> None:
        self._last = q, dq
        self._send(q[None, :], np.array([self._ahead_s]))

    def rest(self, q: np.ndarray) -> None:
        """The controller holds the last point by itself."""
        self._last = None

    def brake(self, at: np.ndarray, speed: np.ndarray) -> None:
        """The last point is reached when it was to be, and what follows it is the way to rest."""
        (begin, dq), self._last = self._last or (at, speed), None
        shares = np.linspace(0.0, 1.0, BRAKE_POINTS + 1)
        rows, seconds = braking(begin, dq, shares)
        self._send(rows, self._ahead_s + np.maximum(shares * seconds, np.arange(BRAKE_POINTS + 1) * 1e-3))


class GoalPoints(TrajectoryPoints):
    """The same as goals of the action FollowJointTrajectory: its controller says that it refuses or gives up one."""

    def _begin(self, topic: str, network: Network) -> None:
        self._goals, self._clock, self._rests_ns = Goals(network, topic), MonotonicClock(), 0

    def _send(self, rows: np.ndarray, seconds: np.ndarray) -> None:
        self._goals.send(self._trajectory(rows, seconds))

    def brake(self, at: np.ndarray, speed: np.ndarray) -> None:
        begin, dq = self._last or (at, speed)
        super().brake(at, speed)
        _, seconds = braking(begin, dq, np.ones(1))
        self._rests_ns = self._clock.now_ns() + round((self._ahead_s + seconds) * SECOND)

    def go_on(self) -> bool:
        """The whole way to rest has been given; it is not over yet."""
        return self._clock.now_ns() < self._rests_ns

    def readers(self) -> int:
        return self._goals.readers()

    def problem(self) -> RobotStatus:
        return self._goals.problem()

    def forget(self) -> None:
        self._goals.forget()

    def leave(self) -> None:
        self._goals.cancel()


class Positions(OnTopic[Float64MultiArray]):
    """Each position is taken at once, so the way to rest is given period by period."""

    def __init__(self, options: Ros2Options, network: Network, period_s: float) -> None:
        self._period_s = period_s
        self._publisher = network.publisher(options.command_topic, Float64MultiArray)
        self._left: list[list[float]] = []
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def go(self, q: np.ndarray, dq: np.ndarray, at: np.ndarray, speed: np.ndarray) -> None:
        self._left, self._last = [], (q, dq)
        self._publisher.send(Float64MultiArray(data=q.tolist()))

    def rest(self, q: np.ndarray) -> None:
        """The controller holds the last position by itself."""
        self._last = None

    def brake(self, at: np.ndarray, speed: np.ndarray) -> None:
        (begin, dq), self._last = self._last or (at, speed), None
        steps = max(1, round(float(np.abs(dq).max()) / BRAKE_RAD_S2 / self._period_s))
        rows, _ = braking(begin, dq, np.arange(1, steps + 1) / steps)
        self._left = rows.tolist()
        self.go_on()

    def go_on(self) -> bool:
        if self._left:
            self._publisher.send(Float64MultiArray(data=self._left.pop(0)))
        return bool(self._left)


class Twists(OnTopic[TwistStamped]):
    """What the tool does, in the base's frame; what the robot is off is made good with it, within the cell's limits."""

    def __init__(self, options: Ros2Options, network: Network, robot_model: RobotModel, limits: Limits) -> None:
        self._frame, self._robot_model, self._limits = options.frame(), robot_model, limits
        self._clock = MonotonicClock()
        self._publisher = network.publisher(options.command_topic, TwistStamped)

    def _stamp(self) -> Time:
        """Now: Servo passes over a twist that is old."""
        return time_of(self._clock.now_ns() + self._clock.wall_ahead_ns())

    def _send(self, values: np.ndarray) -> None:
        self._publisher.send(twist(self._stamp(), self._frame, values.tolist()))

    def go(self, q: np.ndarray, dq: np.ndarray, at: np.ndarray, speed: np.ndarray) -> None:
        self._send(tool_twist(self._robot_model, at, dq + CORRECT_PER_S * (q - at), self._limits))

    def rest(self, q: np.ndarray) -> None:
        self._send(np.zeros(6))

    def brake(self, at: np.ndarray, speed: np.ndarray) -> None:
        """MoveIt Servo slows down by its own limits, and silence ends a twist too."""
        self._send(np.zeros(6))
