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
from labctl.drivers.ros2.joint_states import JointStates
from labctl.drivers.ros2.messages import Float64, JointState
from labctl.drivers.ros2.network import FOUND_S, Network, Subscription, within
from labctl.drivers.ros2.options import GRIPPER, MODELS, Ros2Options
from labctl.drivers.ros2.speed_scaling import SpeedScaling
from labctl.drivers.ros2.standing import Standing
from labctl.errors import DeviceLost, DeviceRefused, InputError
from labctl.plain import RobotAbout

LISTENING_NS = SECOND // 2  # how often it is looked whether somebody listens
SETTLED_RAD, SETTLE_S = 1e-3, 1.0
LISTEN_S = 0.3  # so long it is listened for a second robot that says the same
SLIDER = (
    "a UR behind ROS 2 goes at whatever its speed slider says, and labctl does not see it: name its "
    "speed_scaling_state_broadcaster in `scaling_topic`"
)
NO_STAMPS = (
    "the stamps on {topic} do not go on (zero, or use_sim_time without /clock): times of receipt are taken instead"
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
        topic = options.scaling_topic
        self._scaling = None if topic is None else SpeedScaling(topic, options.scaling_full)
        self.more: Mapping[str, str] = {"speed_scaling": "1"} if self._scaling else {}
        slider = options.model.startswith("ur") and not self._scaling
        self.news: Sequence[str] = (UNSEEN, *([SLIDER] if slider else []))
        self._silence_ns = round(options.silence_s * SECOND)
        self._joints = JointStates(options.states_topic, options.names(), self._silence_ns)
        self._model = ToolModel(robot_model)
        self._network: Network | None = None
        self._heard: Subscription | None = None
        self._commands: Commands | None = None
        self._states: States | None = None
        self._clock, self._silence = MonotonicClock(), Silence()
        self._looked_ns = 0
        self._listens = True
        self._settling = 0.0
        self._standing, self._stands = Standing(), ""  # why, once it was led and stood

    def open(self, states: States) -> None:
        """Find the robot's states, and whoever takes commands. Raises DeviceLost or DeviceRefused."""
        given = self._options
        self._states = states
        self._network = network = Network(given.domain, given.host, given.peers)
        self._commands = commands_of(given, network, self._robot_model, self._limits, self._period_s)
        self._heard = network.subscribe(given.states_topic, JointState, self._read)
        if not within(FOUND_S, lambda: self._joints.newest is not None):
            raise self._not_found()
        within(FOUND_S, self._commands.readers)  # `health` says if nobody listens
        if within(LISTEN_S, self._misled):
            raise DeviceRefused(f"{network.shown}: {self._misled()}")
        if not within(FOUND_S, self._joints.decided):
            raise DeviceLost(f"{network.shown}: one message came on {given.states_topic}, and no other")
        if not self._joints.stamped:
            self.news = (*self.news, NO_STAMPS.format(topic=given.states_topic))
        if (scaling := self._scaling) is not None and (topic := given.scaling_topic) is not None:
            network.subscribe(topic, Float64, scaling.read)
            if not within(FOUND_S, scaling.heard):
                raise DeviceRefused(f"{network.shown}: nothing came on {topic}: is its broadcaster active?")
            if misread := scaling.misread():
                raise DeviceRefused(f"{network.shown}: {misread}")

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
        if self._joints.missing:
            have = ", ".join(self._joints.sent_names) or "none"
            return DeviceRefused(
                f"{given.states_topic} has no joint {', '.join(self._joints.missing)}; its joints: {have}. Name the "
                "robot's in `joints`, from the base on"
            )
        if heard.writers():
            return DeviceLost(f"{network.shown}: {given.states_topic} is there, and nothing came on it")
        return DeviceLost(
            f"{network.shown}: nobody speaks on {given.states_topic}; is the robot's ROS 2 up, its ROS_DOMAIN_ID "
            f"{given.domain}, and ROS_LOCALHOST_ONLY or a firewall not between?"
        )

    def _read(self, message: JointState) -> None:
        now = self._clock.now_ns()
        joints, states, scaling = self._joints.read(message, now), self._states, self._scaling
        if joints is None or not self._joints.decided() or (scaling is not None and not scaling.heard()):
            return  # recorded from when all of it is known
        assert states is not None
        more = np.array([] if scaling is None else [scaling.share])
        states.add(now, Sample(joints.q, joints.dq, joints.tau, self._model.pose(joints.q), joints.device_s, more))

    def _misled(self) -> str:
        """Why what is said of the joints is not the robot, in words; "" while it may be."""
        return self._joints.wrong(self._clock.now_ns())

    def _at(self) -> tuple[np.ndarray, np.ndarray]:
        if (newest := self._joints.newest) is None:
            raise DeviceLost("the robot has not sent a state yet")
        return newest.q, newest.dq

    # -- the servo thread

    def start_q(self) -> np.ndarray:
        return self._at()[0]

    def _command(self) -> Commands:
        if self._commands is None or not self._listens:
            raise DeviceRefused(self._nobody())
        if misled := self._misled():
            self.halt()
            raise DeviceRefused(misled)
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
        if by_joints or self._slow():
            self._standing.again()  # on its way home, it is seen whether it comes there
        elif (newest := self._joints.newest) and self._standing.led(q, newest.q, newest.device_s):
            self._stands = (
                f"the robot was led and has not moved, though {self._options.command_topic} is heard: is its "
                "controller active (`ros2 control list_controllers`), its program running, no stop pressed, its slider "
                "not at 0?"
            )
            raise DeviceRefused(self._stands)
        self._command().go(q, dq, *self._at())

    def _slow(self) -> str:
        """Why the robot goes slower than it is led, in words; "" when it does not, or does not say it."""
        return "" if self._scaling is None else self._scaling.wrong()

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
        if self._commands is not None and self._joints.newest is not None:
            self._commands.brake(*self._at())

    def recover(self) -> bool:
        if self._commands is not None:
            self._commands.forget()
        self._standing.again()
        self._stands = ""
        return self.health().mode == "idle"

    def lost(self) -> str:
        newest = self._joints.newest
        if newest is None:
            return ""
        age_ns = self._silence.age_ns(newest.host_ns, self._clock.now_ns())
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
        if misled := self._misled():
            return RobotStatus("fault", misled)
        problem = SOUND if self._commands is None else self._commands.problem()
        wrong = self._slow() or self._stands
        return RobotStatus("fault", wrong) if problem.mode == "idle" and wrong else problem

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
