"""What sensors on a serial line share: rows that a thread of theirs puts down, until it says why no more come.

May not: know what a line says, or open one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from labctl.clock import MonotonicClock
from labctl.devices import Batch, Kind
from labctl.errors import DeviceLost
from labctl.streams import StreamSpec

MOST = 10_000


class Line(Protocol):
    """What is open."""

    def close(self) -> None: ...


class SerialRows:
    """See the module, and `labctl.devices.Sensor`. A driver opens its line in `connect` and calls `_begin`; its thread
    appends (time in ns, values) to `_rows` until `_end` is set, or says in `_lost` why it ends.
    """

    kind: Kind = "real"
    observes = False

    def __init__(self, stream: StreamSpec, join_s: float) -> None:
        """join_s: how long its thread may take to end."""
        self.stream, self._join_s, self._clock = stream, join_s, MonotonicClock()
        self._rows: deque[tuple[int, Sequence[float]]] = deque(maxlen=MOST)
        self._lost = ""
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._line: Line | None = None

    @property
    def _serving(self) -> bool:
        return self._thread is not None and not self._lost

    def _forget(self) -> None:
        """Before a line that was just opened is read."""
        self._rows.clear()
        self._end.clear()
        self._lost = ""

    def _begin(self, serve: Callable[[], None], name: str) -> None:
        self._thread = threading.Thread(target=serve, name=name, daemon=True)
        self._thread.start()

    def sense(self, t_ns: int, observation: Mapping[str, np.ndarray]) -> None:
        """Nothing: it measures by itself."""

    def drain(self, now_ns: int) -> Batch:
        """What it measured since the last call. Raises DeviceLost once it is gone."""
        if self._thread is None:
            raise RuntimeError("the sensor is not connected")
        lost = self._lost  # first: its thread may append its last row and then say so
        rows = [self._rows.popleft() for _ in range(len(self._rows))]
        if lost and not rows:
            raise DeviceLost(lost)
        values = np.array([row for _, row in rows], float).reshape(-1, len(self.stream.columns))
        return Batch(self.stream.name, np.array([t_ns for t_ns, _ in rows], np.int64), values)

    def close(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join(self._join_s)
            self._thread = None
        if self._line is not None:
            self._line.close()
            self._line = None
