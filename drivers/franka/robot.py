"""Driver "franka": a Franka FR3 through franky-control (libfranka's FCI), with a gripper by name.

May not: recover or home the robot without a person's word, ask for realtime scheduling unless the cell does, or let a
vendor's exception pass unmapped. Unverified on hardware: see docs/hardware.md.

The 1 kHz loop is libfranka's own thread. At the cell's control rate it is handed a velocity that leads through the
setpoint (feed-forward plus a share of the position error), valid for HOLD_MS and followed by a stop: when this process
stalls, the robot comes to rest by itself. Under `servo = "impedance"` it is handed targets of a law that pulls the
robot there (`impedance`): when this process stalls, the robot comes to rest at the last. franky's JointImpedanceTracker
is a loop with its own pace around that same motion, and waits; so the motion is used without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import franky
import numpy as np

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture, RobotTable
from labctl.devices import Gripper, RobotStatus, load, no_stand_in
from labctl.drivers.common import kinematics
from labctl.drivers.common.about import tool_in_words
from labctl.drivers.common.limits import limits_of, slowed, within_tool_speed
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.options import check_place
from labctl.drivers.common.robot_tables import FER, FR3, RobotModel, with_tool
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.drivers.common.state_timeout import Silence, within
from labctl.drivers.common.states import States
from labctl.drivers.common.steps import Law
from labctl.drivers.franka import impedance
from labctl.drivers.franka.options import CONNECT_S, FrankaOptions
from labctl.drivers.franka.reading import FciReading
from labctl.drivers.franka.tool import unlike
from labctl.drivers.franka.tool_share import ACCELERATION, JERK, JOINT_SHARE, elbow_kept, tool_share
from labctl.drivers.franka.versions import client, libfranka, robot_server
from labctl.drivers.franka.words import what_is_wrong
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError
from labctl.plain import RobotAbout
from labctl.realtime import VENDOR_PRIORITY, pin_to_one_core, raised, unpin

# Joints' jerks, likewise, and of the FER; their accelerations are those of `robot_tables`
JOINT_RAD_S3 = {"fr3": np.full(7, 5000.0), "fer": np.array([7500.0, 3750, 5000, 6250, 7500, 10_000, 10_000])}
FRANKAS = {"fr3": FR3, "fer": FER}
HOLD_MS = 100  # a velocity is held this long before the stop behind it begins
ENDS_S = 0.12  # so long after it was asked for a speed still fits the joints' ends: held, and taken up a moment later
FRESH_NS, TRIES = 5 * MILLISECOND, 3  # of those ENDS_S - HOLD_MS leaves, so much may be lost before it is taken up
CORRECT_PER_S = 8.0  # share of the position error that is corrected in a second
SETTLED_RAD, SETTLE_MS = 2e-5, 1500  # by the robot's clock, as LEAST_MS
LEAST_MS = 200  # a step shows in speeds some milliseconds after it was given
SETTLED_RAD_S = 0.01  # slower than this a robot under the impedance law has arrived
# A stop under it, N m s/rad: a robot of a few kg m2 (the wrist of 0.1) comes to rest in a fifth of a second
STOP_DAMPING, STOP_RAMP_S = (25.0, 25.0, 25.0, 25.0, 5.0, 5.0, 5.0), 0.1
JOIN_S = 3.0
SILENT = f"FCI: the robot took the connection and has not answered for {CONNECT_S:g} s; it has one client only: end any"
SILENT += " other program that is connected to it, or switch FCI off and on in Desk"

# What franky raises. Its own exceptions do not all share one base class, and a closed socket surfaces as RuntimeError.
LOST = (franky.NetworkException, franky.ProtocolException, franky.IncompatibleVersionException)
REFUSED = (
    *(franky.CommandException, franky.ControlException, franky.RealtimeException, franky.ModelException),
    *(franky.InvalidMotionTypeException, franky.InvalidOperationException, franky.MotionReuseException),
    *(franky.ReactionRecursionException, franky.TorqueSignalTimeoutException, franky.GripperException),
    franky.Exception,
)
VENDOR = (*LOST, *REFUSED, RuntimeError)


KINDS = {
    "cartesian": franky.ControlSignalType.CartesianVelocities,
    "impedance": franky.ControlSignalType.Torques,
}


def mapped(error: BaseException) -> DeviceError:
    """labctl's error for one of franky's: the link is gone, or the robot refused. One line, the vendor's words kept."""
    text = " ".join(str(error).split())
    if isinstance(error, LOST):
        return DeviceLost(f"FCI: {text}")
    if isinstance(error, REFUSED):
        return DeviceRefused(f"FCI: {text}")
    return DeviceLost(f"FCI: {text or type(error).__name__}")


class FrankaLink:
    """franky as the `Link` of a streamed robot."""

    measured: MeasuredChain | None = None  # the FCI does not say

    def __init__(self, robot_model: RobotModel, options: FrankaOptions, robot: RobotTable) -> None:
        """robot: the cell's table of that name."""
        self._robot_model, self._options = robot_model, options
        outside = {f"tau_ext.{joint}": "N.m" for joint in robot_model.joint_names}
        self.more: Mapping[str, str] = {"control_command_success_rate": "1", **outside}
        self._limits = limits_of(robot_model, robot.limits, None)
        self._fastest = self._limits.velocity
        state_hz, control_hz = float(robot.state_hz), float(robot.control_hz)
        if state_hz < 1 or 1000 % state_hz:
            raise InputError(f"franka: robot.state_hz must divide 1000, the rate of the FCI; found {state_hz:g}")
        if control_hz > 200:
            raise InputError(f"franka: robot.control_hz must be at most 200, found {control_hz:g}")
        self._reading = FciReading(options.host, options.states, round(1000 / state_hz), mapped)
        self._robot: Any = None
        self._clock = MonotonicClock()
        self._silence = Silence()
        self._silence_ns = round(options.silence_s * SECOND)
        # held for HOLD_MS; from the fastest to rest a robot goes as far as at that speed in half of the time
        self.coast_s = HOLD_MS / 1000 + float((self._fastest / robot_model.acceleration).max()) / 2 / JOINT_SHARE
        self._settling_ms, self._ending = -1, False  # the robot's time when it began to settle
        self._by_joints = options.servo == "velocity"
        self._given = None  # the kind of the motions that were given last
        self._droid = impedance.DroidLaw(robot_model) if options.servo == "impedance" else None
        self.news: Sequence[str] = ()
        self.law: Law | None = self._droid.rate if self._droid is not None else None
        # the motion that follows targets under the law
        self._tracking: franky.JointImpedanceTrackingMotion | None = None

    def open(self, states: States) -> None:
        """Connect, set thresholds and load, compare the tool, begin to read. Raises DeviceLost or DeviceRefused."""
        pin_to_one_core()  # not so with ur_rtde: its calls wait for its own threads, which then have no core left
        given = self._options
        enforce = given.realtime == "enforce"
        config = franky.RealtimeConfig.Enforce if enforce else franky.RealtimeConfig.Ignore
        try:
            # libfranka raises the thread that connects to the highest priority, if it can, and waits for ever
            robot = within(
                CONNECT_S,
                lambda: franky.Robot(
                    given.host, relative_dynamics_factor=given.dynamics_factor, realtime_config=config
                ),
                SILENT,
            )
            robot.set_collision_behavior(given.collision_torque_nm, given.collision_force_n)
            self._set_load(robot)
            self._robot = robot
            self._bound(robot)
            self._fastest = np.minimum(self._limits.velocity, robot.joint_velocity_limit.get())
            self._compare_tool(robot.state)
            self._reading.open(robot, states)
            self.news = self._reading.news
        except VENDOR as error:
            raise mapped(error) from error

    def _bound(self, robot: franky.Robot) -> None:
        """franky 2.0.0 has a Panda's limits for every robot: no motion of it, and no stop, beyond an FR3's."""
        jerks = JOINT_RAD_S3[self._options.model]
        accelerations = self._robot_model.acceleration
        for limit, most in ((robot.joint_acceleration_limit, accelerations), (robot.joint_jerk_limit, jerks)):
            limit.set(np.minimum(limit.max, JOINT_SHARE * most / self._options.dynamics_factor))
        of_the_tool = (robot.translation_acceleration_limit, robot.rotation_acceleration_limit)
        jerks_of_it = (robot.translation_jerk_limit, robot.rotation_jerk_limit)
        for limit, most in zip((*of_the_tool, *jerks_of_it), (*ACCELERATION, *JERK), strict=True):
            limit.set(min(limit.max, most))

    def _set_load(self, robot: Any) -> None:
        """As the cell says; of none, where the robot has one still: it may be another campaign's."""
        if self._options.load_kg or robot.state.m_load:
            robot.set_load(self._options.load_kg, list(self._options.load_com_m), [0.0] * 9)

    def _compare_tool(self, state: Any) -> None:
        given = self._options
        wrong = unlike(np.array(state.F_T_EE.matrix), float(state.m_ee), given.tool(), given.tool_kg)
        if wrong:
            self.close()
            raise DeviceRefused(wrong)

    def about(self) -> RobotAbout:
        """The FCI tells no serial number, and of the robot's software the server alone (`versions`)."""
        given = self._options
        return {
            "model": f"Franka {self._robot_model.name}",
            "serial": None,
            "firmware": robot_server(libfranka()),
            "client": client(),
            "tool": {**tool_in_words(given.tool(), given.tool_kg), "load_kg": given.load_kg},
            "limits": {
                "collision_torque_nm": given.collision_torque_nm,
                "collision_force_n": given.collision_force_n,
                "dynamics_factor": given.dynamics_factor,
                "fastest_rad_s": self._fastest.tolist(),
                "servo": given.servo,
            },
        }

    # -- the servo thread

    def start_q(self) -> np.ndarray:
        return self._reading.newest().q_d

    def send_setpoint(self, q: np.ndarray, dq: np.ndarray, *, by_joints: bool = False) -> bool:
        self._settling_ms = -1
        self._by_joints = by_joints or self._options.servo == "velocity"
        if self._another_ends():
            return False
        kind = self._kind()
        anew, self._ending, self._given = self._ending or self._given != kind, False, kind
        if kind == franky.ControlSignalType.Torques:
            self._pull(q, anew)
        else:
            self._give(q, dq)
        return True

    def _kind(self) -> Any:
        return franky.ControlSignalType.JointVelocities if self._by_joints else KINDS[self._options.servo]

    def _another_ends(self) -> bool:
        """A motion of one kind has to end, its stop too, before one of the other begins: does one?"""
        if not self._robot.is_in_control or self._given == self._kind():
            return False
        if not self._ending:
            self._ending = True
            self.halt()
        return True

    def _give(self, q: np.ndarray, dq: np.ndarray) -> None:
        """Hand over a speed for where the robot is. One that took long, because this thread stood still meanwhile, is
        of where it was: twice late, such a speed led beyond what a joint's end allowed (seen). It is computed anew, for
        twice that time. Where even that is too short time and again none is given, and the stop behind the last comes.
        """
        late_ns = 0
        for _ in range(TRIES):
            began_ns = self._clock.now_ns()
            motion = self._motion(q, dq, late_ns / SECOND)
            took_ns = self._clock.now_ns() - began_ns
            if took_ns < FRESH_NS + late_ns:
                self._move(motion)
                return
            late_ns = 2 * took_ns

    def _pull(self, q: np.ndarray, anew: bool) -> None:
        """Send the robot to q under the impedance law, by a motion of its own where none of that kind is under way."""
        assert self._droid is not None
        reference, gains = franky.JointReference(q=q), franky.CartesianImpedanceGains()
        gains.stiffness, gains.damping = self._droid.at_tool(self._reading.newest().q)
        if self._tracking is not None and not anew and self._robot.is_in_control:
            self._tracking.set_cartesian_gains(gains)
            self._tracking.set_reference(reference)
            return
        tracking = self._tracking = franky.JointImpedanceTrackingMotion(
            stiffness=impedance.JOINT_STIFFNESS,
            damping=impedance.JOINT_DAMPING,
            cartesian_stiffness=self._droid.flange_stiffness,
            cartesian_damping=impedance.FLANGE_DAMPING,
            max_delta_tau=impedance.TORQUE_STEP,
            gains_time_constant=impedance.GAINS_S,
        )
        tracking.set_cartesian_gains(gains)
        tracking.set_reference(reference)
        self._move(tracking)

    def _motion(self, q: np.ndarray, dq: np.ndarray, late_s: float = 0.0) -> Any:
        hold = franky.Duration(HOLD_MS)
        if self._by_joints:
            first = franky.JointVelocityWaypoint(self._speed(q, dq, late_s), hold_target_duration=hold)
            return franky.JointVelocityWaypointMotion([first, franky.JointVelocityWaypoint(np.zeros(7))])
        jacobian, tip, turn = kinematics.jacobian(self._robot_model.chain, q[None, :])
        twist = franky.Twist(*self._twist(jacobian[0] @ dq, tip[0], turn[0]))
        first = franky.CartesianVelocityWaypoint(twist, hold_target_duration=hold)
        stop = franky.CartesianVelocityWaypoint(franky.Twist(np.zeros(3), np.zeros(3)))
        share = self._share(jacobian[0])
        return franky.CartesianVelocityWaypointMotion([first, stop], relative_dynamics_factor=share)

    def _speed(self, q: np.ndarray, dq: np.ndarray, late_s: float) -> np.ndarray:
        """The joints' speeds (7,) that lead through q with dq: neither they nor the tool beyond the limits, or
        what is left near a joint's end once it is taken up late_s later than it should be.
        """
        now, ends = self._reading.present(), self._robot_model.ends
        speed = slowed(dq + CORRECT_PER_S * (q - now.q_d), self._fastest)
        if ends is not None:  # what is commanded is judged by one of the two, what is measured by the other
            speed = ends.within(ends.within(speed, now.q_d, ENDS_S + late_s), now.q, ENDS_S + late_s)
        # last: where one joint alone is slowed, two that had cancelled each other at the tool may not any more
        return within_tool_speed(self._robot_model, now.q_d, speed, self._limits.tool_speed)

    def _share(self, jacobian: np.ndarray) -> Any:
        """`tool_share` as a part of the robot's own factor."""
        share = min(1.0, tool_share(jacobian, self._robot_model.acceleration) / self._options.dynamics_factor)
        return franky.RelativeDynamicsFactor(1.0, share, share)

    def _twist(self, twist: np.ndarray, tip: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tool's velocities (3,) and (3,) leading through a pose, tip (3,) and turn (3, 3), with a twist (6,): the
        tool within the cell's and the robot's limits, its joints within the cell's as the robot keeps its elbow.
        """
        now = self._reading.present()
        at = now.pose_c
        delta = turn @ at[:3, :3].T
        skew = np.array([delta[2, 1] - delta[1, 2], delta[0, 2] - delta[2, 0], delta[1, 0] - delta[0, 1]])
        twist = twist + CORRECT_PER_S * np.concatenate([tip - at[:3, 3], skew / 2])
        tool = min(self._limits.tool_speed, float(self._robot.translation_velocity_limit.get()))
        turning = float(self._robot.rotation_velocity_limit.get())
        joints = elbow_kept(kinematics.jacobian(self._robot_model.chain, now.q_d[None, :])[0][0])[:, :6] @ twist
        fastest = float((np.abs(joints) / self._fastest).max())
        share = max(1.0, fastest, float(np.linalg.norm(twist[:3])) / tool, float(np.linalg.norm(twist[3:])) / turning)
        return twist[:3] / share, twist[3:] / share

    def _move(self, motion: Any) -> None:
        if self._reading.callback is not None:
            motion.register_callback(self._reading.callback)
        try:
            # a control session begins a thread of libfranka's, scheduled as whoever begins it: before our own
            with contextlib.nullcontext() if self._robot.is_in_control else raised(VENDOR_PRIORITY):
                self._robot.move(motion, asynchronous=True)
        except VENDOR as error:
            with contextlib.suppress(*VENDOR):  # the robot's own words for it are in its newest state
                self._reading.refresh()
            raise mapped(error) from error

    def hold(self, q: np.ndarray) -> bool:
        """Correct what is left of the way for at most SETTLE_MS, then end the motion in order."""
        if self._another_ends():
            self._settling_ms = -1
            return False
        newest = self._reading.newest()
        self._settling_ms = newest.number if self._settling_ms < 0 else self._settling_ms
        for_ms = newest.number - self._settling_ms
        if for_ms <= SETTLE_MS:
            torques = self._kind() == franky.ControlSignalType.Torques
            if torques and self._given == self._kind():
                if float(np.abs(newest.dq).max()) > SETTLED_RAD_S or for_ms < LEAST_MS:
                    return False  # the law pulls it there
            elif float(np.abs(q - newest.q_d).max()) > SETTLED_RAD:
                self._given, self._ending = self._kind(), False
                self._pull(q, True) if torques else self._give(q, np.zeros(7))
                return False
        if not self._ending:
            self._ending = True
            self.halt()
        return not self._robot.is_in_control or for_ms > 2 * SETTLE_MS

    def keep_alive(self) -> None:
        """Nothing: the FCI asks for nothing while no motion runs."""

    def halt(self) -> None:
        if not self._robot.is_in_control:
            return
        kind = self._robot.current_control_signal_type
        types = franky.ControlSignalType
        if kind == types.JointVelocities:
            self._move(franky.JointVelocityStopMotion())
        elif kind == types.CartesianVelocities:
            share = self._share(kinematics.jacobian(self._robot_model.chain, self.start_q()[None, :])[0][0])
            self._move(franky.CartesianVelocityStopMotion(share))
        elif kind == types.Torques:
            self._move(
                franky.TorqueStopMotion(
                    damping=STOP_DAMPING, ramp_duration=STOP_RAMP_S, max_delta_tau=impedance.TORQUE_STEP
                )
            )

    def recover(self) -> bool:
        with contextlib.suppress(*REFUSED):  # what ended the last motion is known; franky tells it once more
            self._robot.poll_motion()
        if self._robot.is_in_control:
            raise DeviceRefused("a motion has not ended yet")
        try:
            return bool(self._robot.recover_from_errors())
        except VENDOR as error:
            raise mapped(error) from error

    def lost(self) -> str:
        age_ns = self._silence.age_ns(self._reading.heard_ns, self._clock.now_ns())
        if self._reading.lost or age_ns <= self._silence_ns:
            return self._reading.lost
        return f"no state from the robot for {age_ns / 1e9:.1f} s: network, power, or FCI switched off"

    def health(self) -> RobotStatus:
        if lost := self.lost():
            return RobotStatus("lost", lost)
        state = self._reading.newest()
        return what_is_wrong(state.mode, state.errors)

    def close(self) -> None:
        """Come to rest first: a connection that ends in motion is a reflex."""
        try:
            if self._robot is not None and self._robot.is_in_control:
                self.halt()
                self._robot.join_motion(JOIN_S)
        except (DeviceError, *VENDOR):
            pass  # closing: the robot has stopped itself, or is gone
        self._reading.close()
        self._robot = None
        unpin()


def build(options: FrankaOptions, *, cell: Cell, fixture: Fixture) -> ServoedRobot:
    """A Franka FR3 or FER; cell and fixture are the parsed files.

    Raises InputError for a rate or limit it cannot take, or a cell that is not real or emulated.
    """
    check_place("franka", cell, options.host)
    robot_model, held = with_tool(FRANKAS[options.model], options.tool()), options.held()
    gripper: Gripper = no_stand_in(load(held.driver, held.options, host=options.host), held.driver, cell.kind)
    link = FrankaLink(robot_model, options, cell.robot)
    return ServoedRobot(robot_model, link, gripper, cell, options.home(robot_model.home), options.home_speed_rad_s)
