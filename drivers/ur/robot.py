"""Driver "ur5": a UR5 (CB3) or UR5e through ur_rtde (RTDE and an uploaded control script), with a gripper by name.

May not: power on, unlock or restart anything without an operator's word. Unverified on hardware: see docs/hardware.md.

A lost RTDE link makes ur_rtde's control client loop and then crash the process; nothing can be done about that here.
The robot's process dies, labctl says so, the campaign lives. The watchdog on the robot stops it when this process is
gone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import rtde_control
import rtde_receive

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture, RobotTable
from labctl.devices import Gripper, RobotStatus, load, no_stand_in
from labctl.drivers.common import kinematics
from labctl.drivers.common.about import library, tool_in_words
from labctl.drivers.common.limits import limits_of, tool_twist
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.options import check_place
from labctl.drivers.common.robot_tables import URS, RobotModel, with_tool
from labctl.drivers.common.servo.servoed_robot import ServoedRobot
from labctl.drivers.common.state_timeout import Silence
from labctl.drivers.common.states import Sample, States
from labctl.drivers.common.steps import Law
from labctl.drivers.common.thread_faults import fault_of
from labctl.drivers.common.tool_model import ToolModel
from labctl.drivers.ur.calibration import NOT_CALIBRATED, check_model, read_calibration
from labctl.drivers.ur.dashboard import AtThePendant, Switches, check_remote, switches
from labctl.drivers.ur.options import UrOptions
from labctl.drivers.ur.pose import from_ur, to_ur
from labctl.drivers.ur.vendor_errors import VENDOR, mapped
from labctl.drivers.ur.version import RTDE_PORT, Version, controller_version, what_is_missing
from labctl.drivers.ur.words import (
    ESTOP,
    FULL,
    IDLE,
    PLAYING,
    POWER_OFF,
    PROTECTIVE,
    RECOVERY,
    RUNNING,
    VARIABLES,
    has,
    what_is_wrong,
    what_slows,
)
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError
from labctl.plain import RobotAbout
from labctl.realtime import PRIORITY, allowed, urgent

CB3_HZ, E_SERIES_HZ = 125.0, 500.0
# The force the tool meets, base frame, as the controller estimates or (e-Series) measures it.
WRENCH = {**{f"wrench.f{axis}": "N" for axis in "xyz"}, **{f"wrench.t{axis}": "N.m" for axis in "xyz"}}
SCALED_NS = 200 * MILLISECOND  # slowed for so long by its safety limits, and not by one corner of its way
PROBE_S = 0.5
POLL_NS = MILLISECOND // 4
TRIES = 3
STOP_RAD_S2 = 4.0
SETTLED_RAD, SETTLE_CYCLES_S = 1e-4, 1.0
CORRECT_PER_S = 5.0
JOIN_S = 3.0


class UrLink:
    """ur_rtde as the `Link` of a streamed robot."""

    more: Mapping[str, str] = {"speed_scaling": "1", "target_speed_fraction": "1", **WRENCH}

    def __init__(self, robot_model: RobotModel, options: UrOptions, robot: RobotTable) -> None:
        """robot: the cell's table of that name."""
        self._robot_model, self._options, self._host = robot_model, options, options.host
        self.measured: MeasuredChain | None = None
        self.law: Law | None = None
        # a speed is held until the watchdog ends the program, which is a hold of its own
        self.coast_s = 1.0 / options.watchdog_hz if options.servo == "velocity" else 0.0
        self.news: Sequence[str] = ()
        self._model = ToolModel(robot_model)
        self._limits = limits_of(robot_model, robot.limits, None)
        self._state_hz, self._period_s = float(robot.state_hz), 1.0 / float(robot.control_hz)
        self._nap_ns, self._kick_ns = round(0.6 * SECOND / self._state_hz), round(options.kick_s() * SECOND)
        self._upper = options.register_offset == "upper"
        self._receive: Any = None
        self._control: Any = None
        self._switches: Switches = AtThePendant()
        self._states: States | None = None
        self._clock = MonotonicClock()
        self._end = threading.Event()
        self._reader: threading.Thread | None = None
        self._seen_ns = self._kicked_ns = self._scaled_ns = 0
        self._stamp = -1.0
        self._lost = ""
        self._version: Version | None = None
        self._serial: str | None = None
        self._silence = Silence()
        self._silence_ns = round(options.silence_s * SECOND)
        self._doing, self._unstopped = "", False  # servo or speed: what a halt has to end; one that was not taken
        self._settling, self._by_joints = 0.0, False

    def open(self, states: States) -> None:
        """Connect for reading, and for control if the robot is ready. Raises DeviceLost or DeviceRefused."""
        self._states = states
        try:
            self._version = controller_version(self._host, PROBE_S)
        except OSError as error:
            why = f"no robot answers on {self._host}:{RTDE_PORT} ({error})"
            look = "check the address, the cable, that it is on and, from PolyScope 5.10 on, that RTDE is enabled"
            raise DeviceLost(f"{why}; {look} (Settings, Security, Services)") from error
        self._receive = self._ask(
            lambda: rtde_receive.RTDEReceiveInterface(
                self._host, self._state_hz, VARIABLES, False, self._upper, PRIORITY + 1 if allowed() else 0
            )
        )
        given = self._options
        e_series = given.model != "ur5"  # a CB3 has no remote control
        self._switches = switches(self._host, self._version, given.robot_api_port, e_series=e_series)
        self._serial = self._switches.serial()
        self.measured = self._calibration()
        self._model = ToolModel(self._robot_model, self.measured)
        self._ask(self._read)
        self._reader = threading.Thread(target=self._read_on, name="rtde-states", daemon=True)
        self._reader.start()
        if self._ready_for_program():
            with contextlib.suppress(DeviceRefused):  # health says what is missing
                self._attach()

    def about(self) -> RobotAbout:
        given, version = self._options, self._version
        return {
            "model": f"Universal Robots {self._robot_model.name}",
            "serial": self._serial,
            "firmware": None if version is None else f"controller {'.'.join(map(str, version))}",
            "client": library("ur_rtde"),
            "tool": tool_in_words(given.tool(), given.payload_kg or None),
            "limits": {"watchdog_hz": given.watchdog_hz, "servo": given.servo},
        }

    def _calibration(self) -> MeasuredChain | None:
        """What was measured on this robot, if it says. Raises DeviceRefused for one that is no robot of this model."""
        found = read_calibration(self._host)
        if found is None:
            self.news = (NOT_CALIBRATED,)
        else:
            check_model(found, self._robot_model, self._options.model)
        return found

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except VENDOR as error:
            raise mapped(error) from error

    # -- reading

    def _read_on(self) -> None:
        urgent()
        last = self._stamp
        while not self._end.is_set():
            try:
                stamp = self._receive.getTimestamp()
                if stamp == last:
                    if not self._receive.isConnected():
                        self._lost = "UR: the RTDE connection was closed"
                        return
                    self._clock.sleep_until(self._clock.now_ns() + POLL_NS)
                    continue
                self._read()
                last = self._stamp
                self._clock.sleep_until(self._seen_ns + self._nap_ns)  # the next package is not there before
            except VENDOR as error:
                self._lost = str(mapped(error))
                return
            except Exception as error:  # a bug, and not the silence of a robot
                self._lost = f"UR: the thread that reads states failed ({fault_of('reading states', error)})"
                return

    def _read(self) -> None:
        receive, states = self._receive, self._states
        assert states is not None
        left = TRIES
        while True:  # what is asked for is of the newest package, and that may be another meanwhile
            now, stamp = self._clock.now_ns(), receive.getTimestamp()
            q, qd = np.array(receive.getActualQ()), np.array(receive.getActualQd())
            tcp = from_ur(receive.getActualTCPPose())
            moment = np.array(receive.getTargetMoment())
            scaling = receive.getSpeedScaling()
            wrench = np.array(receive.getActualTCPForce())
            more = np.array([scaling, receive.getTargetSpeedFraction(), *wrench])
            left -= 1
            if not left or receive.getTimestamp() == stamp:
                break
        slow = scaling < FULL and receive.getRuntimeState() == PLAYING
        self._scaled_ns = (self._scaled_ns or now) if slow else 0
        self._seen_ns, self._stamp = now, stamp
        states.add(now, Sample(q, qd, moment, tcp, stamp, more, wrench))

    # -- program

    def _ready_for_program(self) -> bool:
        receive = self._receive
        return receive.getRobotMode() == RUNNING and not receive.getSafetyStatusBits() & ~0b11

    def _attach(self) -> None:
        """Send the control program; set tool, payload and the watchdog on it."""
        given = self._options
        if missing := what_is_missing(self._version, upper=self._upper):
            raise DeviceRefused(missing)
        check_remote(self._switches)
        self._detach()
        if self._receive.getRuntimeState() == PLAYING:
            self._switches.end_program()
        flags = rtde_control.RTDEControlInterface.FLAG_UPLOAD_SCRIPT
        if self._upper:
            flags |= rtde_control.RTDEControlInterface.FLAG_UPPER_RANGE_REGISTERS
        control = self._ask(lambda: rtde_control.RTDEControlInterface(self._host, 1 / self._period_s, flags))
        tool = to_ur((*given.tool().xyz, *kinematics.tool_quaternion(self._robot_model.chain)))
        try:
            self._take("tool centre point", lambda: control.setTcp(tool))
            if given.payload_kg:
                self._take("payload", lambda: control.setPayload(given.payload_kg, list(given.payload_cog_m)))
            self._take("watchdog", lambda: control.setWatchdog(given.watchdog_hz))
        except DeviceError:
            _end(control.stopScript)
            _end(control.disconnect)
            raise
        self._control, self._doing, self._unstopped = control, "", False
        self._kicked_ns = self._clock.now_ns()

    def _take(self, what: str, call: Callable[[], Any]) -> None:
        if self._ask(call) is False:
            raise DeviceRefused(f"the robot's program did not take its {what}: acknowledge to send it once more")

    def _detach(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            with contextlib.suppress(*VENDOR):  # the program may have ended already
                control.disconnect()

    # -- the servo thread

    def start_q(self) -> np.ndarray:
        return np.array(self._receive.getTargetQ())

    def _do(self, done: Any, doing: str) -> None:
        if done is False:
            raise DeviceRefused("the robot's program does not run")
        self._doing, self._unstopped, self._kicked_ns = doing, False, self._clock.now_ns()

    def send_setpoint(self, q: np.ndarray, dq: np.ndarray, *, by_joints: bool = False) -> None:
        self._settling, self._by_joints = 0.0, by_joints
        control = self._control
        if control is None:
            raise DeviceRefused("labctl's program is not on the robot")
        given = self._options
        args = (0.0, 0.0, self._period_s, given.lookahead_s, given.gain)
        if by_joints or given.servo == "joint":
            self._do(self._ask(lambda: control.servoJ(q.tolist(), *args)), "servo")
        elif given.servo == "cartesian":
            pose = to_ur(self._pose(q))
            self._do(self._ask(lambda: control.servoL(pose, *args)), "servo")
        else:
            at = self.start_q()
            twist = tool_twist(self._robot_model, at, dq + CORRECT_PER_S * (q - at), self._limits)
            self._do(self._ask(lambda: control.speedL(twist.tolist(), 1.0, 2 * self._period_s)), "speed")

    def _pose(self, q: np.ndarray) -> np.ndarray:
        """Where the controller has the tool (7,) with joints q: not where the published table has it."""
        if (newest := self._states.newest if self._states else None) is not None:
            self._model.seen(newest.q, newest.tcp)
        return self._model.pose(q)

    def hold(self, q: np.ndarray) -> bool:
        """Wait until the servo has caught up, for at most a second; then end it."""
        self._settling += self._period_s
        newest = self._states.newest if self._states else None
        far = newest is not None and float(np.abs(newest.q - q).max()) > SETTLED_RAD
        if far and self._settling < SETTLE_CYCLES_S:
            if self._options.servo == "velocity" and not self._by_joints:
                settling = self._settling
                self.send_setpoint(q, np.zeros(6))
                self._settling = settling
            else:
                self.keep_alive()
            return False
        self.halt()
        return True

    def keep_alive(self) -> None:
        """Tell the watchdog on the robot that somebody is there; of one that did not take its stop, that nobody is."""
        if self._unstopped:
            self.halt()
            return
        now = self._clock.now_ns()
        if self._control is not None and now - self._kicked_ns >= self._kick_ns:
            self._kicked_ns = now
            if self._receive.getRuntimeState() == PLAYING:
                self._ask(self._control.kickWatchdog)

    def halt(self) -> None:
        control, doing, self._doing, self._unstopped = self._control, self._doing, "", False
        if control is None or not doing:
            return
        stop = {"servo": control.servoStop, "speed": control.speedStop}[doing]
        if self._ask(lambda: stop(STOP_RAD_S2)) is False and self._receive.getRuntimeState() == PLAYING:
            self._doing, self._unstopped = doing, True

    def recover(self) -> bool:
        """One step towards a running robot with our program on it."""
        receive, switch = self._receive, self._switches
        bits, mode = receive.getSafetyStatusBits(), receive.getRobotMode()
        if has(bits, ESTOP):
            raise DeviceRefused("emergency stop: release the button first")
        if has(bits, PROTECTIVE):
            check_remote(switch)
            switch.unlock()
            return False
        if has(bits, RECOVERY):
            raise DeviceRefused(self._state().reason)
        if mode != RUNNING:
            if not self._options.power_on:
                raise DeviceRefused(self.health().reason)
            if mode in (POWER_OFF, IDLE):
                check_remote(switch)
                (switch.power_on if mode == POWER_OFF else switch.release_brakes)()
            return False  # all other modes pass by themselves
        if self._ready_for_program() and self._state().mode != "idle":
            self._attach()
        return self.health().mode == "idle"

    def lost(self) -> str:
        age_ns = self._silence.age_ns(self._seen_ns, self._clock.now_ns())
        if self._lost or age_ns <= self._silence_ns:
            return self._lost
        return f"no state from the robot for {age_ns / 1e9:.1f} s: network or power"

    def health(self) -> RobotStatus:
        if lost := self.lost():
            return RobotStatus("lost", lost)
        found = self._state()
        since_ns = self._scaled_ns  # the reading thread writes it
        scaled = since_ns and self._seen_ns - since_ns >= SCALED_NS
        scaling = self._receive.getSpeedScaling() if scaled else 1.0
        slow = what_slows(self._receive.getTargetSpeedFraction(), scaling)
        return RobotStatus("fault", slow) if slow and found.mode == "idle" else found

    def _state(self) -> RobotStatus:
        receive = self._receive
        return what_is_wrong(
            receive.getRobotMode(),
            receive.getSafetyStatusBits(),
            receive.getRuntimeState(),
            attached=self._control is not None,
            power_on=self._options.power_on,
        )

    def close(self) -> None:
        """End the program on the robot, then the connections."""
        if self._control is not None and not self._lost:
            with contextlib.suppress(*VENDOR):  # closing: nobody is left to hear of it
                self._control.stopScript()
        self._end.set()
        if self._reader is not None:
            self._reader.join(JOIN_S)
            self._reader = None
        ends = [part.disconnect for part in (self._control, self._receive) if part is not None]
        with ThreadPoolExecutor() as pool:  # each takes half a second
            list(pool.map(_end, [*ends, self._switches.close]))
        self._control = None


def _end(close: Callable[[], None]) -> None:
    with contextlib.suppress(*VENDOR):  # closing: nobody is left to hear of it
        close()


def build(options: UrOptions, *, cell: Cell, fixture: Fixture) -> ServoedRobot:
    """A Universal Robots arm; cell and fixture are the parsed files.

    Raises InputError for a rate or limit it cannot take, or a cell that is not real or emulated.
    """
    check_place("ur5", cell, options.host)
    base, most_hz = URS[options.model], CB3_HZ if options.model == "ur5" else E_SERIES_HZ
    robot = cell.robot
    for key, rate_hz in (("state_hz", robot.state_hz), ("control_hz", robot.control_hz)):
        if not 1 <= rate_hz <= most_hz:
            raise InputError(f"ur5: robot.{key} must be from 1 to {most_hz:g} for a {base.name}, found {rate_hz:g}")
    robot_model, held = with_tool(base, options.tool()), options.held()
    gripper: Gripper = no_stand_in(load(held.driver, held.options, host=options.host), held.driver, cell.kind)
    link = UrLink(robot_model, options, robot)
    return ServoedRobot(robot_model, link, gripper, cell, options.home(robot_model.home), options.home_speed_rad_s)
