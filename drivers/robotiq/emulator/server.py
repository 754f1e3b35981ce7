"""A Robotiq 2F-85 behind the URCap's socket (63352), over the plant's fingers.

May not: be anything but text on a socket; it runs in a thread of its own, as the URCap is a process of its own.

Variables and their meaning: Robotiq's 2F-85 manual for e-Series, "Control by the socket of the URCap".
"""

from __future__ import annotations

import contextlib
import socketserver
import threading

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.sim.connection import ThreadedServer
from labctl.drivers.sim.plant import SimulatedPlant

CLOCK = MonotonicClock()
PORT = 63352
STROKE_M = 0.085
OPEN_POS, CLOSED_POS = 3, 228  # where the fingers come to their stops; asked for and reached are on this one scale
ACTIVATE_NS = SECOND // 2  # Assumption: shorter than a real activation
NAMES = ("ACT", "GTO", "ATR", "ARD", "FOR", "SPE", "POS", "STA", "PRE", "OBJ", "FLT")


def opening_at(position: int) -> float:
    """Between the fingers, m, where a position is reached; beyond a stop they stay at it."""
    share = (CLOSED_POS - position) / (CLOSED_POS - OPEN_POS)
    return STROKE_M * min(max(share, 0.0), 1.0)


class Fingers:
    """The gripper's registers over a plant, whose fingers open as wide as a 2F-85's. Position 0 is open, 255 closed."""

    def __init__(self, plant: SimulatedPlant) -> None:
        self._plant = plant
        plant.world.fit_fingers(STROKE_M)
        self._lock = threading.Lock()
        self._set: dict[str, int] = {name: 0 for name in NAMES}
        self._active_at = 0

    def write(self, values: dict[str, int]) -> None:
        with self._lock:
            was = self._set["ACT"]
            self._set |= values
            if self._set["ACT"] and not was:
                self._active_at = CLOCK.now_ns() + ACTIVATE_NS
            if "POS" in values:
                self._set["PRE"] = values["POS"]
            if values.get("GTO") == 0:
                self._plant.grip(self._plant.opening)
            elif self._set["GTO"] and self._active:
                self._plant.grip(opening_at(self._set["PRE"]))

    @property
    def _active(self) -> bool:
        return bool(self._set["ACT"]) and CLOCK.now_ns() >= self._active_at

    def read(self, name: str) -> int:
        with self._lock:
            opening = self._plant.opening
            if name == "POS":
                return round(OPEN_POS + (CLOSED_POS - OPEN_POS) * (1 - min(opening / STROKE_M, 1.0)))
            if name == "STA":
                return 0 if not self._set["ACT"] else 3 if self._active else 1
            if name == "OBJ":
                return self._object(opening)
            return self._set[name]

    def _object(self, opening: float) -> int:
        wanted = opening_at(self._set["PRE"])
        if abs(opening - wanted) < 1e-4:
            return 3
        if self._plant.world.held is not None and wanted < opening:
            return 2
        return 0


class RobotiqServer:
    """Answers GET and SET until closed."""

    def __init__(self, host: str, plant: SimulatedPlant) -> None:
        fingers = Fingers(plant)

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):  # a client that is killed resets its connection
                    self._talk()

            def _talk(self) -> None:
                rest = b""
                while data := self.request.recv(4096):
                    *lines, rest = (rest + data).split(b"\n")
                    answers = b"".join(_answer(fingers, line.decode("ascii", "replace").split()) for line in lines)
                    if answers:
                        self.request.sendall(answers)

        self._server = ThreadedServer(host, PORT, Handler, "robotiq")

    def close(self) -> None:
        self._server.close()


def _answer(fingers: Fingers, words: list[str]) -> bytes:
    if len(words) == 2 and words[0] == "GET" and words[1] in NAMES:
        return f"{words[1]} {fingers.read(words[1])}\n".encode()
    if len(words) >= 3 and words[0] == "SET" and len(words) % 2 == 1:
        pairs = dict(zip(words[1::2], words[2::2], strict=True))
        if set(pairs) <= set(NAMES) and all(value.isdigit() and len(value) <= 3 for value in pairs.values()):
            fingers.write({name: int(value) for name, value in pairs.items()})
            return b"ack"
    return b"?\n"
