"""A Robotiq 2F-85 as a Modbus RTU slave on a pseudo-terminal, over the same fingers as the socket's.

May not: be anything but the two functions a gripper's client uses: 3 and 4 (read registers), 16 (write registers).
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import tty

from labctl.drivers.robotiq.emulator.server import Fingers
from labctl.drivers.sim.plant import SimulatedPlant

SLAVE = 9
OUTPUTS, INPUTS = 0x03E8, 0x07D0
READ = (3, 4)
WRITE = 16


def crc(data: bytes) -> bytes:
    """Modbus RTU's check sum (polynomial 0xA001, start 0xFFFF), low byte first."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return struct.pack("<H", value)


class RobotiqRtu:
    """Serves until closed; a client opens `port`."""

    def __init__(self, plant: SimulatedPlant) -> None:
        self._fingers = Fingers(plant)
        self._ours, theirs = os.openpty()
        tty.setraw(theirs)
        self.port = os.ttyname(theirs)
        self._theirs = theirs
        self._thread = threading.Thread(target=self._serve, name="robotiq-rtu", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        data = b""
        with contextlib.suppress(OSError):  # closed
            while True:
                data += os.read(self._ours, 256)
                frame, data = self._frame(data)
                while frame:
                    os.write(self._ours, self._answer(frame))
                    frame, data = self._frame(data)

    @staticmethod
    def _frame(data: bytes) -> tuple[bytes, bytes]:
        """The first whole request, without its check sum, and the rest."""
        if len(data) < 8:
            return b"", data
        size = 9 + data[6] if data[1] == WRITE else 8
        if len(data) < size:
            return b"", data
        frame = data[: size - 2]
        return (frame, data[size:]) if crc(frame) == data[size - 2 : size] else (b"", data[1:])

    def _answer(self, frame: bytes) -> bytes:
        slave, function, start, count = struct.unpack_from(">BBHH", frame)
        if slave != SLAVE:
            return b""
        if function in READ and start == INPUTS and count <= 3:
            body = self._inputs()[: 2 * count]
            reply = bytes([slave, function, len(body)]) + body
        elif function == WRITE and start == OUTPUTS and count == 3 and frame[6] == 6:
            self._outputs(frame[7:13])
            reply = frame[:6]
        else:
            reply = bytes([slave, function | 0x80, 2])
        return reply + crc(reply)

    def _inputs(self) -> bytes:
        read = self._fingers.read
        status = read("ACT") | read("GTO") << 3 | read("STA") << 4 | read("OBJ") << 6
        return bytes([status, 0, read("FLT"), read("PRE"), read("POS"), 0])

    def _outputs(self, body: bytes) -> None:
        values = {"ACT": body[0] & 1, "GTO": body[0] >> 3 & 1, "SPE": body[4], "FOR": body[5]}
        self._fingers.write({**values, **({"POS": body[3]} if values["GTO"] else {})})

    def close(self) -> None:
        os.close(self._theirs)
        os.close(self._ours)
