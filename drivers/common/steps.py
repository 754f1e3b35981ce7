"""Targets given as steps to a robot that a law leads there: inside position, speed and workspace limits, at once.

May not: smooth or delay a target, or know a driver or time. How fast a robot goes to a target is its law's; a step is
shortened until no joint, and not the tool, would go faster than it may. Accelerations are the law's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import AHEAD_S, Limits
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.common.sweep import Sweep

# For joints (dof,) rad the matrix (dof, dof) 1/s that leads from how far the target lies ahead, rad, to the speed of an
# arm which follows a target that keeps so far ahead, rad/s.
Law = Callable[[np.ndarray], np.ndarray]
LOOK = np.linspace(0.1, 1.0, 10)  # parts of a step at which its way is looked at


class StepLimiter:
    """Limits for steps, with the verbs of `limits.Limiter` that a streamed robot uses. q (dof,): the last target.

    `measured` tells where the robot is, None before anybody knows.
    """

    def __init__(
        self, robot_model: RobotModel, limits: Limits, law: Law, measured: Callable[[], np.ndarray | None]
    ) -> None:
        self._robot_model, self._limits, self._law, self._measured = robot_model, limits, law, measured
        self.q = robot_model.home
        self.clipped = ""

    def reset(self, q: np.ndarray) -> None:
        """The robot stands at q (dof,)."""
        self.q = np.array(q, dtype=float)

    def resume(self, q: np.ndarray, move: np.ndarray) -> None:
        """Go on from q (dof,); `move` is the robot's own matter."""
        self.reset(q)

    def brake_tail(self) -> np.ndarray:
        """No setpoints (0, dof): at its last target a robot comes to rest by itself."""
        return np.empty((0, self._robot_model.dof))

    def follow(self, wanted: np.ndarray) -> Sweep:
        """Targets within the limits that follow `wanted` (n, dof), each at once. A row that is not finite is read as
        the target before it.
        """
        seen = self._measured()
        at = self.q if seen is None else seen
        rate, jacobian = self._law(at), kinematics.jacobian(self._robot_model.chain, at[None, :])[0][0, :3]
        rows = []
        for row in wanted:
            self.q = self._step(at, row if np.isfinite(row).all() else self.q, rate, jacobian)
            rows.append(self.q)
        pose = kinematics.pose(self._robot_model.chain, self.q.tolist())
        return Sweep(
            self._robot_model.chain, np.array(rows).reshape(len(wanted), self._robot_model.dof), pose, math.inf
        )

    def _step(self, at: np.ndarray, row: np.ndarray, rate: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        limits = self._limits
        goal = np.clip(row, limits.lower, limits.upper)
        self.clipped = "" if (goal == row).all() else f"joint {int(np.argmax(np.abs(goal - row))) + 1} position"
        ahead = goal - at
        speed = rate @ ahead
        low, high = -limits.velocity, limits.velocity
        if limits.ends is not None:
            slow = limits.ends.most(at, AHEAD_S)
            low, high = np.maximum(low, slow[0]), np.minimum(high, slow[1])
        most = np.where(speed > 0, high, -low)
        shares = np.divide(most, np.abs(speed), out=np.ones_like(speed), where=np.abs(speed) > most)
        share = float(shares.min())
        if share < 1.0:
            self.clipped = f"joint {int(np.argmin(shares)) + 1} speed"
        tool = share * float(np.linalg.norm(jacobian @ speed))
        if tool > limits.tool_speed:
            share, self.clipped = share * limits.tool_speed / tool, "tool speed"
        return self._in_box(at, share * ahead)

    def _in_box(self, at: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """Where a step leads without leaving the box: its end, or as far as its way is inside; a robot that stands
        outside stays where it was sent, unless the step leads inside.
        """
        limits = self._limits
        way = kinematics.positions(self._robot_model.chain, at + np.append(0.0, LOOK)[:, None] * ahead)
        over = np.maximum(limits.box_min[:, None] - way, way - limits.box_max[:, None])
        outside = np.flatnonzero(over.max(axis=0) > 0)
        if not len(outside) or (outside[0] == 0 and outside[-1] < len(LOOK)):
            return at + ahead
        first = int(outside[0])
        self.clipped = f"workspace box {'xyz'[int(np.argmax(over[:, first]))]}"
        return self.q if first == 0 else at + (LOOK[first - 2] if first > 1 else 0.0) * ahead
