"""Setpoints between the loop that limits them and the thread that gives them to a device, one every control period.

May not: talk to a device, read a clock, or make a device wait for the loop. When the loop stalls, the setpoints of a
stop that it left behind bring the robot to rest within its limits.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

from labctl.devices import Actions

OF_A_STOP = 0  # the time of a setpoint that nobody asked for: it has none of its own
COMMITTED = 3  # setpoints of a stop already under way that are played before the loop takes over again


@dataclass(slots=True)
class _Row:
    """One setpoint on its way. `requested` is not a number where nobody asked; `given` is False if it is left out."""

    t_ns: int
    requested: np.ndarray
    limited: np.ndarray
    given: bool


class SetpointQueue:
    """A queue of limited setpoints with the stop that follows the last of them. Rows are (dof + 1,): joints, gripper.

    A setpoint is given `delay_ns` after its own time, so that a late visit of the loop does not interrupt the motion.
    Without a delay the newest that is due is given, and what came before it is passed over. Both sides call it; it
    locks for microseconds.
    """

    def __init__(self, dof: int, delay_ns: int) -> None:
        self._delay_ns = delay_ns
        self._lock = threading.Lock()
        self._queue: deque[_Row] = deque()
        self._done: list[tuple[int, np.ndarray, np.ndarray, np.ndarray, float]] = []
        self._tail = np.empty((0, dof + 1))
        self._last = self._before = np.zeros(dof + 1)
        self._answered_ns = 0  # the time of the setpoint that was answered last
        self._filling = True  # waiting until the first setpoint is due
        self._parted = False

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def last(self) -> np.ndarray:
        """What the device was given last."""
        return self._last

    def reset(self, at: np.ndarray) -> None:
        """The robot stands at `at` (dof + 1,): nothing is queued."""
        with self._lock:
            self._drop()
            self._last = self._before = at.copy()
            self._parted = False

    def put(self, t_ns: np.ndarray, requested: np.ndarray, limited: np.ndarray, tail: np.ndarray) -> bool:
        """Queue setpoints, and the stop (k, dof + 1) that follows if none come after them.

        False, and nothing is queued, once setpoints of a stop were given: these go on from where the robot no longer
        is.
        """
        with self._lock:
            if self._parted:
                return False
            for at, asked, row in zip(t_ns.tolist(), requested, limited, strict=True):
                self._queue.append(_Row(at, asked, row, True))
            self._tail = tail
            return True

    def leave_out(self, t_ns: np.ndarray, requested: np.ndarray) -> None:
        """Answer setpoints without giving them: the robot may not move, or they are too old."""
        with self._lock:
            held = self._queue[-1].limited if self._queue else self._last
            for at, asked in zip(t_ns.tolist(), requested, strict=True):
                self._queue.append(_Row(at, asked, held, False))
            if self._filling and not any(row.given for row in self._queue):
                self._drop(keep_tail=True)

    @property
    def parted(self) -> bool:
        """Has the loop been so late that setpoints of the stop were given? Then `take_over` before the next `put`."""
        return self._parted

    def take_over(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the robot will be, (dof + 1,), and its last step, once the stop under way is cut short by a `put`."""
        with self._lock:
            self._parted = False
            kept, self._tail = self._tail[:COMMITTED], self._tail[COMMITTED:]
            path = [self._before, self._last, *kept]
            nobody = np.full_like(self._last, np.nan)
            self._queue.extend(_Row(OF_A_STOP, nobody, row, True) for row in kept)
            return path[-1], path[-1] - path[-2]

    def take(self, now_ns: int) -> np.ndarray | None:
        """The setpoint to give now, or None while there is none. Called once a control period."""
        with self._lock:
            if not self._delay_ns:
                self._pass_over(now_ns)
            while self._queue:
                row = self._queue[0]
                if self._filling and row.given and now_ns < row.t_ns + self._delay_ns:
                    return None
                self._queue.popleft()
                if row.given:
                    self._filling = False
                    self._before, self._last = self._last, row.limited
                self._answer(row, now_ns)
                if row.given:
                    return row.limited
            if len(self._tail):
                self._before, self._last, self._tail = self._last, self._tail[0], self._tail[1:]
                self._parted = True
                self._answer(_Row(OF_A_STOP, np.full_like(self._last, np.nan), self._last, True), now_ns)
                return self._last
            self._filling = True
            self._before = self._last
            return None

    def _pass_over(self, now_ns: int) -> None:
        """Answer what is older than the newest setpoint that is due: with that one, which is given next."""
        due = [place for place, row in enumerate(self._queue) if row.given and row.t_ns <= now_ns]
        if due and due[-1]:
            self._before, self._last = self._last, self._queue[due[-1]].limited
            for _ in range(due[-1]):
                self._answer(self._queue.popleft(), now_ns)

    def _answer(self, row: _Row, now_ns: int) -> None:
        """A setpoint of a stop is behind the last one in time: those that the loop was late with come after it, with
        their own times.
        """
        t_ns = self._answered_ns = row.t_ns or self._answered_ns + 1
        delay_s = max(0.0, (now_ns - t_ns) / 1e9) if row.given else 0.0
        self._done.append((t_ns, row.requested, row.limited, self._last, delay_s))

    def discard(self) -> None:
        """A stop: nothing queued is given any more."""
        with self._lock:
            self._drop()

    def _drop(self, *, keep_tail: bool = False) -> None:
        for row in self._queue:
            if row.t_ns != OF_A_STOP:  # nobody asked for those
                self._answer(row, 0)
        self._queue.clear()
        if not keep_tail:
            self._tail = self._tail[:0]
        self._filling = True

    def answered(self) -> Actions:
        """The setpoints decided since the last call, in order."""
        with self._lock:
            done, self._done = self._done, []
        width = len(self._last)
        if not done:
            none = np.empty((0, width))
            return Actions(np.empty(0, np.int64), none, none, none, np.empty(0))
        t_ns, requested, limited, sent, delay_s = zip(*done, strict=True)
        return Actions(np.array(t_ns, np.int64), *(np.array(rows) for rows in (requested, limited, sent, delay_s)))
