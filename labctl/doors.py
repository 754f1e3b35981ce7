"""What labctl's servers share: a stranger who sends what is no request fills nobody's terminal, and one who opens
connections and says nothing takes nobody else's place.

May not: know who is let in or why, or keep quiet about an error of labctl's own.
"""

from __future__ import annotations

import ipaddress
import logging
import resource
import socket
import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

Peer = tuple[str, int]  # of IPv6 two numbers more
LOG = "labctl.door"
EACH, ALL = 20, 200  # connections to a web server, from one source and from all, whose browser was not let in
MOST_TOLD = 10  # lines: a stranger with many addresses fills no log
MOST_FILES = 1 << 16  # that a process may ask for: one address has no more ports to come from


class _Own(logging.Filter):
    """Leaves out aiohttp's own errors, which tell of bytes that are no HTTP, or not packed as they say."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not type(error).__module__.startswith("aiohttp.")


def told() -> dict[str, logging.Logger]:
    """For `aiohttp.web.Application(handler_args=...)`: where it says what is wrong."""
    log = logging.getLogger(LOG)
    if not log.filters:
        log.addFilter(_Own())
    return {"logger": log}


class Room:
    """Connections of those who were not let in yet: at most `each` from one source and `most` in all. One more ends the
    one that has waited longest, there or anywhere: who is about to be let in needs its place for a moment, and who
    holds a place for nothing loses it. Who was let in is not counted and not ended.

    A source is an IPv4 address, or the /64 network of an IPv6 one, which a single computer can have whole.
    say: hears of a source once. Any thread may call.
    """

    def __init__(self, each: int = EACH, most: int = ALL, say: Callable[[str], None] | None = None) -> None:
        self._each, self._most = each, most
        self._say = say or logging.getLogger(LOG).warning
        self._waiting: dict[Hashable, tuple[str, Callable[[], None]]] = {}  # in the order in which they came
        self._told: set[str] = set()
        self._lock = Lock()

    def came(self, who: Hashable, address: str, end: Callable[[], None]) -> None:
        """A connection from there; `end` ends it."""
        source = _source(address)
        with self._lock:
            self._waiting.pop(who, None)
            there = [key for key, (its, _) in self._waiting.items() if its == source]
            oldest, which = None, ""
            if len(there) >= self._each:
                oldest, which = self._waiting.pop(there[0]), f"{self._each} connections from {source}"
            elif len(self._waiting) >= self._most:
                first = next(iter(self._waiting))
                oldest, which = self._waiting.pop(first), f"{self._most} connections from many addresses"
            self._waiting[who] = source, end
        if oldest is not None:
            oldest[1]()
            self._tell(which)

    def left(self, who: Hashable) -> None:
        """It was let in, or is over. Idempotent."""
        with self._lock:
            self._waiting.pop(who, None)

    def _tell(self, which: str) -> None:
        if which not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(which)
            self._say(
                f"{which} wait and were not let in; each further one ends the oldest: keep such out by a firewall"
            )


def _source(address: str) -> str:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


class Listening(socket.socket):
    """A bound TCP socket whose connections are in a room, by the address and port that they come from (`peername`),
    until they are let in or closed. Raises OSError.
    """

    def __init__(self, host: str, port: int, room: Room) -> None:
        super().__init__(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._room = room
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
        except OSError:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Peer]:
        accepted, peer = super().accept()
        guest = _Guest(self.family, self.type, self.proto, accepted.detach())
        guest.gone = lambda: self._room.left(peer)
        self._room.came(peer, peer[0], partial(ended, guest))
        return guest, peer


class _Guest(socket.socket):
    gone: Callable[[], None]

    def close(self) -> None:
        self.gone()
        super().close()


def ended(connection: socket.socket) -> None:
    """Whoever reads from it hears that it is over, and closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class QuietServer(ThreadingHTTPServer):
    """A server of the standard library's kind; a client that breaks off is no news. Whose request a handler (`Visit`)
    has read is let in.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[Visit]) -> None:
        self.room = Room()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Peer]:
        request, peer = super().get_request()
        self.room.came(request, peer[0], partial(ended, request))
        return request, peer

    def close_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        self.room.left(request)
        super().close_request(request)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: tuple[str, int]
    ) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Visit(BaseHTTPRequestHandler):
    """One connection to a QuietServer."""

    def let_in(self) -> None:
        """It has asked what may be asked."""
        assert isinstance(self.server, QuietServer)
        self.server.room.left(self.connection)

    def log_message(self, format: str, *args: object) -> None:
        """What a page asks is no news."""


def more_files() -> None:
    """Let this process have as many connections open as its account may, up to MOST_FILES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
