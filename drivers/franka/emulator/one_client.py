"""What the robot's and the hand's server have in common: one client at a time, whole requests, states by UDP.

May not: know what a request means, or wait for a client.
"""

from __future__ import annotations

import socket
import struct
from abc import ABC, abstractmethod
from typing import ClassVar

from labctl.drivers.sim.connection import received


class OneClientServer(ABC):
    """A listener, the TCP connection of the client that is there, and the socket that its states go out by."""

    HEADER: ClassVar[struct.Struct]  # of a request and its answer: command, id, size of header and payload

    def __init__(self, host: str, port: int) -> None:
        self._listener = socket.create_server((host, port), backlog=4)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((host, 0))
        self._listener.setblocking(False)
        self._tcp: socket.socket | None = None
        self._host, self._rest = host, b""  # of the client
        self._peer: tuple[str, int] | None = None  # where states go

    @abstractmethod
    def _payload_bytes(self, command: int) -> int | None:
        """How long a request of this command is without its header; None for no such command."""

    @abstractmethod
    def _request(self, command: int, number: int, payload: bytes) -> None: ...

    @abstractmethod
    def drop_client(self) -> None:
        """The connection is gone, or what came is not this protocol."""

    def close(self) -> None:
        for sock in (self._listener, self._udp, self._tcp):
            if sock is not None:
                sock.close()

    def _accept(self) -> bool:
        """Whether a client that knocks is taken. Assumption: a real robot has one client only."""
        client, where = self._listener.accept()
        if self._tcp is not None:
            self._read_requests()  # it may have gone, and not been heard of yet
        if self._tcp is not None:
            client.close()
            return False
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
        self._tcp, self._host, self._rest = client, where[0], b""
        return True

    def _read_requests(self) -> None:
        assert self._tcp is not None
        if (data := received(self._tcp)) is None:
            return
        if not data:
            self.drop_client()
            return
        self._rest += data
        while len(self._rest) >= self.HEADER.size:
            command, number, size = self.HEADER.unpack_from(self._rest)
            if self._payload_bytes(command) != size - self.HEADER.size:
                self.drop_client()
                return
            if len(self._rest) < size:
                return
            payload, self._rest = self._rest[self.HEADER.size : size], self._rest[size:]
            self._request(command, number, payload)

    def _send_states_to(self, port: int) -> None:
        """To the client that is there, at a port of its own."""
        if self._tcp is not None:
            self._peer = (self._host, port)

    def _answer(self, command: int, number: int, payload: bytes) -> None:
        if self._tcp is not None:
            try:
                self._tcp.sendall(self.HEADER.pack(command, number, self.HEADER.size + len(payload)) + payload)
            except OSError:
                self.drop_client()
