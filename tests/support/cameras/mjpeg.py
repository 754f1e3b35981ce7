"""A network camera on loopback: MJPEG over HTTP at a steady rate, each picture marked with its number and time.

May not: listen anywhere but on 127.0.0.1. Numbers follow the clock, so they go on over a reconnect as a camera's do.
"""

from __future__ import annotations

import io
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Literal

import numpy as np
from PIL import Image

from labctl.clock import SECOND, MonotonicClock
from support.cameras import barcode

CLOCK = MonotonicClock()
# stall: the link stays, nothing comes. close: the link is cut, and refused until the fault is over. frozen: the same
# picture for ever. wrong_size: pictures of half the size. slow: one picture in five.
Fault = Literal["", "stall", "close", "frozen", "wrong_size", "slow"]
QUALITY = 90


def jpeg(image: np.ndarray) -> bytes:
    """A picture (height, width, 3) uint8 RGB as JPEG."""
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


class MjpegServer:
    """`with MjpegServer() as server:` then open `server.url`. `fault` may be set at any time; "" ends it.

    `sent` counts pictures over all connections; `latest` is the number of the newest; `sent_ns` says when each was
    handed to the network. `backlog`: so many come at once with each connection, as to a client that was slow to open
    it; no later one has one of their numbers.
    """

    def __init__(self, width: int = 320, height: int = 240, rate_hz: float = 30.0, *, backlog: int = 0) -> None:
        self.width, self.height, self.rate_hz, self.backlog = width, height, rate_hz, backlog
        self.fault: Fault = ""
        self.sent = 0
        self.latest = -1
        self.sent_ns: dict[int, int] = {}
        self._start_ns = CLOCK.now_ns()
        self._period_ns = round(SECOND / rate_hz)
        self._end = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/stream.mjpg"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="mjpeg-server")
        self._thread.start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._serve(self)

            def log_message(self, format: str, *args: object) -> None:
                return

        return Handler

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        if self.fault == "close":
            return
        handler.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            handler.send_response(200)
            handler.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
            handler.end_headers()
            self._stream(handler)
        except OSError:
            return  # the client has gone

    def _stream(self, handler: BaseHTTPRequestHandler) -> None:
        number = first = (CLOCK.now_ns() - self._start_ns) // self._period_ns
        picture, held = b"", b""
        while not self._end.is_set():
            number += 1
            due_ns = self._start_ns + max(first + 1, number - self.backlog) * self._period_ns
            if self._end.wait(max(0.0, (due_ns - CLOCK.now_ns()) / SECOND)) or self.fault == "close":
                return
            if self.fault == "stall" or (self.fault == "slow" and number % 5):
                continue
            if self.fault != "frozen" or not picture:
                picture = self._picture(number)
            head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
            held += head.encode() + picture + b"\r\n"
            if number <= first + self.backlog:
                continue  # it goes with the next in one piece: they come at once, however busy this machine is
            # counted first: a client has the picture before the write returns here
            some = range(first + 1 if number == first + 1 + self.backlog else number, number + 1)
            self.sent, self.latest = self.sent + len(some), number
            self.sent_ns.update(dict.fromkeys(some, CLOCK.now_ns()))
            handler.wfile.write(held)
            held = b""

    def _picture(self, number: int) -> bytes:
        part = 2 if self.fault == "wrong_size" else 1
        return jpeg(barcode.paint(self.width // part, self.height // part, number, CLOCK.now_ns()))

    def close(self) -> None:
        """End every connection and let go of the port."""
        self._end.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> MjpegServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
