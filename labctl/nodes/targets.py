"""Timed targets of one lease epoch, the path through them, and the speeds of a base that drives.

May not: know a robot, a lease or a clock; times come in with targets and grids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl import rotations
from labctl.clock import SECOND

POSE = 7  # numbers of a tool's pose


class Speeds:
    """Speeds of a base, (k,): each holds for the step that ends at its time, and no longer. Where no step is, they are
    zero: a place may be held, a speed would drive on.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.clear()

    def clear(self) -> None:
        self._begins = self._ends = np.empty(0, np.int64)
        self._values = np.empty((0, self._width))

    def replace(self, t_ns: np.ndarray, values: np.ndarray, dt_ns: int) -> None:
        """Steps (n, k) that last dt_ns at most and end at t_ns (n,); what was to be from the first on is dropped."""
        begins = t_ns - dt_ns
        begins[1:] = np.maximum(begins[1:], t_ns[:-1])
        keep = (self._begins < begins[0]) & (self._ends > begins[0] - SECOND)
        self._ends = np.concatenate([np.minimum(self._ends[keep], begins[0]), t_ns])
        self._begins = np.concatenate([self._begins[keep], begins])
        self._values = np.concatenate([self._values[keep], values])

    def sample(self, grid_ns: np.ndarray) -> np.ndarray:
        """What is to be driven at grid_ns (n,), (n, k)."""
        found = np.zeros((len(grid_ns), self._width))
        step = self._ends.searchsorted(grid_ns)
        inside = step < len(self._ends)
        inside[inside] = grid_ns[inside] > self._begins[step[inside]]
        found[inside] = self._values[step[inside]]
        return found


class Targets:
    """Timed joint and gripper targets of one lease epoch: a smooth path through the knots, held at its end until stale.

    Joints follow a monotone cubic (Fritsch and Carlson 1980, harmonic-mean slopes), so that a chunk asks for no jump in
    velocity and the path never leaves the span of two knots: a tool sent to 5 mm above the tote's floor stays above
    it. The hand's axes go in straight lines. twist: the columns that are speeds of a base, which `drive` is told; they
    are never held (`Speeds`).
    """

    def __init__(self, dof: int, hand: int = 1, twist: Sequence[int] = ()) -> None:
        self._dof, self._width = dof, dof + hand
        self._twist, self._speeds = list(twist), Speeds(len(twist))
        self.clear()

    def clear(self) -> None:
        self.t_ns = np.empty(0, np.int64)
        self.values = np.empty((0, self._width))
        self._rise = self._bend0 = self._bend1 = self.values
        self._spans = self.t_ns
        self._still = True
        self.expires_ns = 0
        self._speeds.clear()

    def drive(self, t_ns: np.ndarray, values: np.ndarray, dt_ns: int) -> None:
        """What targets (n, dof + hand), each the end of a step of dt_ns at most, ask of a base."""
        if self._twist:
            self._speeds.replace(t_ns, values[:, self._twist], dt_ns)

    def replace(self, t_ns: np.ndarray, values: np.ndarray, expires_ns: int, now_ns: int, held: np.ndarray) -> None:
        """Targets from `t_ns[0]` on replace older ones; a path that would start from nothing starts from where the
        robot is held.
        """
        keep = self.t_ns < t_ns[0]
        old_t, old_v = self.t_ns[keep][-2:], self.values[keep][-2:]
        if not len(old_t):
            old_t, old_v = np.array([min(now_ns, int(t_ns[0]) - 1)]), held[None, :]
        elif old_t[-1] < now_ns < t_ns[0]:  # the old path was held at its end: leave from there, now
            old_t, old_v = np.array([now_ns]), old_v[-1:]
        self.t_ns = np.concatenate([old_t, t_ns])
        self.values = np.concatenate([old_v, values])
        spans = np.maximum(np.diff(self.t_ns), 1)
        self._rise = np.diff(self.values, axis=0)
        secants = self._rise / spans[:, None]
        slopes = np.zeros_like(self.values)
        product, total = secants[:-1] * secants[1:], secants[:-1] + secants[1:]
        np.divide(2 * product, total, out=slopes[1:-1], where=product > 0)
        self._bend0 = slopes[:-1] * spans[:, None] - self._rise
        self._bend1 = slopes[1:] * spans[:, None] - self._rise
        self._bend0[:, self._dof :] = self._bend1[:, self._dof :] = 0.0
        self._spans = spans
        self._still = bool((self.values == self.values[-1]).all())
        self.expires_ns = expires_ns

    def step(self, at_ns: int, value: np.ndarray, expires_ns: int, held: np.ndarray) -> None:
        """From at_ns on the target is value (dof + hand,), at once; before that what it was."""
        before = self.sample(np.array([at_ns]))[0] if len(self.t_ns) else held
        self.replace(np.array([at_ns - 1, at_ns]), np.stack([before, value]), expires_ns, at_ns, held)

    def sample(self, grid_ns: np.ndarray) -> np.ndarray:
        """Values (n, dof + hand) on the grid; before the first and after the last knot the end values hold, of a base
        none.
        """
        values = self._path(grid_ns)
        if self._twist:
            values[:, self._twist] = self._speeds.sample(grid_ns)
        return values

    def _path(self, grid_ns: np.ndarray) -> np.ndarray:
        if self._still or grid_ns[0] >= self.t_ns[-1]:
            return np.tile(self.values[-1], (len(grid_ns), 1))
        before = self.t_ns.searchsorted(grid_ns, side="right") - 1
        np.minimum(before, len(self._spans) - 1, out=before)
        np.maximum(before, 0, out=before)
        s = (grid_ns - self.t_ns[before]) / self._spans[before]
        np.minimum(s, 1.0, out=s)
        np.maximum(s, 0.0, out=s)
        s = s[:, None]
        rest = 1.0 - s
        bend = rest * self._bend0[before] - s * self._bend1[before]
        return self.values[before] + s * (self._rise[before] + rest * bend)


def integrated_joints(
    t_ns: np.ndarray, speeds: np.ndarray, dt_ns: int, start: np.ndarray, twist: Sequence[int] = ()
) -> np.ndarray:
    """Joint angles (n, dof) reached at t_ns (n,) by joint speeds (n, dof) in rad/s held from dt_ns before each on. The
    columns `twist` are speeds of a base, and stay so.
    """
    spans = np.diff(t_ns, prepend=t_ns[0] - dt_ns) / SECOND
    reached = start + np.cumsum(speeds * spans[:, None], axis=0)
    reached[:, list(twist)] = speeds[:, list(twist)]
    return reached


def integrated_poses(t_ns: np.ndarray, twists: np.ndarray, dt_ns: int, start: np.ndarray) -> np.ndarray:
    """Tool poses (n, 7) reached from start (7,) by twists (n, 6): m/s, then rad/s about the axes of the base frame. Of
    two tools (n, 14) from (14,) by (n, 12), one behind the other.
    """
    if len(start) > POSE:
        parts = [
            integrated_poses(t_ns, twists[:, 6 * i : 6 * i + 6], dt_ns, start[POSE * i : POSE * (i + 1)])
            for i in range(len(start) // POSE)
        ]
        return np.concatenate(parts, axis=1)
    spans = np.diff(t_ns, prepend=t_ns[0] - dt_ns) / SECOND
    out = np.empty((len(t_ns), POSE))
    moves = twists * spans[:, None]
    out[:, :3] = start[:3] + np.cumsum(moves[:, :3], axis=0)
    turn = rotations.unit(start[3:])
    for i, spin in enumerate(rotations.of_vector(moves[:, 3:])):
        turn = out[i, 3:] = rotations.unit(rotations.product(spin, turn))
    return out
