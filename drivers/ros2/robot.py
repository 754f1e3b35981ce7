"""Driver "ros2": a robot that ros2_control or MoveIt Servo moves, over DDS, with a gripper by name.

May not: load, activate or switch a controller, power anything, or clear a fault: that is done with ROS's own tools.
Unverified on hardware, and against ROS 2 itself: see docs/ros2.md.

What such a robot cannot promise: nothing in ROS 2 says that its emergency stop is pressed or that it stopped itself, so
labctl sees neither, only that the robot does not follow. Nothing on the robot's side watches this process: with
`trajectory` and `action` the controller goes to the last point, some hundredths of a second ahead, and holds there;
with `positions` it holds at once; MoveIt Servo has a timeout of its own (`incoming_command_timeout`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture, RobotTable
from labctl.devices import Gripper, RobotStatus, load, no_stand_in
from labctl.drivers.common.about import library, tool_in_words
from labctl.drivers.common.limits import limits_of
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import RobotModel, with_tool
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.drivers.common.state_timeout import Silence
from labctl.drivers.common.states import Sample, States
from labctl.drivers.common.steps import Law
from labctl.drivers.common.tool_model import ToolModel
from labctl.drivers.ros2.commands import Commands, commands_of
from labctl.drivers.ros2.goals import SOUND
from labctl.drivers.ros2.messages import Float64, JointState
from labctl.drivers.ros2.network import FOUND_S, Network, Subscription, within
from labctl.drivers.ros2.options import GRIPPER, MODELS, Ros2Options
from labctl.errors import DeviceLost, DeviceRefused, InputError
from labctl.plain import RobotAbout

LISTENING_NS = SECOND // 2  # how often it is looked whether somebody listens
SETTLED_RAD, SETTLE_S = 1e-3, 1.0
FULL, SLOW_NS = 0.995, SECOND // 5  # less is slowed; for so long, and not by one corner of its way
SLIDER = (
    "a UR behind ROS 2 goes at whatever its speed slider says, and labctl does not see it: name its "
    "speed_scaling_state_broadcaster in `scaling_topic`"
)
UNSEEN = (
    "over ROS 2 labctl sees neither the robot's emergency stop nor its own protective stops, only that it does not "
    "follow: a person who can stop it watches it"
)


class Ros2Link:
    """ROS 2 as the `Link` of a streamed robot."""

    measured: MeasuredChain | None = None
    law: Law | None = None
    coast_s = 0.0

    def __init__(self, robot_model: RobotModel, options: Ros2Options, robot: RobotTable) -> None:
        """robot: the cell's table of that name."""
        self._robot_model, self._options, self._period_s = robot_model, options, 1.0 / float(robot.control_hz)
        self._limits = limits_of(robot_model, robot.limits, None)
        scaled = options.scaling_topic is not None
        self.more: Mapping[str, str] = {"speed_scaling": "1"} if scaled else {}
        self.news: Sequence[str] = (UNSEEN, *([SLIDER] if options.model.startswith("ur") and not scaled else []))
        self._scaling, self._slow_ns = np.nan, 0  # a share of full speed; since when it is less
        self._names = options.names()
        self._places: list[int] | None = None  # of our joints in the names that the robot sends
        self._sent_names: tuple[str, ...] = ()
        self._model = ToolModel(robot_model)
        self._network: Network | None = None
        self._heard: Subscription | None = None
        self._commands: Commands | None = None
        self._states: States | None = None
        self._clock, self._silence = MonotonicClock(), Silence()
        self._silence_ns = round(options.silence_s * SECOND)
        self._newest: tuple[int, float, np.ndarray, np.ndarray] | None = None
        self._missing: Sequence[str] = ()
        self._looked_ns = 0
        self._listens = True
        self._settling = 0.0

    def open(self, states: States) -> None:
        """Find the robot's states, and whoever takes commands. Raises DeviceLost or DeviceRefused."""
        given = self._options
        self._states = states
        self._network = network = Network(given.domain, given.host, given.peers)
        self._commands = commands_of(given, network, self._robot_model, self._limits, self._period_s)
        self._heard = network.subscribe(given.states_topic, JointState, self._read)
        if not within(FOUND_S, lambda: self._newest is not None):
            raise self._not_found()
        within(FOUND_S, self._commands.readers)  # `health` says if nobody listens
        if (topic := given.scaling_topic) is not None:
            network.subscribe(topic, Float64, self._read_scaling)
            if not within(FOUND_S, lambda: np.isfinite(self._scaling)):
                raise DeviceRefused(f"{network.shown}: nothing came on {topic}: is its broadcaster active?")

    def about(self) -> RobotAbout:
        """ROS 2 says neither who made the robot nor what is in it; the joints it publishes are its model's."""
        given = self._options
        return {
            "model": f"{self._robot_model.name} behind ROS 2",
            "serial": None,
            "firmware": None,
            "client": library("cyclonedds"),
            "tool": tool_in_words(given.tool(), None),
            "limits": {"command": given.command, "ahead_s": given.reached_s(self._period_s)},
        }

    def _not_found(self) -> DeviceLost | DeviceRefused:
        given, heard, network = self._options, self._heard, self._network
        assert heard is not None and network is not None
        if self._missing:
            have = ", ".join(self._sent_names) or "none"
            return DeviceRefused(
                f"{given.states_topic} has no joint {', '.join(self._missing)}; its joints: {have}. Name the robot's "
                "in `joints`, from the base on"
            )
        if heard.writers():
            return DeviceLost(f"{network.shown}: {given.states_topic} is there, and nothing came on it")
        return DeviceLost(
            f"{network.shown}: nobody speaks on {given.states_topic}; is the robot's ROS 2 up, its ROS_DOMAIN_ID "
            f"{given.domain}, and ROS_LOCALHOST_ONLY or a firewall not between?"
        )

    def _read(self, message: JointState) -> None:
        now = self._clock.now_ns()
        names = tuple(message.name)
        if names != self._sent_names:
            self._sent_names = names
            self._missing = [name for name in self._names if name not in names]
            self._places = None if self._missing else [names.index(name) for name in self._names]
        if self._places is None or len(message.position) != len(names):
            return  # of another part of the robot: each may publish its own joints
        at = self._places
        q = np.array(message.position)[at]
        if not np.isfinite(q).all():
            return  # a hardware interface that has not read its robot yet says NaN
        stamp = message.header.stamp.ns / SECOND
        dq = np.array(message.velocity)[at] if len(message.velocity) == len(names) else np.full(len(q), np.nan)
        dq = dq if np.isfinite(dq).all() else self._speed(q, stamp)
        tau = np.array(message.effort)[at] if len(message.effort) == len(names) else np.full(len(q), np.nan)
        states, self._newest = self._states, (now, stamp, q, dq)
        assert states is not None
        if self.more and not np.isfinite(self._scaling):
            return  # recorded from when all of it is known
        more = np.array([self._scaling] if self.more else [])
        states.add(now, Sample(q, dq, tau, self._model.pose(q), stamp, more))

    def _read_scaling(self, message: Float64) -> None:
        self._scaling = float(message.data) / self._options.scaling_full
        self._slow_ns = (self._slow_ns or self._clock.now_ns()) if self._scaling < FULL else 0

    def _slowed(self) -> str:
        """Why the robot goes slower than it is led, in words; "" when it does not."""
        since_ns, scaling = self._slow_ns, self._scaling  # in this order: another thread writes them, the first last
        if not since_ns or scaling >= FULL or self._clock.now_ns() - since_ns < SLOW_NS:
            return ""
        said = f"{self._options.scaling_topic} says that the robot goes at {100 * scaling:.0f} % of its speed"
        return f"{said}, and every time would be longer by it: set its speed slider to 100 %, then acknowledge"

    def _speed(self, q: np.ndarray, stamp: float) -> np.ndarray:
        """Of a robot that does not say how fast its joints are: from one state to the next, by its own clock."""
        if self._newest is None or stamp <= self._newest[1]:
            return np.zeros(len(q))
        return (q - self._newest[2]) / (stamp - self._newest[1])

    def _at(self) -> tuple[np.ndarray, np.ndarray]:
        if self._newest is None:
            raise DeviceLost("the robot has not sent a state yet")
        return self._newest[2], self._newest[3]

    # -- the servo thread

    def start_q(self) -> np.ndarray:
        return self._at()[0]

    def _command(self) -> Commands:
        if self._commands is None or not self._listens:
            raise DeviceRefused(self._nobody())
        if (problem := self._commands.problem()).mode != "idle":
            raise DeviceRefused(problem.reason)
        return self._commands

    def _nobody(self) -> str:
        return (
            f"nobody listens on {self._options.command_topic}: is its controller active? "
            "`ros2 control list_controllers` says"
        )

    def send_setpoint(self, q: np.ndarray, dq: np.ndarray, *, by_joints: bool = False) -> None:
        self._settling = 0.0
        self._command().go(q, dq, *self._at())

    def hold(self, q: np.ndarray) -> bool:
        """Wait until the robot has caught up, for at most a second."""
        self._settling += self._period_s
        if float(np.abs(self.start_q() - q).max()) > SETTLED_RAD and self._settling < SETTLE_S:
            self._command().go(q, np.zeros(len(q)), *self._at())
            return False
        self._command().rest(q)
        return True

    def keep_alive(self) -> None:
        """Go on slowing down, where that is still to be done."""
        if self._commands is not None:
            self._commands.go_on()

    def halt(self) -> None:
        if self._commands is not None and self._newest is not None:
            self._commands.brake(*self._at())

    def recover(self) -> bool:
        if self._commands is not None:
            self._commands.forget()
        return self.health().mode == "idle"

    def lost(self) -> str:
        newest = self._newest
        if newest is None:
            return ""
        age_ns = self._silence.age_ns(newest[0], self._clock.now_ns())
        if age_ns <= self._silence_ns:
            return ""
        return f"nothing on {self._options.states_topic} for {age_ns / 1e9:.1f} s: network, power or ROS 2 itself"

    def health(self) -> RobotStatus:
        if lost := self.lost():
            return RobotStatus("lost", lost)
        now = self._clock.now_ns()
        if self._commands is not None and now - self._looked_ns >= LISTENING_NS:
            self._looked_ns, self._listens = now, self._commands.readers() > 0
        if not self._listens:
            return RobotStatus("fault", self._nobody())
        problem = SOUND if self._commands is None else self._commands.problem()
        return RobotStatus("fault", slow) if problem.mode == "idle" and (slow := self._slowed()) else problem

    def close(self) -> None:
        """Send what is left of the way to rest, where that takes message after message, then leave."""
        network, self._network = self._network, None
        if network is None:
            return
        with contextlib.suppress(DeviceLost):  # closing: nobody is left to be told
            while self._commands is not None and self._commands.go_on():
                self._clock.sleep_until(self._clock.now_ns() + round(self._period_s * SECOND))
            if self._commands is not None:
                self._commands.leave()
        network.close()


def build(options: Ros2Options, *, cell: Cell, fixture: Fixture) -> ServoedRobot:
    """A robot behind ROS 2; cell and fixture are the parsed files. Raises InputError for a cell of another kind, or
    limits it cannot take.
    """
    if cell.kind not in ("real", "emulated"):
        raise InputError(f"ros2 drives a real robot or an emulator; the cell's kind is {cell.kind!r}")
    robot_model, held = with_tool(MODELS[options.model], options.tool()), options.held()
    more = {"domain": options.domain, "peers": list(options.peers)} if held.driver == GRIPPER else {}
    gripper: Gripper = no_stand_in(
        load(held.driver, {**more, **held.options}, host=options.host), held.driver, cell.kind
    )
    link = Ros2Link(robot_model, options, cell.robot)
    home = options.home(robot_model.home)
    return ServoedRobot(robot_model, link, gripper, cell, home, options.home_speed_rad_s)
