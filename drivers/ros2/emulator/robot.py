"""An emulated robot behind ROS 2: joint states out; trajectories, positions and twists in, in front of a simulated
scene.

May not: be found on another interface than loopback, or claim to be ROS: only its topics and controllers are there.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Fixture
from labctl.drivers.common import kinematics
from labctl.drivers.common.simulated_axes import OPEN_M
from labctl.drivers.ros2.emulator.actions import TrajectoryAction
from labctl.drivers.ros2.emulator.controllers import Joints
from labctl.drivers.ros2.emulator.trajectories import numbers, taken
from labctl.drivers.ros2.messages import (
    Float64,
    Float64MultiArray,
    Header,
    JointState,
    JointTrajectory,
    TwistStamped,
    time_of,
)
from labctl.drivers.ros2.network import Network, within
from labctl.drivers.ros2.options import BASE_FRAMES, MODELS, TURNED, Ros2EmulatorOptions
from labctl.drivers.sim.control_link import loopback
from labctl.drivers.sim.control_port import Arguments, Number, checked_fault
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.errors import InputError

TRAJECTORY = "/joint_trajectory_controller/joint_trajectory"
POSITIONS = "/forward_position_controller/commands"
TWIST = "/servo_node/delta_twist_cmds"  # MoveIt Servo's
HALF_TURN = np.array([-1.0, -1.0, 1.0, -1.0, -1.0, 1.0])  # about z
SERVO_TIMEOUT_S = 0.1  # its incoming_command_timeout: a twist that nothing follows is over
GRIPPER = "/gripper_controller/commands"
SCALING = "/speed_scaling_state_broadcaster/speed_scaling"
ALONE_S = 1.0  # in so long DDS finds a robot that is there
FINGER, OPEN_AT, CLOSED_AT, STROKE_M = "finger_joint", 0.0, 0.8, OPEN_M
FAULTS = {
    "silence": "seconds = no joint states for so long (default 4)",
    "controller_inactive": "the robot's controllers are loaded and inactive: they hear commands and do nothing, until "
    "cleared",
    "controller_unloaded": "the robot's controllers are not there, until cleared",
    "speed_slider": "fraction = of full speed, is said to be the robot's (default 0.5), until cleared",
    "goal_aborted": "the action gives up its goal, or its next: the joints are too far from where they ought to be",
    "goals_refused": "the action refuses every goal, until cleared",
    "stuck": "the joints stay where they are whatever is asked, until cleared",
}
ARGUMENTS: Arguments = {"silence": {"seconds": Number()}, "speed_slider": {"fraction": Number(most=1.0)}}
CLOCK = MonotonicClock()


def in_base(base: str, frame: str, twist: np.ndarray) -> np.ndarray | None:
    """A twist (6,) of that frame in the one that the robot's chain begins in; None for a frame that the robot has not.
    A UR has both frames of its description, see `BASE_FRAMES`.
    """
    if frame == base:
        return twist
    return twist * HALF_TURN if base == "base" and frame == TURNED else None


class Ros2Emulator:
    """See `labctl.drivers.sim.control_port.Emulator`."""

    faults: Mapping[str, str] = FAULTS
    ports: Mapping[str, int]
    in_cell: Mapping[str, int]

    def __init__(self, options: Ros2EmulatorOptions, host: str, fixture: Fixture) -> None:
        model = MODELS[options.model]
        self.name = f"ros2 {model.name}"
        self._period_ns = round(SECOND / options.rate_hz)
        period_s = self._period_ns / SECOND
        self.plant = SimulatedPlant(model, fixture, period_s, now_ns=CLOCK.now_ns())
        self._names, self._chain, self._frame = list(model.joint_names), model.chain, BASE_FRAMES[options.model]
        self._joints = Joints(self.plant.q, model.velocity)
        self._domain, self.in_cell = options.domain, {"domain": options.domain}
        self.ports = {f"ROS_DOMAIN_ID {options.domain}": 7400 + 250 * options.domain}
        self._network = Network(options.domain, "127.0.0.1")
        self._states = self._network.publisher("/joint_states", JointState)
        self._scaling, self._fraction = self._network.publisher(SCALING, Float64), 1.0
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._listening = contextlib.ExitStack()
        self._cycle = self._late = self._sent = self._commands = self._obeyed = 0
        self._silent_until = 0
        self._stuck, self._active, self._loaded = False, True, False
        self._now_s = CLOCK.now_ns() / SECOND  # of the last cycle, from which a command leads on
        self._network.subscribe(GRIPPER, Float64MultiArray, self._hear(self._grip))
        self._listen()
        try:
            self._alone()
        except InputError:
            self.close()
            raise

    def _alone(self) -> None:
        """Raises InputError where another robot is in this domain, or is begun at once: two that hear the same commands
        would both move.
        """
        domain, look = self._domain, Network(self._domain, "127.0.0.1")
        try:
            heard = look.subscribe("/joint_states", JointState, lambda _: None)
            asked = look.publisher(TRAJECTORY, JointTrajectory)
            if within(ALONE_S, lambda: heard.writers() > 1 or asked.readers() > 1):  # one of each is its own
                raise InputError(
                    f"ROS 2 domain {domain} has a robot on this computer already, whatever its --host: both would move "
                    "by the same commands; give this one a domain of its own by --option domain=N, and its cell too"
                )
        finally:
            look.close()

    def _listen(self) -> None:
        """The robot's controllers are loaded. They hear commands from now on, be they active or not, as those of
        ros2_controllers do from `on_configure` on.
        """
        self._loaded = True
        controllers = Network(self._domain, "127.0.0.1")
        self._listening.callback(controllers.close)
        controllers.subscribe(TRAJECTORY, JointTrajectory, self._hear(self._take))
        self._action = TrajectoryAction(controllers, self._hear, self._follow, self._stay)
        controllers.subscribe(POSITIONS, Float64MultiArray, self._hear(self._put))
        controllers.subscribe(TWIST, TwistStamped, self._hear(self._servo))

    def _hear(self, act: Callable[[Any], None]) -> Callable[[Any], None]:
        def heard(message: Any) -> None:
            self._asked.put(lambda: act(message))

        return heard

    def _follow(self, message: JointTrajectory) -> tuple[float, np.ndarray] | None:
        """When (s) and where the trajectory ends; None for one that is not taken, see `trajectories.taken`."""
        points = taken(message, self._names, CLOCK.now_ns() + CLOCK.wall_ahead_ns()) if self._active else None
        if points is None:
            return None
        self._commands += 1
        self._joints.follow(self._now_s, points)
        after, at = points[-1]
        return self._now_s + after, at

    def _take(self, message: JointTrajectory) -> None:
        self._follow(message)

    def _stay(self) -> None:
        self._joints.follow(self._now_s, [])

    def _put(self, message: Float64MultiArray) -> None:
        if self._active and numbers(message.data, len(self._names)):
            self._commands += 1
            self._joints.put(self._now_s, np.array(message.data))

    def _servo(self, message: TwistStamped) -> None:
        """As MoveIt Servo: the joints' speeds for the tool's, where they are now."""
        parts = (message.twist.linear, message.twist.angular)
        given = np.array([value for part in parts for value in (part.x, part.y, part.z)])
        wanted = in_base(self._frame, message.header.frame_id, given)
        if not self._active or wanted is None or not np.isfinite(wanted).all():
            return
        self._commands += 1
        jacobian = kinematics.jacobian(self._chain, self._joints.q[None, :])[0][0]
        speeds = np.linalg.lstsq(jacobian, wanted, rcond=1e-3)[0]
        self._joints.lead(self._now_s, speeds, SERVO_TIMEOUT_S)

    def _grip(self, message: Float64MultiArray) -> None:
        if len(message.data) == 1 and np.isfinite(message.data[0]):
            share = (message.data[0] - CLOSED_AT) / (OPEN_AT - CLOSED_AT)
            self.plant.grip(min(1.0, max(0.0, share)) * STROKE_M)

    def inject(self, name: str, args: Mapping[str, Any]) -> None:
        checked = checked_fault(name, args, FAULTS, ARGUMENTS)
        self._asked.put(lambda: self._obey(name, checked))

    def clear(self) -> None:
        self._asked.put(lambda: self._obey("", {}))

    def _obey(self, name: str, args: Mapping[str, Any]) -> None:
        match name:
            case "":
                if self._kept():
                    self._stay()  # it does not leap to where it was led meanwhile
                self._silent_until, self._stuck, self._fraction = 0, False, 1.0
                self.plant.clear_contact()
                self._action.refuses = self._action.aborts = False
                self._active = True
                if not self._loaded:
                    self._listen()
            case "silence":
                self._silent_until = CLOCK.now_ns() + round(args.get("seconds", 4.0) * SECOND)
            case "controller_inactive":
                self._active = False
                self._stay()
                self._action.deactivate()
            case "controller_unloaded":
                self._listening.close()
                self._loaded = False
                self._stay()
            case "speed_slider":
                self._fraction = args.get("fraction", 0.5)
            case "goal_aborted":
                self._action.abort()
            case "goals_refused":
                self._action.refuses = True
            case "stuck":
                self._stuck = True
        self._obeyed += 1

    def stats(self) -> dict[str, Any]:
        return {
            "states_sent": self._sent,
            "obeyed": self._obeyed,
            "goal": self._action.status,
            "robot_time_s": self._cycle * self._period_ns / SECOND,
            "commands": self._commands,
            "late_ticks": self._late,
            "q": self._joints.q.tolist(),
        }

    def run(self, until: Callable[[], bool]) -> None:
        due = CLOCK.now_ns()
        while not until():
            CLOCK.sleep_until(due)
            now = CLOCK.now_ns()
            while not self._asked.empty():
                self._asked.get()()
            for _ in range(max(1, (now - due) // self._period_ns + 1)):  # what this machine was too late for, too
                self._tick(due)
                due += self._period_ns
            self._late += due < now
            if now >= self._silent_until:
                self._publish()

    def _tick(self, now_ns: int) -> None:
        self._cycle += 1
        if self._kept():
            self._joints.stand()
        else:
            self._joints.advance(now_ns / SECOND, self._period_ns / SECOND)
        self._now_s = now_ns / SECOND
        self._action.advance(self._now_s, self._joints.q)
        self.plant.tick(self._joints.q, now_ns)

    def _kept(self) -> bool:
        """Do the joints stay where they are, whatever is asked?"""
        return self._stuck or bool(self.plant.contact)

    def _publish(self) -> None:
        self._sent += 1
        share = self.plant.opening / STROKE_M
        finger = CLOSED_AT + share * (OPEN_AT - CLOSED_AT)
        joints = [*self._joints.q.tolist(), finger]
        speeds, none = [*self._joints.dq.tolist(), 0.0], [0.0] * len(joints)
        header = Header(time_of(round(self._cycle * self._period_ns)), "")
        self._scaling.send(Float64(100 * self._fraction))
        self._states.send(JointState(header, [*self._names, FINGER], joints, speeds, none))

    def close(self) -> None:
        self._listening.close()
        self._network.close()


def build(options: Ros2EmulatorOptions, *, host: str, fixture: Fixture) -> Ros2Emulator:
    """On loopback. Raises InputError for a host that is not."""
    return Ros2Emulator(options, loopback(host), fixture)
