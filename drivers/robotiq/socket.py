"""Gripper "robotiq_socket": a Robotiq 2F-85 through the URCap's socket (63352) on the robot's host.

May not: activate the fingers without an operator's word: they move. Unverified on hardware: see docs/hardware.md.

Variables: Robotiq 2F-85 manual for e-Series. Stroke 85 mm, position 0 open and 255 closed, speed 20 to 150 mm/s and
force 20 to 235 N over 0 to 255 (data sheet); POS reads about 3 to 228 at the ends, which the options calibrate.
"""

from __future__ import annotations

import socket

from labctl.drivers.common.about import library
from labctl.drivers.robotiq.gripper import Registers, RobotiqGripper
from labctl.drivers.robotiq.options import RobotiqOptions
from labctl.drivers.robotiq.scales import scale_of
from labctl.errors import DeviceLost, DeviceRefused

PORT = 63352
TIMEOUT_S = 1.0
DIGITS = 3  # of a register, 0 to 255
READ = ("ACT", "STA", "OBJ", "FLT", "POS")


class SocketWire:
    """See `gripper.Wire`."""

    period_s, client = 0.03, f"{library('labctl')}, by the URCap's socket"

    def __init__(self, host: str) -> None:
        self._host = host
        self._socket: socket.socket | None = None

    def open(self) -> None:
        try:
            self._socket = socket.create_connection((self._host, PORT), TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise DeviceLost(f"no gripper answers on {self._host}:{PORT} ({error}); is the URCap running?") from error

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
                data = (data + more).lstrip()  # of the end of an answer that was refused
                if lines == 0 and data.startswith(b"?"):
                    raise DeviceRefused("the gripper did not understand a command")
        except OSError as error:
            raise DeviceLost(f"gripper on {self._host}:{PORT}: {error}") from error
        return data.decode("ascii", "replace").splitlines()

    def read(self) -> Registers | None:
        pairs = [line.split() for line in self._ask("".join(f"GET {n}\n" for n in READ), len(READ))]
        if [pair[0] for pair in pairs if pair] != list(READ) or any(len(pair) != 2 for pair in pairs):
            raise DeviceLost(f"what answers on {self._host}:{PORT} is not a Robotiq gripper's URCap")
        values = [value for _, value in pairs]
        if not all(value.isdigit() and len(value) <= DIGITS for value in values):
            return None
        activation, *others = map(int, values)
        return Registers(bool(activation), *others)

    def go(self, position: int, speed: int, force: int) -> None:
        self._ask(f"SET GTO 1 SPE {speed} FOR {force} POS {position}\n", 0)

    def halt(self) -> None:
        self._ask("SET GTO 0\n", 0)

    def activate(self, on: bool) -> None:
        self._ask("SET ACT 1\n" if on else "SET ACT 0 ATR 0\n", 0)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def build(options: RobotiqOptions, *, host: str) -> RobotiqGripper:
    """A gripper on the robot's host."""
    return RobotiqGripper(SocketWire(host), scale_of(options))
