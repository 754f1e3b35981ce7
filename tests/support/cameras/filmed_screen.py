"""A screen that shows the clock page's numbers, and a camera that films it with a known delay: no browser, no glass."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import ndimage

from labctl.checks import clock_code
from labctl.checks.clock_page import ClockPage
from labctl.clock import MILLISECOND, SECOND, Clock, ManualClock, MonotonicClock
from labctl.devices import Frame
from labctl.errors import DeviceLost

CLOCK = MonotonicClock()
REFRESH_NS = 16_666_667
TOLD_NS = 50 * MILLISECOND  # between two tellings of a page
OFFSET_MS = 987_654.25  # the browser's clock is another one


def showing(start_ns: int, at_ns: int) -> int:
    """The number at a time on a screen that began to count at another one."""
    return (at_ns - start_ns) // REFRESH_NS + 1


class RemotePage:
    """The page of another process, told over HTTP as the page's own script does. Not there yet: told again later."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def answered(self, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            with self._opener.open(self._url + "told", data=json.dumps(body).encode()) as reply:
                return json.loads(reply.read())
        except OSError:
            return {}


class Screen:
    """Tells the page what it shows, as the page's own script does: from a thread, or whenever `tell` is called. load:
    which loading of the page it is.
    """

    def __init__(self, page: ClockPage | RemotePage, clock: Clock = CLOCK, load: int = 1) -> None:
        self._page, self._clock, self._load = page, clock, load
        self.start_ns = clock.now_ns()
        self._told = 0
        self._before: dict[str, Any] | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="screen")

    def _run(self) -> None:
        while not self._end.wait(TOLD_NS / SECOND):
            self.tell()

    def tell(self) -> None:
        """What was shown since it last told."""
        last = showing(self.start_ns, self._clock.now_ns())
        shown = [[n, self._page_ms(self.start_ns + (n - 1) * REFRESH_NS)] for n in range(self._told + 1, last + 1)]
        sent = self._page_ms(self._clock.now_ns())
        answer = self._page.answered({"load": self._load, "sent": sent, "shown": shown, "before": self._before})
        if answer:
            self._told, received = last, self._page_ms(self._clock.now_ns())
            self._before = {"sent": sent, "host_ns": answer["host_ns"], "received": received}

    def _page_ms(self, host_ns: int) -> float:
        return host_ns / MILLISECOND + OFFSET_MS

    def __enter__(self) -> Screen:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


class ScreenClock(ManualClock):
    """Goes on while somebody sleeps by it, and has its screen tell meanwhile: what is measured by it is the same on
    every machine, however late a thread would be.
    """

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self.screen: Screen | None = None
        self._tells_ns = start_ns

    def sleep_until(self, due_ns: int) -> None:
        while self._tells_ns <= due_ns:
            super().sleep_until(self._tells_ns)
            if self.screen is not None:
                self.screen.tell()
            self._tells_ns += TOLD_NS
        super().sleep_until(due_ns)


class ScreenCamera:
    """Films a screen: each frame was exposed `latency_s` before it is received. `blind` from the start: sees a wall."""

    kind = "real"
    width, height, rate_hz = 320, 240, 30.0

    def __init__(self, start_ns: int, latency_s: float, *, blind: bool = False) -> None:
        self._start_ns, self._latency_ns, self._blind = start_ns, round(latency_s * SECOND), blind
        self._random = np.random.default_rng(3)
        self._due_ns = 0
        self._taken: deque[tuple[int, int]] = deque()
        self.closed = False

    def connect(self, now_ns: int) -> None:
        self._due_ns = now_ns

    def sense(self, observation: Mapping[str, Any]) -> None:
        """It sees for itself."""

    def grab(self, now_ns: int) -> Frame | None:
        if now_ns < self._due_ns:
            return None
        received_ns = self._due_ns
        self._due_ns += round(SECOND / self.rate_hz) + int(self._random.integers(-2, 3)) * MILLISECOND
        number = showing(self._start_ns, received_ns - self._latency_ns)
        picture = np.full((self.height, self.width), 90.0)
        if not self._blind and number > 0:
            code = clock_code.paint(number, 16).astype(float) * 0.7 + 20
            picture[20 : 20 + code.shape[0], 50 : 50 + code.shape[1]] = code
        picture = ndimage.gaussian_filter(picture, 1.0) + self._random.normal(0, 4, picture.shape)
        image = np.repeat(np.clip(picture, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
        return Frame(image, received_ns, received_ns / 1e6, number)

    def about(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self.closed = True


class Absent(ScreenCamera):
    """Not there."""

    def connect(self, now_ns: int) -> None:
        raise DeviceLost("no camera 123 here")


def build(options: Mapping[str, Any], **given: Any) -> ScreenCamera:
    """As a driver, for a screen in another process: start_ns, when it began to count, and latency_s."""
    return ScreenCamera(int(options["start_ns"]), float(options["latency_s"]))
