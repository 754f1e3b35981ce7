"""An emulated Universal Robots controller: RTDE, dashboard, script inputs and gripper URCap in front of one body.

May not: send a burst after a stall: the clock advances, by `MADE_UP_S` at most, and one package goes out, as from a
controller that was never late. Faults are scripted, never the machine's slowness: what it was too late for its watchdog
holds against nobody.
"""

from __future__ import annotations

import contextlib
import queue
import select
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from labctl.clock import MonotonicClock
from labctl.config.cell_schema import Fixture
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.robotiq.emulator.server import RobotiqServer
from labctl.drivers.sim.control_port import Arguments, Number, Words, checked_fault, not_bound
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.drivers.ur.calibration import PRIMARY_PORT
from labctl.drivers.ur.emulator.body import BITS, PLAYING, POWER_OFF, RUNNING, STOPPED, Body
from labctl.drivers.ur.emulator.dashboard import Connection, Dashboard
from labctl.drivers.ur.emulator.primary import kinematics_info, measured, published, version_message
from labctl.drivers.ur.emulator.robot_api import RobotApiServer, request_end
from labctl.drivers.ur.emulator.rtde_server import RtdeServer
from labctl.drivers.ur.emulator.script import ControlScript, Registers, ScriptEnded
from labctl.drivers.ur.emulator.text import DASHBOARD_PORT, SCRIPT_PORTS, Answer, LineServer, line_end, program_end
from labctl.drivers.ur.options import UrEmulatorOptions
from labctl.drivers.ur.pose import to_ur
from labctl.drivers.ur.version import RTDE_PORT, asks_for_remote_control, has_dashboard, has_robot_api
from labctl.errors import InputError

CLOCK = MonotonicClock()
MOST_UNSENT = 5000  # cycles remembered that this machine was too late to send
MADE_UP_S = 0.02  # of lateness at once: of more, the robot's clock stands still meanwhile
CLOSEST = 0.6  # of a period: no two packages follow each other closer, however late the first was
INTS = [(i, f"output_int_register_{i}") for i in (*range(3), *range(12, 20), *range(24, 27))]
DOUBLES = [(i, f"output_double_register_{i}") for i in (*range(6), *range(12, 20), *range(24, 30))]
STILL: dict[str, object] = {
    "joint_mode": [253] * 6,
    "joint_temperatures": [30.0] * 6,
    "tool_mode": 253,
    "tool_temperature": 30.0,
    "actual_main_voltage": 48.0,
    "actual_robot_voltage": 48.0,
    "target_gravity": [0.0, 0.0, 9.82],
}
REMOTE = "is in remote control"
FAULTS = {
    "protective_stop": "the robot stops itself, as after a collision",
    "emergency_stop": "the button on the pendant is pressed, until cleared; then the robot is off",
    "safeguard_stop": "the safeguard input opens, until cleared",
    "safety_fault": "of the safety system: the robot is off until it is cleared or `restart safety` is asked for",
    "speed_slider": "fraction = where the pendant's speed slider stands (default 0.5), until cleared",
    "speed_scaling": "fraction = what its safety limits leave of the speed (default 0.5), until cleared",
    "ik_failure": "the next pose has no solution: the program ends",
    "program_stop": "someone presses stop on the pendant",
    "power_off": "the robot is switched off",
    "local_control": "the robot is taken out of remote control, until cleared",
    "rtde_stall": "seconds = no packages for so long (default 4)",
    "rtde_close": "all RTDE connections are cut",
    "dashboard_refuse": "verb, answer = what the dashboard answers instead, until cleared",
    "refuse_version": "RTDE refuses the protocol version, until cleared",
}
ARGUMENTS: Arguments = {
    "speed_slider": {"fraction": Number(most=1.0)},
    "speed_scaling": {"fraction": Number(most=1.0)},
    "rtde_stall": {"seconds": Number()},
    "dashboard_refuse": {"verb": Words(), "answer": Words()},
}


class UrController:
    """See `labctl.drivers.sim.control_port.Emulator`."""

    faults: Mapping[str, str] = FAULTS

    def __init__(
        self,
        robot_model: RobotModel,
        host: str,
        fixture: Fixture,
        options: UrEmulatorOptions,
        *,
        rate_hz: float,
        version: tuple[int, int, int, int],
    ) -> None:
        self.name = robot_model.name
        period = 1.0 / rate_hz
        self.plant = SimulatedPlant(robot_model, fixture, period, now_ns=CLOCK.now_ns())
        chain = None if options.calibration == "none" else measured(robot_model.name)
        self.body = Body(robot_model, period, chain)
        if options.start == "power_off":
            self.body.robot_mode = POWER_OFF
        self.registers = Registers()
        self._inputs: dict[str, Any] = {}
        self.in_cell: Mapping[str, int] = {}  # what a cell names it by beside its host
        commands = {"dashboard": DASHBOARD_PORT} if has_dashboard(version) else {}
        if has_robot_api(version):
            commands = {"Robot API": options.robot_api_port}
            self.in_cell = {"robot_api_port": options.robot_api_port}
        self.ports: Mapping[str, int] = {"RTDE": RTDE_PORT, **commands, "script": 30003, "gripper": 63352}
        polyscope = ".".join(map(str, version))
        serial = "20195500001" if version[0] >= 5 else "2017350001"
        self._dashboard = Dashboard(self.body, robot_model.name.upper(), polyscope, serial, self._stop_program)
        if has_dashboard(version) and not asks_for_remote_control(version):
            self._dashboard.refusals[REMOTE] = f"could not understand: '{REMOTE}'"
        self._switched = version[0] == 5  # between local and remote control, at the pendant
        self._opened = contextlib.ExitStack()
        try:
            self._rtde = RtdeServer(host, rate_hz, version, self._write)
            self._opened.callback(self._rtde.close)
            self._texts: list[LineServer] = []
            if has_dashboard(version):
                hello = b"Connected: Universal Robots Dashboard Server\n"
                self._serve_text(LineServer(host, DASHBOARD_PORT, hello, line_end, self._begin))
            elif has_robot_api(version):
                api = RobotApiServer(self._dashboard, version)
                self._serve_text(LineServer(host, options.robot_api_port, b"", request_end, lambda: api.answer, ""))
            info = version_message(version)
            if options.calibration != "unsaid":
                info += kinematics_info(chain or published(robot_model.name))
            for port in SCRIPT_PORTS:
                hello = info if port == PRIMARY_PORT else b""
                self._serve_text(LineServer(host, port, hello, program_end, lambda: self._load))
            self._gripper = RobotiqServer(host, self.plant)
            self._opened.callback(self._gripper.close)
        except PermissionError as error:
            self.close()
            port = options.robot_api_port
            remedy = "serve it elsewhere with --option robot_api_port=8080, and say so in the cell"
            raise InputError(f"{host}: port {port} cannot be bound ({error.strerror}): {remedy}") from error
        except OSError as error:
            self.close()
            raise not_bound(f"{host}: a port", error) from error
        self._period_ns, self._made_up = round(period * 1e9), round(MADE_UP_S * rate_hz)
        self._script: ControlScript | None = None
        self._asked: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._cycle = self._late = self._commands = self._skipped = self._obeyed = 0
        self._unsent: deque[int] = deque(maxlen=MOST_UNSENT)
        self._stall_until = 0
        self._watch_s = 0.0
        self._written = 0
        self._popup = ""

    def _serve_text(self, server: LineServer) -> None:
        self._opened.callback(server.close)
        self._texts.append(server)

    # -- what clients do

    def _begin(self) -> Answer:
        """What answers one client of the dashboard."""
        return Connection(self._dashboard, self.body).answer if self._switched else self._dashboard.answer

    def _write(self, values: dict[str, Any]) -> None:
        self._inputs |= values
        for name, value in values.items():
            head, _, number = name.rpartition("_")
            if head == "input_int_register":
                self.registers.ints_in[int(number)] = int(value)
            elif head == "input_double_register":
                self.registers.doubles_in[int(number)] = float(value)
        if values.get("speed_slider_mask"):
            fraction = float(values.get("speed_slider_fraction", self.body.slider))
            self.body.slider = min(1.0, max(0.0, fraction))
        self._commands += 1
        self._written = self._cycle

    def _load(self, text: str) -> None:
        """A script arrives. Assumption: one sent to a robot that may not run it is dropped without an answer."""
        if "rtde_control" not in text[:200]:
            return
        body = self.body
        if body.robot_mode == RUNNING and body.safety_mode == 1:
            body.motion = None
            self._watch_s = 0.0
            self._script = ControlScript(text, body, self.registers, self._set_watchdog)
            body.runtime = PLAYING

    def _set_watchdog(self, min_hz: float) -> None:
        self._watch_s = 1.0 / min_hz if min_hz > 0 else 0.0
        self._written = self._cycle

    def _stop_program(self, popup: str = "") -> None:
        if self._script is not None or self.body.runtime != STOPPED:
            self.body.runtime = STOPPED
        self._script, self.body.motion, self._watch_s = None, None, 0.0
        if popup:
            self._popup = popup
            self._rtde.tell(popup)

    # -- faults

    def inject(self, name: str, args: Mapping[str, Any]) -> None:
        self._asked.put((name, checked_fault(name, args, FAULTS, ARGUMENTS)))

    def clear(self) -> None:
        self._asked.put(("", {}))

    def _obey(self, name: str, args: Mapping[str, Any]) -> None:
        body = self.body
        match name:
            case "":
                body.release()
                body.slider = body.scaling = 1.0
                self._dashboard.refusals.clear()
                self._rtde.refuse_version, self._stall_until = False, 0
                self.plant.clear_contact()
            case "protective_stop":
                body.protective_stop()
            case "emergency_stop":
                body.emergency_stop()
                self._stop_program()
            case "safeguard_stop":
                body.safeguard_stop()
            case "safety_fault":
                self._stop_program()
                body.fault()
            case "speed_slider":
                body.slider = args.get("fraction", 0.5)
            case "speed_scaling":
                body.scaling = args.get("fraction", 0.5)
            case "ik_failure":
                if self._script is not None:
                    self._stop_program("get_inverse_kin: no solution")
            case "program_stop":
                self._stop_program()
            case "power_off":
                self._stop_program()
                body.power_off()
            case "local_control":
                body.remote = False
                self._stop_program()  # Assumption: leaving remote control stops a program that was started remotely
            case "rtde_stall":
                self._stall_until = self._cycle + round(args.get("seconds", 4.0) / body.dt)
            case "rtde_close":
                self._rtde.drop_all()
            case "dashboard_refuse":
                verb = args.get("verb", "unlock")
                self._dashboard.refusals[verb] = args.get("answer", f"Failed to execute: {verb}")
            case "refuse_version":
                self._rtde.refuse_version = True

    def stats(self) -> dict[str, Any]:
        body = self.body
        receive = [session.sent for session in self._rtde.sessions if session.started and not session.controls]
        return {
            "states_sent": self._rtde.sent,
            "obeyed": self._obeyed,
            "states_sent_to_client": receive[-1] if receive else 0,
            "robot_time_s": self._cycle * body.dt,
            "commands": self._commands,
            "late_ticks": self._late,
            "skipped_ticks": self._skipped,
            "unsent_s": [cycle * body.dt for cycle in list(self._unsent)],  # the loop may add one meanwhile
            "mode": self._dashboard.answer("robotmode"),
            "safety": self._dashboard.answer("safetymode"),
            "program": "running" if self._script is not None else "none",
            "popup": self._popup,
            "clients": len(self._rtde.sessions),
            "q": body.q.tolist(),
        }

    # -- the control cycle

    def run(self, until: Callable[[], bool]) -> None:
        due = CLOCK.now_ns()
        while not (self._cycle % 25 == 0 and until()):
            while not self._asked.empty():
                self._obey(*self._asked.get())
                self._obeyed += 1
            now = CLOCK.now_ns()
            missed = max(0, (now - due) // self._period_ns)
            if missed:  # this machine was late: the clock goes on, one package is sent
                due += missed * self._period_ns
                self._catch_up(now, min(missed, self._made_up))
            self._tick(now)
            due = max(due + self._period_ns, now + round(CLOSEST * self._period_ns))
            self._serve(due)

    def _catch_up(self, now: int, missed: int) -> None:
        """The cycles that this machine was too late for, up to `MADE_UP_S`: without time for each, it would be later
        after every round of them, and send less and less. What a client wrote meanwhile is read after them, and a
        client beside it may have been as late.
        """
        self._late += 1
        self._skipped += missed
        self._written += missed
        for _ in range(missed):
            self._tick(now, publish=False)
            self._unsent.append(self._cycle)

    def _tick(self, now: int, *, publish: bool = True) -> None:
        self._cycle += 1
        body = self.body
        if self._script is not None and body.runtime == PLAYING:
            self._run_script(self._script)
        if self._watch_s and (self._cycle - self._written) * body.dt > self._watch_s:
            self._stop_program("the RTDE watchdog: no input for too long")
        body.cycle()
        self.plant.tick(body.q, now)
        if self.plant.contact:
            body.protective_stop()
            self.plant.clear_contact()
        if publish and self._cycle >= self._stall_until and self._rtde.sessions:
            self._rtde.publish(self._cycle, self._values())

    def _run_script(self, script: ControlScript) -> None:
        try:
            script.cycle()
        except ScriptEnded as error:
            self._stop_program(str(error))

    def _values(self) -> dict[str, object]:
        body, registers = self.body, self.registers
        pose = to_ur(body.pose(body.q))
        q, qd = body.q.tolist(), body.qd.tolist()
        values: dict[str, object] = {
            **STILL,
            **self._inputs,
            "timestamp": self._cycle * body.dt,
            "target_q": q,
            "actual_q": q,
            "target_qd": qd,
            "actual_qd": qd,
            "target_qdd": body.qdd.tolist(),
            "actual_TCP_pose": pose,
            "target_TCP_pose": pose,
            "tcp_offset": to_ur(body.tcp),
            "speed_scaling": body.scaling,
            "target_speed_fraction": body.slider,
            "robot_mode": body.robot_mode,
            "safety_mode": body.safety_mode,
            "safety_status": body.safety_mode,
            "control_step": self._cycle,
            "safety_status_bits": BITS.get(body.safety_mode, 0),
            "runtime_state": body.runtime,
            "robot_status_bits": int(body.robot_mode == RUNNING) | int(body.runtime == PLAYING) << 1,
        }
        for i, name in INTS:
            values[name] = registers.ints_out[i]
        for i, name in DOUBLES:
            values[name] = registers.doubles_out[i]
        return values

    def _serve(self, due: int) -> None:
        servers = [self._rtde, *self._texts]
        while True:
            now = CLOCK.now_ns()
            sockets = [sock for server in servers for sock in server.sockets()]
            for sock in select.select(sockets, [], [], max(0.0, (due - now) / 1e9))[0]:
                for server in servers:
                    server.read(sock)
            if CLOCK.now_ns() >= due:
                return

    def close(self) -> None:
        self._opened.close()
