"""Rotations as unit quaternions x y z w, one (4,) or many (n, 4): products, turned points, matrices, the way between.

May not: know a robot, or what a pose is of. `scipy.spatial.transform.Rotation` does the same for a table of many; one
quaternion at a time, as nodes and drivers have them in their loops, it takes longer to make than to turn.
"""

from __future__ import annotations

import numpy as np

INVERSE = np.array([-1.0, -1.0, -1.0, 1.0])  # times this a quaternion turns back
_SMALL = 1e-9  # rad: sin(x / 2) / x is 1/2 to the last bit
_LINE = 1e-6  # the sine of an angle below which an arc is a line


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quaternions of turn b and then turn a, about the axes of the base."""
    x, y, z, w = a.T
    p, q, r, s = b.T
    parts = (
        w * p + s * x + (y * r - z * q),
        w * q + s * y + (z * p - x * r),
        w * r + s * z + (x * q - y * p),
        w * s - (x * p + y * q + z * r),
    )
    return np.array(parts).T


def turned(quaternion: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Points (3,) or (n, 3) turned by quaternions."""
    x, y, z, w = quaternion.T
    p, q, r = point.T
    a, b, c = 2 * (y * r - z * q), 2 * (z * p - x * r), 2 * (x * q - y * p)
    parts = (p + w * a + (y * c - z * b), q + w * b + (z * a - x * c), r + w * c + (x * b - y * a))
    return np.array(parts).T


def unit(quaternion: np.ndarray) -> np.ndarray:
    """Of length one: a product of many drifts off it."""
    return quaternion / np.sqrt((quaternion * quaternion).sum(axis=-1, keepdims=True))


def of_vector(vector: np.ndarray) -> np.ndarray:
    """The quaternions of rotation vectors (3,) or (n, 3): axes times angles in rad."""
    angle = np.sqrt((vector * vector).sum(axis=-1, keepdims=True))
    scale = np.where(angle < _SMALL, 0.5, np.sin(angle / 2) / np.maximum(angle, _SMALL))
    return np.concatenate([vector * scale, np.cos(angle / 2)], axis=-1)


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    x, y, z, w = quaternion.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def between(before: np.ndarray, after: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Spherical interpolation of quaternions (n, 4), part (n, 1) in 0..1, along the shorter arc."""
    cosine = (before * after).sum(axis=1, keepdims=True)
    after = np.where(cosine < 0.0, -after, after)  # q and -q are the same rotation
    angle = np.arccos(np.clip(np.abs(cosine), -1.0, 1.0))
    sine = np.sin(angle)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(sine < _LINE, 1.0 - part, np.sin((1.0 - part) * angle) / sine)
        b = np.where(sine < _LINE, part, np.sin(part * angle) / sine)
    return unit(a * before + b * after)
