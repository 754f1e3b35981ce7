"""Reads a camera in a thread of its own, so that frames are stamped when they come and `grab` need not wait for one.

May not: know a camera, or drop a frame in silence: what the queue could not hold is a gap in the frames' numbers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Frame
from labctl.errors import DeviceLost, LabctlError

QUEUE = 12  # frames; a caller that is later than this loses the oldest. Librealsense gives some in bursts of nine
JOIN_S = 5.0
FEWEST_REPEATS = 5  # so many pictures alike at least, before a camera counts as frozen


class FrameSource(Protocol):
    """A camera as its thread sees it. All three are called in that thread alone.

    `open` raises a DeviceError when the camera is not there or will not do what is asked. `read` blocks for less than a
    second or so, stamps what came with the host's clock and returns None when nothing did; it raises DeviceLost.
    `close` never raises.
    """

    def open(self) -> None: ...
    def read(self) -> Frame | None: ...
    def close(self) -> None: ...


class Repeats:
    """Notices a camera that gives the same picture over and over. limit_s 0: never."""

    def __init__(self, limit_s: float) -> None:
        self._limit_ns = round(limit_s * SECOND)
        self._last: np.ndarray | None = None
        self._since_ns = 0
        self._count = 0

    def look(self, image: np.ndarray, host_ns: int) -> None:
        """One more picture. Raises DeviceLost once the same bytes have come for as long as the limit."""
        if not self._limit_ns:
            return
        last, self._last = self._last, image
        if last is None or not _same(last, image):
            self._since_ns, self._count = host_ns, 0
            return
        self._count += 1
        if self._count >= FEWEST_REPEATS and host_ns - self._since_ns >= self._limit_ns:
            seconds = (host_ns - self._since_ns) / SECOND
            raise DeviceLost(
                f"it gives the same picture over and over, {self._count + 1} times in {seconds:.1f} s; "
                "plug it in anew, or set frozen_s = 0 if nothing in its view ever changes"
            )


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    """Are two pictures the same? Few lines tell for nearly all that are not."""
    return np.array_equal(one[::16], other[::16]) and np.array_equal(one, other)


class FrameReader:
    """Runs a FrameSource. `start` returns once the first frame is there; `take` gives frames in order.

    silent_s: so long without a frame, and the camera is lost. open_s: how long `start` waits for the first one.
    """

    def __init__(self, name: str, source: FrameSource, *, silent_s: float, open_s: float, frozen_s: float) -> None:
        self._name, self._source = name, source
        self._silent_ns, self._open_s = round(silent_s * SECOND), open_s
        self._frozen_s = frozen_s
        self._clock = MonotonicClock()
        self._frames: deque[Frame] = deque(maxlen=QUEUE)
        self._changed = threading.Condition()
        self._end = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Is the camera being read, and not lost?"""
        return self._thread is not None and self._error is None

    def start(self) -> None:
        """Open the camera and wait for its first frame. Raises DeviceLost, or what the source raised in opening."""
        if self.running:
            return
        self.end()
        if self._thread is not None:
            raise DeviceLost(f"{self._name}: its driver hangs in an earlier call; restart labctl")
        self._frames.clear()
        self._error = None
        self._end.clear()
        self._thread = threading.Thread(target=self._run, name=f"camera-{self._name}", daemon=True)
        self._thread.start()
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._frames) or self._error is not None, self._open_s):
                self._error = DeviceLost(f"{self._name} gave no picture within {self._open_s:g} s")
            failed = None if self._frames else self._error  # under the lock: the first may come right behind it
        if failed is not None:
            self.end()
            raise failed

    def take(self, wait_s: float) -> Frame | None:
        """The oldest frame not yet taken, or None if there is none within `wait_s`.

        Raises DeviceLost when the camera is lost and all of its frames are taken.
        """
        if self._thread is None:
            raise RuntimeError("the camera is not connected")
        self._wait(lambda: bool(self._frames) or self._error is not None, wait_s)
        with self._changed:
            if self._frames:
                return self._frames.popleft()
        if self._error is not None:
            raise self._error
        return None

    def end(self) -> None:
        """Let go of the camera. Any number of times."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            if not self._thread.is_alive():
                self._thread = None

    def _wait(self, found: Callable[[], bool], wait_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(found, wait_s)

    def _run(self) -> None:
        try:
            self._source.open()
            self._read_on()
        except LabctlError as error:
            self._fail(type(error)(f"{self._name}: {error}"))
        except Exception as error:  # a bug in a driver: whoever takes frames must hear of it
            self._fail(error)
        finally:
            self._source.close()

    def _read_on(self) -> None:
        repeats = Repeats(self._frozen_s)
        last_ns = self._clock.now_ns()
        while not self._end.is_set():
            frame = self._source.read()
            if frame is None:
                silent_ns = self._clock.now_ns() - last_ns
                if silent_ns > self._silent_ns:
                    raise DeviceLost(f"no picture for {silent_ns / SECOND:.1f} s; check its cable and power")
                continue
            last_ns = frame.host_ns
            repeats.look(frame.image, frame.host_ns)
            with self._changed:
                self._frames.append(frame)
                self._changed.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()
