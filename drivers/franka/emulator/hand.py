"""The gripper server of an emulated Franka Hand, protocol version 3, over the plant's fingers.

May not: sleep; `cycle` is called once a millisecond.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from labctl.drivers.franka.emulator import wire
from labctl.drivers.sim.connection import received
from labctl.drivers.sim.plant import SimulatedPlant

CONNECT, HOMING, GRASP, MOVE, STOP = range(5)
PAYLOADS = {CONNECT: struct.Struct("<HH"), HOMING: struct.Struct("<"), STOP: struct.Struct("<")}
PAYLOADS |= {GRASP: struct.Struct("<5d"), MOVE: struct.Struct("<2d")}
SUCCESS, FAIL, UNSUCCESSFUL, ABORTED = range(4)
MAX_WIDTH_M = 0.08
STATE_MS = 20  # Assumption: the rate of a real hand's states is not known here
STALL_MS = 150
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


class FciHand:
    """See the module. One client at a time; a new one takes over when the last has gone."""

    def __init__(self, plant: SimulatedPlant, host: str) -> None:
        self.plant = plant
        self._listener = socket.create_server((host, wire.HAND_PORT), backlog=4)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((host, 0))
        self._listener.setblocking(False)
        self._tcp: socket.socket | None = None
        self._host, self._rest = host, b""
        self._peer: tuple[str, int] | None = None
        self._job: _Job | None = None
        self._ms = 0

    def sockets(self) -> list[socket.socket]:
        return [self._listener, *([self._tcp] if self._tcp else [])]

    def close(self) -> None:
        for sock in (*self.sockets(), self._udp):
            sock.close()

    def read(self, sock: socket.socket) -> None:
        if sock is self._listener:
            client, where = self._listener.accept()
            if self._tcp is not None:
                self._read_requests(self._tcp)  # it may have gone, and not been heard of yet
            if self._tcp is not None:
                client.close()
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setblocking(False)
            self._tcp, self._host, self._rest = client, where[0], b""
        elif sock is self._tcp:
            self._read_requests(sock)

    def _read_requests(self, sock: socket.socket) -> None:
        if (data := received(sock)) is None:
            return
        if not data:
            self._drop()
            return
        self._rest += data
        while len(self._rest) >= wire.HAND_HEADER.size:
            command, number, size = wire.HAND_HEADER.unpack_from(self._rest)
            shape = PAYLOADS.get(command)
            if shape is None or size != wire.HAND_HEADER.size + shape.size:
                self._drop()
                return
            if len(self._rest) < size:
                return
            payload, self._rest = self._rest[wire.HAND_HEADER.size : size], self._rest[size:]
            self._request(command, number, shape.unpack(payload))

    def _drop(self) -> None:
        if self._tcp is not None:
            self._tcp.close()
        self._tcp = self._peer = self._job = None

    def _request(self, command: int, number: int, given: tuple[float, ...]) -> None:
        if command == CONNECT:
            version, port = int(given[0]), int(given[1])
            ok = version == wire.HAND_VERSION
            self._answer(command, number, struct.pack("<HH", SUCCESS if ok else FAIL, wire.HAND_VERSION))
            if ok and self._tcp is not None:
                self._peer = (self._host, port)
            return
        if self._job is not None:
            self._answer(self._job.command, self._job.id, struct.pack("<H", ABORTED))
            self._job = None
        if command == STOP:
            self.plant.grip(self.plant.opening)
            self._answer(command, number, struct.pack("<H", SUCCESS))
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

    def _answer(self, command: int, number: int, payload: bytes) -> None:
        if self._tcp is not None:
            try:
                self._tcp.sendall(
                    wire.HAND_HEADER.pack(command, number, wire.HAND_HEADER.size + len(payload)) + payload
                )
            except OSError:
                self._drop()

    def cycle(self) -> None:
        """A millisecond: a command under way may be over; a state may be due."""
        self._ms += 1
        if self._job is not None:
            self._work(self._job)
        if self._peer is not None and self._ms % STATE_MS == 0:
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
        if abs(opening - job.goals[0]) > NEAR_M and job.still_ms < STALL_MS:
            return
        job.goals.pop(0)
        if job.goals:
            job.still_ms = 0
            self.plant.grip(job.goals[0])
            return
        low, high = job.tolerance
        # Assumption: a Move that an object stops is "unsuccessful", as a grasp of nothing is
        good = job.command == HOMING or low <= opening <= high
        self._answer(job.command, job.id, struct.pack("<H", SUCCESS if good else UNSUCCESSFUL))
        self._job = None
