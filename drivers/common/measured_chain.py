"""Forward kinematics of one robot by the parameters that were measured on it, whatever its axes.

May not: solve for joints (`tool_model` does, from the published table's answer), or know where parameters come from.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Six = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MeasuredChain:
    """Standard Denavit-Hartenberg rows, one value a joint: theta and alpha in rad, a and d in m. Joint i contributes
    Rz(q_i + theta) Tz(d) Tx(a) Rx(alpha) (Universal Robots, "DH parameters for calculations of kinematics and
    dynamics"). Axes that are nearly parallel may have a d of hundreds of metres, which others take back.
    """

    theta: Six
    a: Six
    d: Six
    alpha: Six

    def pose(self, q: Sequence[float], tool: Sequence[float]) -> np.ndarray:
        """Pose (7,) of a tool that stands on the flange at `tool` (x y z qx qy qz qw), for one set of joints, without
        numpy: complex numbers as in `kinematics`. The quaternion follows the joints continuously.
        """
        rows = list(zip(q, self.theta, self.a, self.d, self.alpha, strict=True))
        x, y, z, bx, by, az, aw = tool
        for angle, theta, a, d, alpha in reversed(rows):
            ca, sa = math.cos(alpha), math.sin(alpha)
            u = complex(x + a, ca * y - sa * z) * cmath.exp(1j * (angle + theta))
            x, y, z = u.real, u.imag, sa * y + ca * z + d
        first, second = 1 + 0j, 0j
        for angle, theta, _, _, alpha in rows:
            spin, ca, sa = cmath.exp(0.5j * (angle + theta)), math.cos(0.5 * alpha), math.sin(0.5 * alpha)
            first, second = first * spin, second * spin.conjugate()
            first, second = ca * first - sa * second, sa * first + ca * second
        last, side = complex(aw, az), complex(bx, by)
        first, second = first * last - second * side.conjugate(), first * side + second * last.conjugate()
        return np.array([x, y, z, second.real, second.imag, first.imag, first.real])

    def flange(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the last row ends for joints q (n, dof): positions (n, 3) in m and rotations (n, 3, 3)."""
        at = np.zeros((len(q), 3))
        turn = np.broadcast_to(np.eye(3), (len(q), 3, 3))
        for i, (theta, a, d, alpha) in enumerate(zip(self.theta, self.a, self.d, self.alpha, strict=True)):
            c, s = np.cos(q[:, i] + theta), np.sin(q[:, i] + theta)
            ca, sa = float(np.cos(alpha)), float(np.sin(alpha))
            zero, one = np.zeros(len(q)), np.ones(len(q))
            rows = [[c, -s * ca, s * sa], [s, c * ca, -c * sa], [zero, sa * one, ca * one]]
            shift = np.stack([a * c, a * s, d * one], axis=1)
            at = at + np.einsum("nij,nj->ni", turn, shift)
            turn = turn @ np.moveaxis(np.array(rows), -1, 0)
        return at, turn
