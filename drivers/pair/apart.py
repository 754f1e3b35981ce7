"""How near two robots' tools may come: setpoints that bring them nearer are held, and tools too near stop both. Pure.

May not: know elbows, links, grippers or what is held: only the two tool centre points. This is no model of collisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from labctl.config.cell_schema import SecondRobot

Pose = Callable[[np.ndarray], np.ndarray]


class Apart:
    """poses: of each robot the tool's pose (7,) for its axes. keep_m: no setpoint brings the tools nearer than this;
    never_m: tools that are measured nearer stop both robots.
    """

    def __init__(self, second: SecondRobot, keep_m: float, never_m: float, poses: Sequence[Pose]) -> None:
        self._second, self._poses = second, poses
        self.keep_m, self.never_m = keep_m, never_m
        self._held: np.ndarray | None = None
        self.clipped = ""

    def between(self, first: np.ndarray, second: np.ndarray) -> float:
        """How far apart two tool centre points (3,) are, m, each given in its own robot's base frame."""
        return float(np.linalg.norm(self._second.in_first(np.asarray(second)) - np.asarray(first)))

    def kept(self, q: np.ndarray, dof: int, here: np.ndarray) -> np.ndarray:
        """Setpoints (n, dof of both) of which those that would bring the tools too near, and nearer than they are, are
        the last before them that would not. here: what was sent last; dof: the first robot's.
        """
        rows, self.clipped = np.array(q, float), ""
        last = here if self._held is None else self._held
        known = self._of(last, dof)
        for i, row in enumerate(rows):
            ahead = self._of(row, dof)
            if ahead < self.keep_m and ahead < known:
                rows[i] = last
                self.clipped = f"the tools' distance of {self.keep_m:g} m"
            else:
                last, known = row.copy(), ahead
        self._held = last if self.clipped else None
        return rows

    def forget(self) -> None:
        """What was held counts no more: the robots stand, or are elsewhere."""
        self._held, self.clipped = None, ""

    def _of(self, q: np.ndarray, dof: int) -> float:
        return self.between(self._poses[0](q[:dof])[:3], self._poses[1](q[dof:])[:3])
