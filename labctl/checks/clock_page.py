"""A page on loopback that shows a number for every picture of the screen, and says when each one was shown.

May not: listen beyond 127.0.0.1, answer another host's name or another site's page, or trust the browser's clock: how
it runs beside the host's is asked again and again.
"""

from __future__ import annotations

import importlib.resources
import json
import threading
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from labctl.clock import MILLISECOND, Clock
from labctl.doors import QuietServer, Visit
from labctl.errors import InputError
from labctl.loopback import LOOPBACK, refusal
from labctl.plain import Json

KEPT = 20_000  # numbers shown last, some five minutes of them
ASKED = 60  # exchanges of time that are kept; the quickest of them counts
LARGEST = 1_000_000  # bytes of what a page may send at once
TWO = "two windows show this page, and each makes labctl forget the other: close one of them"


class PageClock:
    """The browser's clock (ms) in the host's (ns), from exchanges of time: the quickest of the last ones counts."""

    def __init__(self) -> None:
        self._asked: deque[tuple[float, float]] = deque(maxlen=ASKED)  # round trip ms, offset ms

    def add(self, sent_ms: float, host_ns: int, received_ms: float) -> None:
        """An answer that was on its way between two times of the browser."""
        self._asked.append((received_ms - sent_ms, host_ns / MILLISECOND - (sent_ms + received_ms) / 2))

    @property
    def known(self) -> bool:
        return len(self._asked) >= 5

    @property
    def error_ms(self) -> float:
        """How far off a converted time may be: half the quickest round trip."""
        return min(self._asked)[0] / 2

    def to_host_ns(self, page_ms: float) -> int:
        return round((page_ms + min(self._asked)[1]) * MILLISECOND)


class ClockPage:
    """`with ClockPage(clock) as page:` serves the page at `page.url`. `say` is shown below the code.

    loads: how often numbers began anew, as after each loading; two: the one that is heard now had been given up before.
    """

    def __init__(self, clock: Clock, port: int = 0) -> None:
        """Raises InputError when the port is taken."""
        self.say = ""
        self.loads = 0
        self.two = False
        self.clock = PageClock()
        self._host = clock
        self._lock = threading.Lock()
        self._shown: dict[int, float] = {}  # number -> when it came on the screen, ms of the browser's clock; in order
        self._load: Json = None  # which loading of the page is heard: another one counts anew, by another clock
        self._former: list[Json] = []
        html = importlib.resources.files("labctl").joinpath("templates/clock.html").read_bytes()
        try:
            self._server = QuietServer((LOOPBACK, port), _handler(self, html))
        except OSError as error:
            text = f"port {port} cannot be served on ({error.strerror}); leave it out for a free one"
            raise InputError(text) from error
        self.port = int(self._server.server_address[1])
        self.url = f"http://{LOOPBACK}:{self.port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="clock-page", daemon=True)

    @property
    def open(self) -> bool:
        """Has a browser shown numbers, and is its clock known?"""
        with self._lock:
            return self.clock.known and len(self._shown) > 1

    def shown(self, number: int) -> tuple[int, int] | None:
        """When a number came on the screen and when the next one did, ns of the host; None if it was never shown."""
        with self._lock:
            if number not in self._shown or not self.clock.known:
                return None
            began = self._shown[number]
            ended = self._shown.get(number + 1, began)
            return self.clock.to_host_ns(began), self.clock.to_host_ns(ended)

    def answered(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What a page tells: numbers shown since it last did, and its last exchange of time. Answers with the time."""
        now_ns = self._host.now_ns()
        with self._lock:
            if body["load"] != self._load:
                if not body["shown"]:  # a tab in the background shows none, and would be told of for ever
                    return {"host_ns": now_ns, "say": self.say}
                self._begin(body["load"])
            before = body.get("before")
            if before:
                self.clock.add(float(before["sent"]), int(before["host_ns"]), float(before["received"]))
            for number, at_ms in body["shown"]:
                self._shown[int(number)] = float(at_ms)
            while len(self._shown) > KEPT:
                del self._shown[next(iter(self._shown))]
        return {"host_ns": now_ns, "say": self.say}

    def _begin(self, load: Json) -> None:
        """Hear another loading of the page, from its first number on."""
        if self._load not in self._former:
            self._former.append(self._load)
        self._load, self.clock, self.two = load, PageClock(), load in self._former
        self.loads += 1
        self._shown.clear()

    def __enter__(self) -> ClockPage:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(page: ClockPage, text: bytes) -> type[Visit]:
    class Handler(Visit):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self._refused():
                return
            if self.path == "/":
                self._answer(200, "text/html; charset=utf-8", text)
            else:
                self._answer(404, "text/plain", b"")

        def do_POST(self) -> None:
            if self._refused():
                return
            try:
                length = int(self.headers["Content-Length"])
                if self.path != "/told" or not 0 < length <= LARGEST:
                    raise ValueError("nothing that this page says")
                answer = page.answered(json.loads(self.rfile.read(length)))
            except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
                self.close_connection = True
                self._answer(400, "text/plain", b"")
                return
            self._answer(200, "application/json", json.dumps(answer).encode())

        def _refused(self) -> bool:
            said = self.headers.get
            why = refusal(said("Host"), said("Origin"), said("Sec-Fetch-Site"))
            if why is not None:
                self.close_connection = True
                self._answer(403, "text/plain", f"{why}\n".encode())
            return why is not None

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.let_in()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

    return Handler
