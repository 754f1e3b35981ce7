"""The text ports of an emulated UR: the dashboard (29999), the script inputs (30001 to 30003), the Robot API (80).

May not: interpret URScript beyond finding where a program ends.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

from labctl.drivers.sim.connection import received

DASHBOARD_PORT = 29999
SCRIPT_PORTS = (30001, 30002, 30003)
MOST_BYTES = 1 << 20
Answer = Callable[[str], str | None]


@dataclass
class Client:
    """One connection. answer: to a complete piece; rest: what came of the next one."""

    answer: Answer
    rest: str = ""


class LineServer:
    """Text clients on one port. `hello` is sent first; `begin()` gives each client what answers its complete pieces,
    split by `cut`; what that returns is sent with `end` after it.
    """

    def __init__(
        self,
        host: str,
        port: int,
        hello: bytes,
        cut: Callable[[str], int],
        begin: Callable[[], Answer],
        end: str = "\n",
    ) -> None:
        self._listener = socket.create_server((host, port), backlog=8)
        self._listener.setblocking(False)
        self._hello, self._cut, self._begin, self._end = hello, cut, begin, end
        self._clients: dict[socket.socket, Client] = {}

    def sockets(self) -> list[socket.socket]:
        return [self._listener, *self._clients]

    def close(self) -> None:
        for sock in self.sockets():
            sock.close()
        self._clients.clear()

    def read(self, sock: socket.socket) -> None:
        if sock is self._listener:
            client = self._listener.accept()[0]
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setblocking(False)
            self._clients[client] = Client(self._begin())
            self._send(client, self._hello)
        elif sock in self._clients:
            self._hear(sock)

    def _hear(self, sock: socket.socket) -> None:
        if (data := received(sock)) is None:
            return
        client = self._clients[sock]
        text = client.rest + data.decode("utf-8", "replace")
        if not data or len(text) > MOST_BYTES:
            self._drop(sock)
            return
        while (end := self._cut(text)) > 0:
            piece, text = text[:end], text[end:]
            if answer := client.answer(piece):
                self._send(sock, (answer + self._end).encode())
        client.rest = text

    def _send(self, sock: socket.socket, data: bytes) -> None:
        try:
            sock.sendall(data)
        except OSError:
            self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._clients.pop(sock, None)
        sock.close()


def line_end(text: str) -> int:
    """Where the first line ends."""
    return text.find("\n") + 1


def program_end(text: str) -> int:
    """Where the first script ends: at a bare `end` for a program, else at its line."""
    if not text.lstrip().startswith(("def ", "sec ")):
        return line_end(text)
    end = text.find("\nend\n")
    return end + 5 if end >= 0 else 0
