"""Driver "franka": a Franka FR3 through franky-control (libfranka's FCI), with a gripper by name.

May not: recover or home the arm without being told, ask for realtime scheduling unless the cell does, or let a vendor's
exception pass unmapped. Unverified on hardware: see docs/hardware.md.

The 1 kHz loop is libfranka's own thread. At the cell's control rate it is handed a velocity that leads through the
setpoint (feed-forward plus a share of the position error), valid for HOLD_MS and followed by a stop: when this process
stalls, the arm comes to rest by itself.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import Any

import franky
import numpy as np
from labctl.drivers.common import kinematics
from labctl.drivers.common.arms import FR3, HAND_M, Arm, with_tool
from labctl.drivers.common.franka_words import error_names, what_is_wrong
from labctl.drivers.common.options import Options
from labctl.drivers.common.states import Sample, States
from labctl.drivers.common.streamed import StreamedArm
from labctl.drivers.common.urgency import urgent

from labctl.clock import MILLISECOND, MonotonicClock
from labctl.devices import RobotStatus, load
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError

KNOWN = (
    *("host", "servo", "realtime", "dynamics_factor", "home_rad", "home_speed_rad_s", "tool_z_m", "load_kg"),
    *("load_com_m", "collision_torque_nm", "collision_force_n", "gripper"),
)
# No streamed positions: replaced every 10 ms, franky's position motions break the FR3's jerk limit (measured).
SERVOS = ("velocity", "cartesian")
FACTOR_CAP = 0.5  # at 1.0 franky 2.0.0 asks for more acceleration than an FR3 allows (measured, facts on the FCI)
HOLD_MS = 100  # a velocity is held this long before the stop behind it begins
LOST_NS = 500 * MILLISECOND
CORRECT_PER_S = 8.0  # share of the position error that is corrected in a second
TOOL_TOLERANCE_M = 1e-3
SETTLED_RAD, SETTLE_CYCLES = 2e-5, 150
READ_WAIT_S = 0.002
JOIN_S = 3.0

# What franky raises. Its own exceptions do not all share one base class, and a closed socket surfaces as RuntimeError.
LOST = (franky.NetworkException, franky.ProtocolException, franky.IncompatibleVersionException)
REFUSED = (
    *(franky.CommandException, franky.ControlException, franky.RealtimeException, franky.ModelException),
    *(franky.InvalidMotionTypeException, franky.InvalidOperationException, franky.MotionReuseException),
    *(franky.ReactionRecursionException, franky.TorqueSignalTimeoutException, franky.GripperException),
    franky.Exception,
)
VENDOR = (*LOST, *REFUSED, RuntimeError)


def mapped(error: BaseException) -> DeviceError:
    """labctl's error for one of franky's: the link is gone, or the robot refused. One line, the vendor's words kept."""
    text = " ".join(str(error).split())
    if isinstance(error, LOST):
        return DeviceLost(f"FCI: {text}")
    if isinstance(error, REFUSED):
        return DeviceRefused(f"FCI: {text}")
    return DeviceLost(f"FCI: {text or type(error).__name__}")


class FrankaLink:
    """franky as the `Link` of a streamed arm."""

    def __init__(self, host: str, arm: Arm, options: Options, state_hz: float, control_hz: float) -> None:
        self._host, self._arm = host, arm
        self._servo = options.choice("servo", "velocity", SERVOS)
        self._enforce = options.choice("realtime", "ignore", ("ignore", "enforce")) == "enforce"
        self._factor = options.number("dynamics_factor", FACTOR_CAP, 0.01, FACTOR_CAP)
        self._home_speed = options.number("home_speed_rad_s", 0.3, 0.01, 1.0)
        self._load_kg = options.number("load_kg", 0.0, 0.0, 5.0)
        self._load_com = options.row("load_com_m", (0.0, 0.0, 0.0))
        self._torque = options.number("collision_torque_nm", 20.0, 1.0, 100.0)
        self._force = options.number("collision_force_n", 30.0, 1.0, 150.0)
        if state_hz < 1 or 1000 % state_hz:
            raise InputError(f"franka: robot.state_hz must divide 1000, the rate of the FCI; found {state_hz:g}")
        if control_hz > 200:
            raise InputError(f"franka: robot.control_hz must be at most 200, found {control_hz:g}")
        self._every_ms = round(1000 / state_hz)
        self._robot: Any = None
        self._states: States | None = None
        self._clock = MonotonicClock()
        self._end = threading.Event()
        self._reader: threading.Thread | None = None
        self._seen: Any = None
        self._seen_ms = -1
        self._seen_ns = 0
        self._lost = ""
        self._settling = 0

    def open(self, states: States) -> None:
        """Connect, set thresholds and load, compare the tool, begin to read. Raises DeviceLost or DeviceRefused."""
        self._states = states
        config = franky.RealtimeConfig.Enforce if self._enforce else franky.RealtimeConfig.Ignore
        try:
            robot = franky.Robot(self._host, relative_dynamics_factor=self._factor, realtime_config=config)
            if not self._enforce:  # libfranka raised this very thread to the highest priority, if it could
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            robot.set_collision_behavior(self._torque, self._force)
            if self._load_kg:
                robot.set_load(self._load_kg, self._load_com, [0.0] * 9)
            self._robot = robot
            self._read(robot.state)
        except VENDOR as error:
            raise mapped(error) from error
        self._compare_tool()
        self._reader = threading.Thread(target=self._read_on, name="fci-states", daemon=True)
        self._reader.start()

    def _compare_tool(self) -> None:
        tool = float(self._seen.F_T_EE.translation[2])
        wanted = self._arm.chain.tool_z - FR3.chain.tool_z + HAND_M
        if abs(tool - wanted) > TOOL_TOLERANCE_M:
            self.close()
            raise DeviceRefused(
                f"the robot's end effector is {tool:.4f} m beyond the flange, the cell says {wanted:.4f} m (tool_z_m); "
                "correct one of them: Desk, Settings, End effector, or the cell file"
            )

    # -- reading

    def _read_on(self) -> None:
        """While no motion runs, every state is fetched; while one runs, its callback hands over each cycle's state."""
        urgent()
        while not self._end.is_set():
            try:
                if self._robot.is_in_control:
                    self._end.wait(READ_WAIT_S)
                else:
                    self._read(self._robot.state)
            except VENDOR as error:
                if not self._end.is_set():
                    self._lost = str(mapped(error))
                return

    def _on_cycle(self, state: Any, *_: Any) -> None:
        self._read(state)

    def _read(self, state: Any) -> None:
        at_ms = state.time.to_msec()
        if at_ms <= self._seen_ms:
            return
        now = self._clock.now_ns()
        self._seen, self._seen_ms, self._seen_ns = state, at_ms, now
        if at_ms % self._every_ms:
            return
        pose = state.O_T_EE
        tcp = np.concatenate([pose.translation, pose.quaternion])
        assert self._states is not None
        newest = self._states.newest
        if newest is not None and newest.tcp[3:] @ tcp[3:] < 0:
            tcp[3:] = -tcp[3:]  # one rotation has two quaternions: stay on the side of the last one
        self._states.add(Sample(now, state.q, state.dq, state.tau_J, tcp, at_ms / 1000))

    # -- the servo thread

    def start_q(self) -> np.ndarray:
        return np.array(self._seen.q_d)

    def give(self, q: np.ndarray, dq: np.ndarray) -> None:
        self._settling = 0
        self._move(self._motion(q, dq))

    def _motion(self, q: np.ndarray, dq: np.ndarray) -> Any:
        hold = franky.Duration(HOLD_MS)
        if self._servo == "velocity":
            speed = dq + CORRECT_PER_S * (q - self._seen.q_d)
            points = [franky.JointVelocityWaypoint(speed, hold_target_duration=hold)]
            return franky.JointVelocityWaypointMotion([*points, franky.JointVelocityWaypoint(np.zeros(7))])
        twist = self._twist(q, dq)
        points = [franky.CartesianVelocityWaypoint(twist, hold_target_duration=hold)]
        return franky.CartesianVelocityWaypointMotion(
            [*points, franky.CartesianVelocityWaypoint(franky.Twist(np.zeros(3), np.zeros(3)))]
        )

    def _twist(self, q: np.ndarray, dq: np.ndarray) -> Any:
        """The tool's velocity that leads through the pose of q."""
        jacobian, tip, turn = kinematics.jacobian(self._arm.chain, q[None, :])
        twist = jacobian[0] @ dq
        at = np.array(self._seen.O_T_EE_c.matrix)
        twist[:3] += CORRECT_PER_S * (tip[0] - at[:3, 3])
        delta = turn[0] @ at[:3, :3].T
        skew = np.array([delta[2, 1] - delta[1, 2], delta[0, 2] - delta[2, 0], delta[1, 0] - delta[0, 1]])
        twist[3:] += CORRECT_PER_S * skew / 2
        return franky.Twist(twist[:3], twist[3:])

    def _move(self, motion: Any) -> None:
        motion.register_callback(self._on_cycle)
        try:
            self._robot.move(motion, asynchronous=True)
        except VENDOR as error:
            with contextlib.suppress(*VENDOR):  # the robot's own words for it are in its newest state
                self._read(self._robot.state)
            raise mapped(error) from error

    def rest(self, q: np.ndarray) -> bool:
        """Correct what is left of the way for at most SETTLE_CYCLES, then end the motion in order."""
        self._settling += 1
        if float(np.abs(q - self._seen.q_d).max()) > SETTLED_RAD and self._settling <= SETTLE_CYCLES:
            self._move(self._motion(q, np.zeros(7)))
            return False
        self.halt()
        return True

    def idle(self) -> None:
        """Nothing: the FCI asks for nothing while no motion runs."""

    def halt(self) -> None:
        if not self._robot.is_in_control:
            return
        kind = self._robot.current_control_signal_type
        types = franky.ControlSignalType
        if kind == types.JointVelocities:
            self._move(franky.JointVelocityStopMotion())
        elif kind == types.JointPositions:
            self._move(franky.JointStopMotion())
        elif kind == types.CartesianVelocities:
            self._move(franky.CartesianVelocityStopMotion())

    def home(self, q: np.ndarray) -> None:
        try:
            self.halt()
            self._robot.join_motion(JOIN_S)
            fastest = float(np.min(self._robot.joint_velocity_limit.get()))
            share = min(1.0, self._home_speed / (fastest * self._factor))
            factor = franky.RelativeDynamicsFactor(share, 0.5, 0.5)
            self._move(franky.JointMotion(franky.JointState(q), relative_dynamics_factor=factor))
        except VENDOR as error:
            raise mapped(error) from error

    def homing(self) -> bool:
        try:
            return bool(self._robot.poll_motion())
        except VENDOR as error:
            raise mapped(error) from error

    def recover(self) -> bool:
        with contextlib.suppress(*REFUSED):  # what ended the last motion is known; franky tells it once more
            self._robot.join_motion(JOIN_S)
        try:
            return bool(self._robot.recover_from_errors())
        except VENDOR as error:
            raise mapped(error) from error

    def health(self) -> RobotStatus:
        if self._lost:
            return RobotStatus("lost", self._lost)
        age_ns = self._clock.now_ns() - self._seen_ns
        if age_ns > LOST_NS:
            seconds = age_ns / 1e9
            why = f"no state from the robot for {seconds:.1f} s: network, power, or FCI switched off"
            return RobotStatus("lost", why)
        state = self._seen
        return what_is_wrong(state.robot_mode.name, error_names(state.current_errors))

    def close(self) -> None:
        """Come to rest first: a connection that ends in motion is a reflex."""
        try:
            if self._robot is not None and self._robot.is_in_control:
                self.halt()
                self._robot.join_motion(JOIN_S)
        except (DeviceError, *VENDOR):
            pass  # closing: the robot has stopped itself, or is gone
        self._end.set()
        if self._reader is not None:
            self._reader.join(JOIN_S)
            self._reader = None
        self._robot = None


def build(options: Mapping[str, Any], *, cell: Mapping[str, Any], fixture: Mapping[str, Any]) -> StreamedArm:
    """A Franka FR3; cell and fixture are the parsed files.

    Raises InputError for an option or limit it cannot take, or a cell that is not real or emulated.
    """
    given = Options("franka", options, KNOWN)
    if cell["cell"]["kind"] not in ("real", "emulated"):
        raise InputError(f"franka drives a real robot or an emulator; the cell's kind is {cell['cell']['kind']!r}")
    host = given.text("host")
    arm = with_tool(FR3, given.number("tool_z_m", HAND_M, 0.0, 0.5))
    home = arm.home if options.get("home_rad") == "default" else given.numbers("home_rad", None, 7)
    gripper = given.table("gripper") or {"driver": "franka_hand"}
    held = load(gripper.pop("driver", "franka_hand"), gripper, host=host)
    robot = cell["robot"]
    link = FrankaLink(host, arm, given, float(robot["state_hz"]), float(robot["control_hz"]))
    return StreamedArm(arm, link, held, cell, home)
