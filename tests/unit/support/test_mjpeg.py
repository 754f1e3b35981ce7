"""The loopback camera sends marked pictures, and each of its faults is what it says.

What was sent before a fault waits in the sockets, the more of it the later a busy machine comes to read: it is read
away.
"""

from __future__ import annotations

import http.client
import io
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from support.cameras import barcode
from support.cameras.mjpeg import CLOCK, MjpegServer

pytestmark = pytest.mark.real_time


@pytest.fixture
def server() -> Iterator[MjpegServer]:
    with MjpegServer(rate_hz=100.0) as made:
        yield made


class Client:
    """Reads parts of a multipart stream, the plain way."""

    def __init__(self, server: MjpegServer) -> None:
        host, _, port = server.url.split("/")[2].partition(":")
        self.link = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            self.link.request("GET", "/stream.mjpg")
            self.socket = self.link.sock  # the answer takes it over
            self.answer = self.link.getresponse()
        except (OSError, http.client.HTTPException):
            self.link.close()
            raise

    def picture(self) -> np.ndarray:
        """The next picture; raises OSError or EOFError."""
        length = 0
        while True:
            line = self.answer.readline()
            if not line:
                raise EOFError
            if line.startswith(b"Content-Length:"):
                length = int(line.split(b":")[1])
            if line == b"\r\n" and length:
                return np.asarray(Image.open(io.BytesIO(self.answer.read(length))))

    def until(self, wanted: Callable[[np.ndarray], bool]) -> np.ndarray:
        """The first picture of which this holds; what came before it is read away."""
        while not wanted(found := self.picture()):
            continue
        return found

    def close(self) -> None:
        self.answer.close()
        self.link.close()


@pytest.fixture
def client(server: MjpegServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


def test_pictures_are_numbered_and_timed_by_the_hosts_clock(server: MjpegServer) -> None:
    before_ns = CLOCK.now_ns()
    client = Client(server)
    marks = [barcode.read(client.picture()) for _ in range(10)]
    client.close()
    numbers = [mark.number for mark in marks]
    assert numbers == list(range(numbers[0], numbers[0] + 10))
    times = [mark.t_ns for mark in marks]
    assert times == sorted(times) and before_ns < times[0] and times[-1] < CLOCK.now_ns()
    assert server.sent >= 10 and server.latest >= numbers[-1]


def test_a_frozen_camera_repeats_itself(server: MjpegServer, client: Client) -> None:
    server.fault = "frozen"
    last = [barcode.read(client.picture()).number]
    client.until(lambda picture: last.append(barcode.read(picture).number) or last[-1] == last[-2])
    assert {barcode.read(client.picture()).number for _ in range(4)} == {last[-1]}
    server.fault = ""
    client.until(lambda picture: barcode.read(picture).number > last[-1])
    assert len({barcode.read(client.picture()) for _ in range(8)}) == 8


def test_a_camera_of_another_size_sends_smaller_pictures(server: MjpegServer, client: Client) -> None:
    server.fault = "wrong_size"
    client.until(lambda picture: picture.shape == (120, 160, 3))
    assert {client.picture().shape for _ in range(4)} == {(120, 160, 3)}


def test_a_slow_camera_sends_one_in_five(server: MjpegServer, client: Client) -> None:
    server.fault = "slow"
    slow_ns = CLOCK.now_ns()
    client.until(lambda picture: barcode.read(picture).t_ns > slow_ns)  # it may have been in the making
    numbers = [barcode.read(client.picture()).number for _ in range(4)]
    assert {b - a for a, b in pairwise(numbers)} == {5} and numbers[0] % 5 == 0


def test_a_stalled_camera_keeps_the_link_and_a_closed_one_cuts_it(server: MjpegServer) -> None:
    waiting = Client(server)
    waiting.socket.settimeout(0.5)
    server.fault = "stall"
    with pytest.raises(TimeoutError):
        while True:
            waiting.picture()
    waiting.close()
    server.fault = "close"
    with pytest.raises((OSError, http.client.HTTPException)):
        Client(server)
    server.fault = ""
    again = Client(server)
    assert barcode.read(again.picture()) is not None
    again.close()


def test_closing_the_server_leaves_no_thread(client: Client, server: MjpegServer) -> None:
    server.close()
    assert not [
        thread for thread in threading.enumerate() if "mjpeg" in thread.name or "process_request" in thread.name
    ]
