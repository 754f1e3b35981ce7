"""The axes of the simulated devices, and what a hand of any of them is to the simulated scene: an opening.

May not: move anything. The scene knows two fingers; a cup that draws holds as they do, and so do bent fingers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.axes import GRIPPER, Axis, composed
from labctl.drivers.common.robot_tables import FR3

OPEN_M = 0.08  # the scene's fingers, apart
CURLED_RAD = 1.4  # a finger that is shut

_LIMITS = np.column_stack([FR3.lower, FR3.upper, FR3.velocity, FR3.acceleration]).tolist()
FR3_JOINTS = tuple(
    Axis(name, "revolute", "rad", low, high, speed, hard)
    for name, (low, high, speed, hard) in zip(FR3.joint_names, _LIMITS, strict=True)
)
RAIL = (Axis("rail", "prismatic", "m", -0.4, 0.4, 0.6, 2.0),)
CUP = (Axis("vacuum", "vacuum", "1", 0.0, 1.0, 4.0, hand=True),)
FINGERS = tuple(
    Axis(f"hand.{name}", "revolute", "rad", 0.0, CURLED_RAD, 3.0, hand=True)
    for name in ("thumb", "index", "middle", "ring", "little")
)
BASE = (
    Axis("base.vx", "twist", "m/s", velocity=0.5, acceleration=1.0),
    Axis("base.vy", "twist", "m/s", velocity=0.5, acceleration=1.0),
    Axis("base.wz", "twist", "rad/s", velocity=1.0, acceleration=2.0),
)
GRIPPER_AXIS = (Axis(GRIPPER, "opening", "m", 0.0, OPEN_M, 0.2, hand=True),)
ON_A_RAIL = composed(RAIL, FR3_JOINTS, CUP)
WITH_A_HAND = composed(FR3_JOINTS, FINGERS)
ON_A_BASE = composed(FR3_JOINTS, BASE, GRIPPER_AXIS)


def to_openings(values: np.ndarray, hand: Sequence[Axis]) -> np.ndarray:
    """What a hand's axes (n, h) are to the scene, (n,) m: drawing, or all fingers bent, is shut."""
    upper = np.array([axis.upper for axis in hand])
    return OPEN_M * (1.0 - (values / upper).mean(axis=1))


def of_openings(openings: np.ndarray, hand: Sequence[Axis]) -> np.ndarray:
    """A hand's axes, (n,) of one or (n, h), for openings (n,) in m: the inverse of `to_openings`, all axes alike."""
    share = np.clip(1.0 - openings / OPEN_M, 0.0, 1.0)
    values = share[:, None] * np.array([axis.upper for axis in hand])
    return values[:, 0] if len(hand) == 1 else values
