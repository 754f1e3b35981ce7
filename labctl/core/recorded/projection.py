"""Streams brought to other instants, such as those at which a camera took its frames. A pure function of samples.

May not: read or store anything, invent a value across a gap, or change what was recorded: a projection is made anew
from the measured samples each time, and what it refuses it says.

Times are int64 nanoseconds of the host's monotonic clock. A frame's light fell at `capture_ns`, before it was received.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from labctl import rotations
from labctl.clock import SECOND

Method = Literal["linear", "previous"]


@dataclass(frozen=True, slots=True)
class Projected:
    """values (m, k) float64 at the m instants asked for; valid (m,) bool. Where it is not valid a row is NaN."""

    values: np.ndarray
    valid: np.ndarray


def capture_ns(host_ns: np.ndarray, latency_s: float) -> np.ndarray:
    """When frames were taken: host_ns (n,) of receipt less the camera's latency (its `latency_s` in the cell)."""
    return np.asarray(host_ns, dtype=np.int64) - round(latency_s * SECOND)


def project(
    t_ns: np.ndarray,
    values: np.ndarray,
    at_ns: np.ndarray,
    *,
    max_gap_ns: int,
    method: Method = "linear",
    quaternions: Sequence[int] = (),
) -> Projected:
    """Samples t_ns (n,) ascending, values (n, k) or (n,), at the instants at_ns (m,), in any order.

    linear: between the two samples around an instant, which must be no more than max_gap_ns apart; for what changes
    continuously. `quaternions` are the first columns of unit quaternions (four columns each): these turn along the
    shortest arc. previous: the last sample at or before an instant, no more than max_gap_ns older; for what changes in
    steps. Nothing is projected beyond the first or the last sample but, with `previous`, up to max_gap_ns after it.

    Raises ValueError for times that do not ascend or shapes that do not fit.
    """
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(t_ns):
        raise ValueError(f"{len(t_ns)} times for values of shape {values.shape}")
    if method == "previous":
        index = previous_index(t_ns, at_ns, max_gap_ns=max_gap_ns)
        valid = index >= 0
        found = np.full((len(index), values.shape[1]), np.nan)
        found[valid] = values[index[valid]]
        return Projected(found, valid)
    left, right, share = surrounding(t_ns, at_ns, max_gap_ns=max_gap_ns)
    valid = left >= 0
    found = np.full((len(left), values.shape[1]), np.nan)
    before, after, part = values[left[valid]], values[right[valid]], share[valid, None]
    inside = before + part * (after - before)
    for first in quaternions:
        columns = slice(first, first + 4)
        inside[:, columns] = rotations.between(before[:, columns], after[:, columns], part)
    found[valid] = inside
    return Projected(found, valid)


def previous_index(t_ns: np.ndarray, at_ns: np.ndarray, *, max_gap_ns: int) -> np.ndarray:
    """The index (m,) of the last sample at or before each instant; -1 where it is older than max_gap_ns or missing."""
    t_ns, at_ns = _times(t_ns, at_ns)
    index = np.searchsorted(t_ns, at_ns, side="right") - 1
    there = index >= 0
    there[there] = at_ns[there] - t_ns[index[there]] <= max_gap_ns
    return np.where(there, index, -1)


def surrounding(t_ns: np.ndarray, at_ns: np.ndarray, *, max_gap_ns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The samples around each instant: left (m,), right (m,) and how far between them it lies, share (m,) in 0..1.

    An instant on a sample has left = right. left and right are -1 where there is none on a side, or where they are
    more than max_gap_ns apart.
    """
    t_ns, at_ns = _times(t_ns, at_ns)
    left = np.searchsorted(t_ns, at_ns, side="right") - 1
    on = left >= 0
    on[on] = t_ns[left[on]] == at_ns[on]
    right = np.where(on, left, left + 1)
    there = (left >= 0) & (right < len(t_ns))
    apart = np.zeros(len(at_ns), dtype=np.int64)
    apart[there] = t_ns[right[there]] - t_ns[left[there]]
    there &= apart <= max_gap_ns
    share = np.zeros(len(at_ns))
    inside = there & ~on
    share[inside] = (at_ns[inside] - t_ns[left[inside]]) / apart[inside]
    return np.where(there, left, -1), np.where(there, right, -1), share


def _times(t_ns: np.ndarray, at_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    t_ns, at_ns = np.asarray(t_ns, dtype=np.int64), np.asarray(at_ns, dtype=np.int64)
    if t_ns.ndim != 1 or at_ns.ndim != 1:
        raise ValueError(f"times of shapes {t_ns.shape} and {at_ns.shape}; one dimension each")
    if (np.diff(t_ns) < 0).any():
        raise ValueError("the times of a stream must ascend")
    return t_ns, at_ns
