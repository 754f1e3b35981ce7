"""A uniform grid over an episode, and how far from it everything was really measured. Pure.

May not: read or write anything, or hide an error: what a grid moves it measures, and what it moves too far it names.

Times are int64 ns of the host's monotonic clock. Frame k of a grid stands at t[k]; it has one more time, at which the
last frame's action is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.clock import MILLISECOND, SECOND
from labctl.core.event_bodies import GapBody

SLACK = 1.25  # periods of a stream that a sample may be moved by: what a lost sample or two ask for, not more


@dataclass(frozen=True, slots=True)
class Offset:
    """How far the samples that a grid takes of one stream lie from its times: nearest (n,) index, error_ns (n,)."""

    stream: str
    nearest: np.ndarray
    error_ns: np.ndarray
    bound_ns: int

    @property
    def worst_ns(self) -> int:
        return int(self.error_ns.max(initial=0))

    @property
    def too_far(self) -> bool:
        return self.worst_ns > self.bound_ns


def grid(start_ns: int, end_ns: int, fps: int) -> np.ndarray:
    """Times (n + 1,) of the n frames that fit before end_ns, and the one after; (0,) where none fits."""
    n = int((end_ns - start_ns) * fps // SECOND)
    if n < 1:
        return np.empty(0, np.int64)
    return start_ns + (np.arange(n + 1, dtype=np.int64) * SECOND + fps // 2) // fps


def first_frame(taken_ns: Mapping[str, np.ndarray], rates_hz: Mapping[str, float], go_ns: int, fps: int) -> int:
    """Where a grid begins: at the first picture after go of the fastest camera, else at go.

    A camera that has no picture for two frames after go does not hold the grid up.
    """
    for camera in sorted(taken_ns, key=lambda name: -rates_hz[name]):
        after = taken_ns[camera][taken_ns[camera] >= go_ns]
        if len(after) and after[0] - go_ns <= 2 * SECOND / fps:
            return int(after[0])
    return go_ns


def offset(stream: str, t_ns: np.ndarray, at_ns: np.ndarray, bound_ns: int) -> Offset:
    """The samples t_ns (m,) ascending nearest to at_ns (n,); of two equally near the earlier. No sample is too far."""
    if not len(t_ns):
        far = np.full(len(at_ns), np.iinfo(np.int64).max)
        return Offset(stream, np.zeros(len(at_ns), np.int64), far, bound_ns)
    right = np.searchsorted(t_ns, at_ns, side="left").clip(0, len(t_ns) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(t_ns[right] - at_ns) < np.abs(at_ns - t_ns[left]), right, left)
    return Offset(stream, nearest, np.abs(t_ns[nearest] - at_ns), bound_ns)


def default_bound_ns(rate_hz: float, fps: int) -> int:
    """A stream's own period, or half a frame where that is longer, and a quarter more."""
    return round(SLACK * SECOND * max(1 / rate_hz, 0.5 / fps))


def overlapping(gaps: Sequence[GapBody], stream: str, from_ns: int, to_ns: int) -> int:
    """The longest stretch, ns, that the journal says is missing of a stream between two times; 0 when none is."""
    longest = 0
    for gap in gaps:
        if gap["stream"] != stream:
            continue
        begin, end = gap.get("from_ns"), gap.get("to_ns")
        begin, end = from_ns if begin is None else begin, to_ns if end is None else end
        longest = max(longest, min(end, to_ns) - max(begin, from_ns))
    return longest


def held(t_ns: np.ndarray, at_ns: np.ndarray) -> np.ndarray:
    """The index (n,) of the last sample at or before each time, -1 before the first."""
    return np.searchsorted(t_ns, at_ns, side="right") - 1


def milliseconds(ns: float) -> float:
    """For people: ms to a hundredth."""
    return round(ns / MILLISECOND, 2)
