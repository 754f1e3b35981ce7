"""The gripper server of an emulated Franka Hand, protocol version 3, over the plant's fingers.

May not: sleep; `cycle` is called once a millisecond.
"""

from __future__ import annotations

import math
import socket
import struct
from dataclasses import dataclass

from labctl.drivers.franka.emulator import wire
from labctl.drivers.franka.emulator.one_client import OneClientServer
from labctl.drivers.sim.plant import SimulatedPlant

CONNECT, HOMING, GRASP, MOVE, STOP = range(5)
PAYLOADS = {CONNECT: struct.Struct("<HH"), HOMING: struct.Struct("<"), STOP: struct.Struct("<")}
PAYLOADS |= {GRASP: struct.Struct("<5d"), MOVE: struct.Struct("<2d")}
SUCCESS, FAIL, UNSUCCESSFUL, ABORTED = range(4)
MAX_WIDTH_M = 0.08
STATE_MS = 20  # Assumption: the rate of a real hand's states is not known here
STALL_MS = 150
# A Move that something stops is not answered before a Stop: users tell of 100 s (franka_ros issue 281) and of 2 to 3
# minutes (libfranka issue 18). Assumption: how long exactly, and what the answer is then
BLOCKED_MS = 100_000
NEAR_M = 5e-4


@dataclass(slots=True)
class _Job:
    """A command under way: answered when the fingers have come to rest."""

    command: int
    id: int
    goals: list[float]
    tolerance: tuple[float, float]
    still_ms: int = 0
    last: float = -1.0


class FciHand(OneClientServer):
    """See the module. One client at a time; a new one takes over when the last has gone."""

    HEADER = wire.HAND_HEADER

    def __init__(self, plant: SimulatedPlant, host: str) -> None:
        super().__init__(host, wire.HAND_PORT)
        self.plant = plant
        self._job: _Job | None = None
        self._ms = self._told_ns = 0

    def sockets(self) -> list[socket.socket]:
        return [self._listener, *([self._tcp] if self._tcp else [])]

    def read(self, sock: socket.socket) -> None:
        if sock is self._listener:
            self._accept()
        elif sock is self._tcp:
            self._read_requests()

    def drop_client(self) -> None:
        if self._tcp is not None:
            self._tcp.close()
        self._tcp = self._peer = self._job = None

    def _payload_bytes(self, command: int) -> int | None:
        shape = PAYLOADS.get(command)
        return None if shape is None else shape.size

    def _request(self, command: int, number: int, payload: bytes) -> None:
        given = PAYLOADS[command].unpack(payload)
        if command == CONNECT:
            ok = given[0] == wire.HAND_VERSION
            self._answer(command, number, struct.pack("<HH", SUCCESS if ok else FAIL, wire.HAND_VERSION))
            if ok:
                self._send_states_to(given[1])
            return
        if self._job is not None:
            self._answer(self._job.command, self._job.id, struct.pack("<H", ABORTED))
            self._job = None
        if command == STOP:
            self.plant.grip(self.plant.opening)
            self._answer(command, number, struct.pack("<H", SUCCESS))
            return
        if not all(math.isfinite(value) for value in given):
            self._answer(command, number, struct.pack("<H", FAIL))
            return
        if command == HOMING:
            goals, tolerance = [0.0, MAX_WIDTH_M], (MAX_WIDTH_M, MAX_WIDTH_M)
        elif command == GRASP:
            goals, tolerance = [0.0 if self.plant.opening > given[0] else given[0]], (given[1], given[2])
            tolerance = (given[0] - tolerance[0], given[0] + tolerance[1])
        else:
            goals, tolerance = [given[0]], (given[0] - NEAR_M, given[0] + NEAR_M)
            if not 0.0 <= given[0] <= MAX_WIDTH_M:
                self._answer(command, number, struct.pack("<H", FAIL))
                return
        self._job = _Job(command, number, goals, tolerance)
        self.plant.grip(goals[0])

    def cycle(self, now_ns: int) -> None:
        """A millisecond: a command under way may be over; a state may be due."""
        self._ms += 1
        if self._job is not None:
            self._work(self._job)
        if self._ms % STATE_MS == 0:
            self._tell(now_ns)

    def wait(self, now_ns: int) -> None:
        """The robot's time waits for its client. A hand has none: its client hears it all the same."""
        if now_ns - self._told_ns >= STATE_MS * 1_000_000:
            self._tell(now_ns)

    def _tell(self, now_ns: int) -> None:
        self._told_ns = now_ns
        if self._peer is not None:
            held = int(self.plant.world.held is not None)
            state = wire.HAND_STATE.pack(self._ms & 0xFFFFFFFF, self.plant.opening, MAX_WIDTH_M, held, 25)
            try:
                self._udp.sendto(state, self._peer)
            except OSError:
                self._peer = None

    def _work(self, job: _Job) -> None:
        opening = self.plant.opening
        job.still_ms = job.still_ms + 1 if opening == job.last else 0
        job.last = opening
        if abs(opening - job.goals[0]) > NEAR_M and job.still_ms < (BLOCKED_MS if job.command == MOVE else STALL_MS):
            return
        job.goals.pop(0)
        if job.goals:
            job.still_ms = 0
            self.plant.grip(job.goals[0])
            return
        low, high = job.tolerance
        # Assumption: a Move that did not get there is "unsuccessful", as a grasp of nothing is
        good = job.command == HOMING or low <= opening <= high
        self._answer(job.command, job.id, struct.pack("<H", SUCCESS if good else UNSUCCESSFUL))
        self._job = None
