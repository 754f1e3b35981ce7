"""How far a path that is integrated from speeds may run ahead of the robot that its limits hold back.

May not: know a limit or a clock, or hold back a path that the robot follows: what an average over 0.1 s, and a start or
a stop at the accelerations that were seen, leave between the two is let be.

Speeds are integrated from where the path leads. Where a joint's or the tool's speed is limited the path would run ahead
without end, and whoever then asks for rest would see the arm go on to the path's end, for seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Actions

AVERAGE_S = 0.05  # how far the limits' own average over 0.1 s is behind
LEAST_S, MOST_S = 0.15, 0.5  # a path leads by what the robot goes in so long: the bounds of that
SLACK = 0.002  # rad or m: less than that is no lead
LOOK_NS = 50 * MILLISECOND  # a speed is looked at over so long: some drivers give a tick's targets at once


class Lead:
    """See the module. Of an arm of `dof` axes; of those in `twist`, speeds of a base, nothing is integrated."""

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
