"""Plays recorded frames as a camera gives live ones: each when it is due, by whatever clock the caller goes by.

May not: know a file format, read a clock, or skip a frame in silence: one that was not asked for in time is a gap in
the frames' numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from labctl.clock import MILLISECOND
from labctl.devices import Frame
from labctl.errors import DeviceLost

# Due frames kept, so that none is skipped where times jitter. More would make all frames late for a caller who asks for
# one a period.
QUEUE = 2
MOST = 60  # frames decoded in one call, so that it returns in bounded time after a long pause


class Player:
    """Frames of a recording. `read` gives the next one with its device_time (ms), or None at the end.

    paced: a frame is due as long after `start_ns` as its device_time is after the first one's, and that is its host_ns.
    Otherwise each call gives the next frame, with the time of the call.
    """

    def __init__(self, read: Callable[[], Frame | None], *, paced: bool, start_ns: int) -> None:
        self._read, self._paced, self._start_ns = read, paced, start_ns
        self._due: deque[Frame] = deque(maxlen=QUEUE)
        self._first_ms: float | None = None
        self._step()

    def _step(self) -> None:
        self._next = self._read()
        if self._next is not None:
            first_ms = self._first_ms = self._next.device_time if self._first_ms is None else self._first_ms
            self._next.host_ns = self._start_ns + round((self._next.device_time - first_ms) * MILLISECOND)

    def take(self, now_ns: int) -> Frame | None:
        """The oldest frame that is due, or None. Raises DeviceLost when all have been given."""
        for _ in range(MOST if self._paced else 1):
            if self._next is None or (self._paced and self._next.host_ns > now_ns):
                break
            if not self._paced:
                self._next.host_ns = now_ns
            self._due.append(self._next)
            self._step()
        if self._due:
            return self._due.popleft()
        if self._next is None:
            raise DeviceLost("it has been played to its end")
        return None
