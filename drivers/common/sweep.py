"""The way of the tool through one tick: exact where asked, bounded where a bound is enough.

May not: decide anything. Most ticks end far from every wall and limit; a bound on the tool's travel then spares the
exact positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.kinematics import Chain


def levers(chain: Chain) -> np.ndarray:
    """How far from each joint's axis the tool can be at most, (dof,) m: the links beyond it, stretched out."""
    links = [math.hypot(a, d) for a, _, d in chain.rows[1:]]
    aside = math.hypot(*chain.tool_xy)
    tool = math.hypot(aside, chain.tool_z)
    return np.array([sum(links[i:]) + tool for i in range(len(links))] + [aside])


@dataclass(slots=True)
class Sweep:
    """One tick: setpoints q (n, dof), tool pose at the end (x y z qx qy qz qw), a bound on the tool's travel, m."""

    chain: Chain
    q: np.ndarray
    end: tuple[float, ...]
    travel: float
    _exact: np.ndarray | None = field(default=None, repr=False)

    @property
    def positions(self) -> np.ndarray:
        """Exact tool positions (3, n), m."""
        exact = self._exact
        if exact is None:
            exact = self._exact = kinematics.positions(self.chain, self.q)
        return exact

    def yaw(self, i: int) -> float:
        """Yaw of a downward tool at setpoint i, rad."""
        return yaw_of(kinematics.pose(self.chain, self.q[i].tolist()))


def yaw_of(pose: tuple[float, ...]) -> float:
    """Yaw of a downward pose: twice the angle of (qx, qy), rad."""
    return 2.0 * math.atan2(pose[4], pose[3])
