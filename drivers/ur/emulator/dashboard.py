"""The dashboard's words for an emulated UR.

May not: touch sockets. Answers are those of the e-Series dashboard manual; where a refusal's words are not known they
are assumptions. What is refused in local control, in which words, and that a connection goes on being refused until it
is made anew is what users of real robots tell (UR ROS driver, issues 125 and 262; ROS 2 driver, issue 181); which
commands are refused is an assumption.
"""

from __future__ import annotations

from collections.abc import Callable

from labctl.drivers.ur.emulator.body import (
    IDLE,
    MODE_NAMES,
    NORMAL,
    PAUSED,
    PLAYING,
    POWER_OFF,
    POWER_ON,
    PROTECTIVE,
    RUNNING,
    SAFETY_NAMES,
    STOPPED,
    Body,
)

WHERE = "please switch robot to Remote Control mode and reconnect to port 29999"
LOCAL = f"Command is not allowed due to safety reasons, {WHERE}"
CONTROLS = ("load", "play", "stop", "pause", "power o", "brake", "unlock", "restart safety", "close safety", "shutdown")


class Connection:
    """One client of a robot that has a remote control: what controls is refused once it was in local control, for as
    long as the connection lasts.
    """

    def __init__(self, dashboard: Dashboard, body: Body) -> None:
        self._dashboard, self._body, self._refused = dashboard, body, not body.remote

    def answer(self, line: str) -> str:
        self._refused = self._refused or not self._body.remote
        if self._refused and line.strip().lower().startswith(CONTROLS):
            return LOCAL
        return self._dashboard.answer(line)


class Dashboard:
    """Answers one command line at a time. `refusals` maps a command's beginning to what is answered instead."""

    def __init__(self, body: Body, model: str, polyscope: str, serial: str, stop: Callable[[], None]) -> None:
        self._body, self._model, self._polyscope, self._serial = body, model, polyscope, serial
        self._stop = stop
        self.refusals: dict[str, str] = {}
        self.program = ""
        self.operational = "NONE"  # as where no password is set for it

    def answer(self, line: str) -> str:
        """The reply to a command, without its line end."""
        line = line.strip()
        for start, refusal in self.refusals.items():
            if line.startswith(start):
                return refusal
        for start, act in _COMMANDS.items():
            if line.lower().startswith(start):
                return act(self, line)
        return f"could not understand: '{line}'"

    def _power_on(self, _: str) -> str:
        if self._body.safety_mode == NORMAL and self._body.robot_mode == POWER_OFF:
            self._body.power(POWER_ON, IDLE)
        return "Powering on"

    def _power_off(self, _: str) -> str:
        self._body.power_off()
        return "Powering off"

    def _release(self, _: str) -> str:
        body = self._body
        if body.safety_mode == NORMAL and body.robot_mode != RUNNING:
            body.power(RUNNING) if body.robot_mode == IDLE else body.power(POWER_ON, IDLE, RUNNING)
        return "Brake releasing"

    def _unlock(self, _: str) -> str:
        if self._body.safety_mode != PROTECTIVE:
            return "Cannot unlock protective stop"  # Assumption
        self._body.unlock()
        return "Protective stop releasing"

    def _restart(self, _: str) -> str:
        self._body.restart_safety()
        return "Restarting safety"

    def _operate(self, line: str) -> str:
        mode = line.rpartition(" ")[2].upper()
        if mode not in ("MANUAL", "AUTOMATIC"):
            return f"Failed setting operational mode: {mode}"  # Assumption
        self.operational = mode
        return f"Operational mode {mode} is set"

    def _leave(self, _: str) -> str:
        self.operational = "NONE"
        return f"No longer controlling the operational mode. Current operational mode: '{self.operational}'."

    def _play(self, _: str) -> str:
        """Go on with a paused program, or begin the one that was loaded, which does nothing but run."""
        body = self._body
        begins = self.program and body.runtime == STOPPED and body.robot_mode == RUNNING
        if body.safety_mode == NORMAL and (body.runtime == PAUSED or begins):
            body.runtime = PLAYING
            return "Starting program"
        return "Failed to execute: play"

    def _halt(self, _: str) -> str:
        self._stop()
        return "Stopped"

    def _pause(self, _: str) -> str:
        if self._body.runtime == PLAYING:
            self._body.runtime = PAUSED
        return "Pausing program"

    def _load(self, line: str) -> str:
        self.program = line.partition(" ")[2]
        return f"Loading program: {self.program}"

    def _state(self, _: str) -> str:
        word = {PLAYING: "PLAYING", PAUSED: "PAUSED"}.get(self._body.runtime, "STOPPED")
        return f"{word} {self.program or 'rtde_control.urp'}"


_COMMANDS: dict[str, Callable[[Dashboard, str], str]] = {
    "polyscopeversion": lambda d, _: f"URSoftware {d._polyscope} (Jan 01 2022)",
    "version": lambda d, _: d._polyscope,
    "get serial number": lambda d, _: d._serial,
    "get robot model": lambda d, _: d._model,
    "get operational mode": lambda d, _: d.operational,
    "set operational mode": Dashboard._operate,
    "clear operational mode": Dashboard._leave,
    "is in remote control": lambda d, _: str(d._body.remote).lower(),
    "robotmode": lambda d, _: f"Robotmode: {MODE_NAMES.get(d._body.robot_mode, 'NO_CONTROLLER')}",
    "safetymode": lambda d, _: f"Safetymode: {SAFETY_NAMES.get(d._body.safety_mode, 'UNKNOWN')}",
    "safetystatus": lambda d, _: f"Safetystatus: {SAFETY_NAMES.get(d._body.safety_mode, 'UNKNOWN')}",
    "programstate": Dashboard._state,
    "running": lambda d, _: f"Program running: {str(d._body.runtime == PLAYING).lower()}",
    "get loaded program": lambda d, _: f"Loaded program: {d.program}" if d.program else "No program loaded",
    "isprogramsaved": lambda d, _: f"true {d.program}",
    "power on": Dashboard._power_on,
    "power off": Dashboard._power_off,
    "brake release": Dashboard._release,
    "unlock protective stop": Dashboard._unlock,
    "restart safety": Dashboard._restart,
    "play": Dashboard._play,
    "stop": Dashboard._halt,
    "pause": Dashboard._pause,
    "load": Dashboard._load,
    "close safety popup": lambda d, _: "closing safety popup",
    "close popup": lambda d, _: "closing popup",
    "popup": lambda d, _: "showing popup",
    "savelog": lambda d, _: "Log saved to disk",
    "addtolog": lambda d, _: "Added log message",
    "quit": lambda d, _: "Disconnected",
    "shutdown": lambda d, _: "Shutting down",
}
