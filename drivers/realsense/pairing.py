"""Puts pictures and depth images that come one by one, in any order, into pairs by their times.

May not: know a camera, read a clock, or depend on how two streams interleave: only on what each of them holds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
LOOKAHEAD = 30  # pictures kept waiting for a depth image; two streams of a recording are never so far apart


@dataclass(slots=True)
class Pairing(Generic[T]):
    """tolerance_ms: a picture and a depth image belong together when their times differ by no more, so less than half
    a period. Times rise within each stream. `alone` counts depth images that no picture belongs to.
    """

    tolerance_ms: float
    alone: int = 0
    _pictures: deque[tuple[float, T]] = field(default_factory=deque)
    _depths: deque[tuple[float, T]] = field(default_factory=deque)

    def picture(self, t_ms: float, item: T) -> None:
        """A picture of that time."""
        self._pictures.append((t_ms, item))

    def depth(self, t_ms: float, item: T) -> None:
        """A depth image of that time."""
        self._depths.append((t_ms, item))

    def clear(self) -> None:
        """Let go of what waits; the count stays."""
        self._pictures.clear()
        self._depths.clear()

    def ready(self, *, ended: bool = False) -> tuple[T, T | None] | None:
        """The next picture, in order, with its depth image or None if there is none; None while it is not decided.

        ended: nothing more will come.
        """
        if not self._pictures:
            return None
        at_ms = self._pictures[0][0]
        while self._depths and self._depths[0][0] < at_ms - self.tolerance_ms:
            self._depths.popleft()
            self.alone += 1
        if self._depths and self._depths[0][0] <= at_ms + self.tolerance_ms:
            return self._pictures.popleft()[1], self._depths.popleft()[1]
        if self._depths or ended or len(self._pictures) > LOOKAHEAD:
            return self._pictures.popleft()[1], None
        return None
