"""Gripper "robotiq_socket": a Robotiq 2F-85 through the URCap's socket (63352) on the robot's host.

May not: activate the fingers without an operator's word: they move. Unverified on hardware: see docs/hardware.md.

Variables: Robotiq 2F-85 manual for e-Series. Stroke 85 mm, position 0 open and 255 closed, speed 20 to 150 mm/s and
force 20 to 235 N over 0 to 255 (data sheet); POS reads about 3 to 228 at the ends, which the options calibrate.
"""

from __future__ import annotations

import socket

from labctl.drivers.common.gripping import GripperWorker
from labctl.drivers.robotiq.options import RobotiqOptions
from labctl.drivers.robotiq.scales import STROKE_M, Scale, fault_words, scale_of

from labctl.devices import Kind, RobotStatus
from labctl.errors import DeviceLost, DeviceRefused

PORT = 63352
TIMEOUT_S = 1.0
PERIOD_S = 0.03
READ = ("STA", "OBJ", "FLT", "POS", "ACT")


class RobotiqSocket:
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"
    stroke_m = STROKE_M

    def __init__(self, host: str, scale: Scale) -> None:
        self._host, self._scale = host, scale
        self._socket: socket.socket | None = None
        self._work = GripperWorker("robotiq", self._visit, PERIOD_S)
        self._written: int | None = None
        self._seen: dict[str, int] = {}

    def connect(self) -> None:
        try:
            self._socket = socket.create_connection((self._host, PORT), TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise DeviceLost(f"no gripper answers on {self._host}:{PORT} ({error}); is the URCap running?") from error
        self._look()
        self._work.start()

    def _ask(self, text: str, lines: int) -> list[str]:
        """Send commands; the answers, a line each, or the bare acknowledgement of a SET."""
        assert self._socket is not None
        try:
            self._socket.sendall(text.encode())
            data = b""
            while data.count(b"\n") < lines if lines else not data.endswith(b"ack"):
                more = self._socket.recv(1024)
                if not more:
                    raise ConnectionError("closed by the gripper")
                data += more
                if lines == 0 and data.startswith(b"?"):
                    raise DeviceRefused("the gripper did not understand a command")
        except OSError as error:
            raise DeviceLost(f"gripper on {self._host}:{PORT}: {error}") from error
        return data.decode("ascii", "replace").splitlines()

    def _look(self) -> None:
        pairs = [line.split() for line in self._ask("".join(f"GET {n}\n" for n in READ), len(READ))]
        if [pair[0] for pair in pairs if len(pair) == 2] != list(READ):
            raise DeviceLost(f"what answers on {self._host}:{PORT} is not a Robotiq gripper's URCap")
        answers = {name: value for name, value in pairs}
        if any(not answers.get(name, "?").isdigit() for name in READ):
            self._work.sound = RobotStatus("fault", "the gripper answers '?': the robot is in emergency stop")
            return
        seen = self._seen = {name: int(answers[name]) for name in READ}
        self._work.opening = self._scale.opening(seen["POS"])
        words = fault_words(seen["STA"], seen["FLT"])
        self._work.sound = RobotStatus("fault", words) if words else RobotStatus("idle")

    def _visit(self) -> None:
        work = self._work
        if work.recovering:
            self._activate()
        if work.stopped and self._written is not None:
            self._ask("SET GTO 0\n", 0)
            self._written = None
        if work.wanted is not None and work.sound.mode == "idle":
            position = self._scale.position(work.wanted)
            if position != self._written:
                self._ask(f"SET GTO 1 SPE {self._scale.speed} FOR {self._scale.force} POS {position}\n", 0)
                self._written = position
        self._look()

    def _activate(self) -> None:
        """Reset, then activate. The fingers move."""
        if self._seen.get("STA") == 3 and not self._seen.get("FLT"):
            self._work.recovering = False
        elif self._seen.get("ACT"):
            if self._seen.get("STA") != 1:
                self._ask("SET ACT 0 ATR 0\n", 0)
        else:
            self._ask("SET ACT 1\n", 0)

    def target(self, opening_m: float) -> None:
        self._work.ask(opening_m)

    def opening(self) -> float:
        return self._work.opening

    def status(self) -> RobotStatus:
        if self._work.sound.mode != "idle":
            return self._work.sound
        moving = self._seen.get("OBJ") == 0 and self._written is not None
        return RobotStatus("moving" if moving else "idle")

    def stop(self) -> None:
        self._work.halt()

    def recover(self) -> None:
        """Activate the gripper; raises DeviceRefused until it is active."""
        if self._work.sound.mode == "idle":
            return
        if self._work.sound.mode == "fault":
            self._work.recover()
        raise DeviceRefused(f"gripper: {self._work.sound.reason}")

    def close(self) -> None:
        self._work.end()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def build(options: RobotiqOptions, *, host: str) -> RobotiqSocket:
    """A gripper on the robot's host."""
    return RobotiqSocket(host, scale_of(options))
