"""Universal Robots' poses (x y z and a rotation vector) and labctl's (x y z qx qy qz qw).

May not: know a robot. Lengths in m, angles in rad, base frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from labctl import rotations


def from_ur(pose: Sequence[float] | np.ndarray) -> np.ndarray:
    """A pose (7,) from x y z rx ry rz."""
    x, y, z, rx, ry, rz = pose
    angle = math.sqrt(rx * rx + ry * ry + rz * rz)
    scale = 0.5 if angle < 1e-12 else math.sin(angle / 2) / angle
    return np.array([x, y, z, rx * scale, ry * scale, rz * scale, math.cos(angle / 2)])


def to_ur(pose: Sequence[float] | np.ndarray) -> list[float]:
    """x y z rx ry rz from a pose (7,), the rotation at most half a turn."""
    x, y, z, qx, qy, qz, qw = pose
    if qw < 0:
        qx, qy, qz, qw = -qx, -qy, -qz, -qw
    sine = math.sqrt(qx * qx + qy * qy + qz * qz)
    scale = 2.0 if sine < 1e-12 else 2 * math.atan2(sine, qw) / sine
    return [x, y, z, qx * scale, qy * scale, qz * scale]


def joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pose b given in frame a, both (7,), as seen from where a is given."""
    return np.concatenate([a[:3] + rotations.turned(a[3:], b[:3]), rotations.product(a[3:], b[3:])])


def undone(pose: np.ndarray) -> np.ndarray:
    """The inverse of a pose (7,)."""
    back = pose[3:] * rotations.INVERSE
    return np.concatenate([-rotations.turned(back, pose[:3]), back])
