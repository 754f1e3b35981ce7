"""Timed targets of one lease epoch, the path through them, its lead, and the speeds of a base.

May not: know a robot, a lease or a clock; times come in with targets and grids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl import rotations
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Actions

POSE = 7  # numbers of a tool's pose
AVERAGE_S = 0.05  # how far the limits' own average over 0.1 s is behind
LEAST_S, MOST_S = 0.15, 0.5  # a path leads by what the robot goes in so long: the bounds of that
SLACK = 0.002  # rad or m: less than that is no lead
LOOK_NS = 50 * MILLISECOND  # a speed is looked at over so long: some drivers give a tick's targets at once


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

    @property
    def ends_ns(self) -> int:
        """When the last target is to be reached; 0 without any."""
        return int(self.t_ns[-1]) if len(self.t_ns) else 0

    def drive(self, t_ns: np.ndarray, values: np.ndarray, dt_ns: int) -> None:
        """What targets (n, dof + hand), each the end of a step of dt_ns at most, ask of a base."""
        if self._twist:
            self._speeds.replace(t_ns, values[:, self._twist], dt_ns)

    def replace(
        self,
        t_ns: np.ndarray,
        values: np.ndarray,
        expires_ns: int,
        now_ns: int,
        held: np.ndarray,
        leaves_ns: int | None = None,
    ) -> None:
        """Targets from `t_ns[0]` on replace older ones, and none before that is skipped; a path that would start from
        nothing starts from where the robot is held. leaves_ns: the old path is left then, wherever it is, and not after
        its last target before `t_ns[0]`; a target that was to be reached by then is reached at once.
        """
        if leaves_ns is not None:
            here = self.sample(np.array([leaves_ns])) if len(self.t_ns) else held[None, :]
            t_ns = np.concatenate([[leaves_ns], np.maximum(t_ns, leaves_ns)])
            values = np.concatenate([here, values])
        end = int(self.t_ns.searchsorted(t_ns[0]))
        kept = slice(max(int(self.t_ns[:end].searchsorted(now_ns - SECOND, side="right")) - 2, 0), end)
        old_t, old_v = self.t_ns[kept], self.values[kept]
        if not len(old_t):
            old_t, old_v = np.array([min(now_ns, int(t_ns[0]) - 1)]), held[None, :]
        elif self.t_ns[-1] < now_ns < t_ns[0]:  # the old path was held at its end: leave from there, now
            old_t, old_v = np.append(old_t, now_ns), np.concatenate([old_v, old_v[-1:]])
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


class Lead:
    """How far a path that is integrated from speeds may run ahead of a robot that its limits hold back. Of an arm of
    `dof` axes; of those in `twist`, speeds of a base, nothing is integrated.

    Where a joint's or the tool's speed is limited such a path would run ahead without end, and whoever then asks for
    rest would see the arm go on to its end, for seconds. A path that the robot follows is let be: what an average over
    0.1 s, and a start or a stop at the accelerations that were seen, leave between the two.
    """

    def __init__(self, dof: int, twist: Sequence[int] = ()) -> None:
        self._dof, self._twist = dof, list(twist)
        self.clear(-1)

    def clear(self, asked_ns: int) -> None:
        """A new path begins; what was asked for up to asked_ns says nothing of it."""
        self._from_ns = asked_ns + 1
        self._taken: list[tuple[int, int, np.ndarray]] = []  # of the lead: on which way, (dof,)
        self._lag, self._speed, self._change = np.zeros((3, self._dof))
        self._t_ns, self._sent = np.empty(0, np.int64), np.empty((0, self._dof))

    def see(self, actions: Actions) -> None:
        """What became of setpoints, in their order."""
        requested, sent = actions.requested[:, : self._dof], actions.sent[:, : self._dof]
        known = np.isfinite(requested).all(axis=1) & np.isfinite(sent).all(axis=1)
        known &= actions.t_ns > (self._t_ns[-1] if len(self._t_ns) else -1)
        if not known.any():
            return
        newest = np.flatnonzero(known)[-1]
        if (at_ns := int(actions.t_ns[newest])) >= self._from_ns:
            self._taken = [taken for taken in self._taken if taken[1] > at_ns]
            late = [over * min(1.0, (to_ns - at_ns) / (to_ns - from_ns)) for from_ns, to_ns, over in self._taken]
            self._lag = requested[newest] - sent[newest] - sum(late, np.zeros(self._dof))
        keep = self._t_ns >= actions.t_ns[newest] - 2 * LOOK_NS
        keep[-1:] = True  # of a slow robot too there is a speed
        self._t_ns = np.concatenate([self._t_ns[keep], actions.t_ns[known]])
        self._sent = np.concatenate([self._sent[keep], sent[known]])
        self._look()

    def _look(self) -> None:
        """How fast the robot goes, and the most that changed since it stood."""
        spans = np.diff(self._t_ns) / SECOND
        if not len(spans):
            return
        speeds = np.diff(self._sent, axis=0) / spans[:, None]
        lately = int(np.searchsorted(self._t_ns, self._t_ns[-1] - LOOK_NS))
        lately = min(lately, len(self._t_ns) - 2)
        mean = (self._sent[-1] - self._sent[lately]) / ((self._t_ns[-1] - self._t_ns[lately]) / SECOND)
        self._speed = np.maximum(np.abs(speeds[-1]), np.abs(mean))
        changes = np.abs(np.diff(speeds, axis=0)) / spans[1:, None]
        self._change = np.maximum(self._change, changes.max(axis=0, initial=0.0))
        self._change[self._speed == 0.0] = 0.0

    def bounded(self, start: np.ndarray, from_ns: int, to_ns: int) -> np.ndarray:
        """Where speeds are integrated from (dof,), in the place of where the path leads: no farther ahead of the robot
        than it needs to come to rest. The first target that is led from there is on its way from from_ns to to_ns.
        """
        slows_s = np.divide(self._speed, 2 * self._change, out=np.full(self._dof, MOST_S), where=self._change > 0)
        most = self._speed * np.clip(AVERAGE_S + slows_s, LEAST_S, MOST_S) + SLACK
        over = self._lag - np.clip(self._lag, -most, most)
        over[self._twist] = 0.0
        if over.any():
            self._lag = self._lag - over
            self._taken.append((from_ns, max(to_ns, from_ns + 1), over))
        return start - over


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
