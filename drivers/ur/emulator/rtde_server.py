"""The RTDE server of an emulated UR: sessions, recipes, who owns which input, a package per output period.

May not: know what a register means. Values are levels: a client that reads late sees the newest only.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

from labctl.drivers.sim.connection import received
from labctl.drivers.ur.emulator import rtde_wire as wire
from labctl.drivers.ur.version import RTDE_PORT

MOST_BACKLOG = 1 << 20


class Session:
    """One RTDE connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self.sock = sock
        self.rest = b""
        self.out = b""
        self.outputs: wire.Recipe | None = None
        self.inputs: list[wire.Recipe] = []
        self.every = 1
        self.started = False
        self.sent = 0
        self.controls = False


class RtdeServer:
    """See the module. `write(values)` takes the inputs a client sent; `version` is (major, minor, bugfix, build)."""

    def __init__(
        self, host: str, rate_hz: float, version: tuple[int, ...], write: Callable[[dict[str, Any]], None]
    ) -> None:
        self._listener = socket.create_server((host, RTDE_PORT), backlog=8)
        self._listener.setblocking(False)
        self._rate_hz, self._write = rate_hz, write
        self.version = version
        self.sessions: list[Session] = []
        self._owners: dict[str, Session] = {}
        self.sent = 0
        self.refuse_version = False

    def sockets(self) -> list[socket.socket]:
        return [self._listener, *(session.sock for session in self.sessions)]

    def close(self) -> None:
        for sock in self.sockets():
            sock.close()

    def read(self, sock: socket.socket) -> None:
        if sock is self._listener:
            self.sessions.append(Session(self._listener.accept()[0]))
            return
        session = next((s for s in self.sessions if s.sock is sock), None)
        if session is None:
            return
        if (data := received(sock)) is None:
            return
        if not data:
            self.drop(session)
            return
        session.rest += data
        while len(session.rest) >= wire.HEADER.size:
            size, kind = wire.HEADER.unpack_from(session.rest)
            if size < wire.HEADER.size:
                self.drop(session)
                return
            if len(session.rest) < size:
                return
            body, session.rest = session.rest[wire.HEADER.size : size], session.rest[size:]
            try:
                self._handle(session, kind, body)
            except (struct.error, ValueError):  # no RTDE: too short, no ASCII, no frequency
                self.drop(session)
                return

    def drop(self, session: Session) -> None:
        """Close a connection and release what it owned."""
        if session in self.sessions:
            self.sessions.remove(session)
            self._owners = {name: owner for name, owner in self._owners.items() if owner is not session}
            session.sock.close()

    def drop_all(self) -> None:
        for session in list(self.sessions):
            self.drop(session)

    def _handle(self, session: Session, kind: int, body: bytes) -> None:
        if kind == wire.PROTOCOL:
            self._send(session, wire.message(kind, bytes([int(body == b"\0\2" and not self.refuse_version)])))
        elif kind == wire.VERSION:
            self._send(session, wire.message(kind, struct.pack(">4I", *self.version)))
        elif kind == wire.OUTPUTS:
            (frequency,) = struct.unpack_from(">d", body)
            self._set_up_outputs(session, frequency, wire.names(body[8:]))
        elif kind == wire.INPUTS:
            self._set_up_inputs(session, wire.names(body))
        elif kind in (wire.START, wire.PAUSE):
            self._send(session, wire.message(kind, b"\1"))
            session.started = kind == wire.START
        elif kind == wire.DATA and body and 0 < body[0] <= len(session.inputs):
            self._write(session.inputs[body[0] - 1].unpack(body[1:]))
        elif kind == wire.DATA:
            self._send(session, wire.text_message("input data of an unknown recipe"))

    def _set_up_outputs(self, session: Session, frequency: float, names: list[str]) -> None:
        kinds = [wire.type_of(name, wire.OUTPUT_TYPES, "output") for name in names]
        session.every = max(1, round(self._rate_hz / min(max(frequency, 1.0), self._rate_hz)))
        if None not in kinds:
            session.outputs = wire.Recipe([(n, k) for n, k in zip(names, kinds, strict=True) if k is not None])
        types = ",".join(kind or wire.NOT_FOUND for kind in kinds)
        self._send(session, wire.message(wire.OUTPUTS, b"\1" + types.encode()))

    def _set_up_inputs(self, session: Session, names: list[str]) -> None:
        types = []
        for name in names:
            kind = wire.type_of(name, wire.INPUT_TYPES, "input")
            taken = self._owners.get(name, session) is not session
            types.append(wire.NOT_FOUND if kind is None else wire.IN_USE if taken else kind)
        good = not {wire.NOT_FOUND, wire.IN_USE} & set(types)
        if good:
            self._owners |= dict.fromkeys(names, session)
            session.inputs.append(wire.Recipe(list(zip(names, types, strict=True))))
            session.controls = True
        number = len(session.inputs) if good else 0
        self._send(session, wire.message(wire.INPUTS, bytes([number]) + ",".join(types).encode()))

    def publish(self, cycle: int, values: Mapping[str, object]) -> None:
        """One control cycle is over: a package to every client whose period is over."""
        for session in list(self.sessions):
            if session.started and session.outputs is not None and cycle % session.every == 0:
                self._send(session, wire.message(wire.DATA, b"\1" + session.outputs.pack(values)))
                session.sent += 1
                self.sent += 1

    def tell(self, text: str) -> None:
        """A message to every client that has started."""
        for session in list(self.sessions):
            if session.started:
                self._send(session, wire.text_message(text))

    def _send(self, session: Session, data: bytes) -> None:
        session.out += data
        try:
            count = session.sock.send(session.out)
        except BlockingIOError:
            count = 0
        except OSError:
            self.drop(session)
            return
        session.out = session.out[count:]
        if len(session.out) > MOST_BACKLOG:
            self.drop(session)
