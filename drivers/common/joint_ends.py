"""How fast a joint may still turn near its end: a limit that falls with the way that is left.

May not: know a robot (`robot_tables` holds the numbers), or a client.

The formula is libfranka's (`src/joint_velocity_limits.cpp`, `getUpperJointVelocityLimits`): towards the upper end at u
a joint at q may turn at most at sqrt(2 d (u - q)) - o, with a deceleration d and an offset o of the robot's
description, less a tolerance of 1e-3 rad/s; towards the lower end likewise; never away from zero by more than the
joint's own limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-3  # rad/s: libfranka's kLimitEps, in kJointVelocityLimitsTolerance of rate_limiting.h


@dataclass(frozen=True, slots=True)
class JointEnds:
    """Ends of the joints lower, upper (dof,) rad, and their offset rad/s and deceleration rad/s2, (dof,) each."""

    lower: np.ndarray
    upper: np.ndarray
    offset: np.ndarray
    deceleration: np.ndarray

    def most(self, q: np.ndarray, ahead_s: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Speeds towards the lower and the upper end, at most 0 and at least 0, (..., dof) rad/s at q (..., dof) rad.

        ahead_s: such that the limit still holds once the joint has gone on at that speed for so long.
        """
        bend = self.offset + self.deceleration * ahead_s
        high = _speed(self.upper - q, self.offset, self.deceleration, bend)
        return -_speed(q - self.lower, self.offset, self.deceleration, bend), high

    def within(self, speed: np.ndarray, q: np.ndarray, ahead_s: float = 0.0) -> np.ndarray:
        """Speeds (..., dof) rad/s cut to what `most` allows at q."""
        low, high = self.most(q, ahead_s)
        return np.clip(speed, low, high)

    def reachable(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest angles (dof,) rad from which a joint may still turn outwards."""
        left = (self.offset + TOLERANCE) ** 2 / (2 * self.deceleration)
        return self.lower + left, self.upper - left

    def near(self, middle: np.ndarray, ahead_s: float) -> Near:
        """Whether an end may count at all, by numbers alone; middle (dof,): of the range that is used, rad."""
        left = np.minimum(self.upper - middle, middle - self.lower) - 1e-9  # more than what is lost in rounding
        rows = zip(left.tolist(), self.offset.tolist(), (0.5 / self.deceleration).tolist(), strict=True)
        return Near(tuple(rows), ahead_s)


@dataclass(frozen=True, slots=True)
class Near:
    """A quick look before `JointEnds.most`: most ticks are far from where an end slows anything down."""

    rows: Sequence[tuple[float, float, float]]  # of each joint: rad from the middle to its end, offset, 1 / (2 d)
    ahead_s: float

    def any(self, far: Sequence[float], speeds: Sequence[float]) -> bool:
        """Whether a joint at most `far` rad from its middle and `speeds` rad/s fast may be too fast for its end: never
        False for one that is, sometimes True for one that is not, as when it moves away from its end.
        """
        for at, most, (left, offset, share) in zip(far, speeds, self.rows, strict=True):
            speed = most + TOLERANCE
            if at + share * (speed + offset) ** 2 + speed * self.ahead_s > left:
                return True
        return False


def _speed(left: np.ndarray, offset: np.ndarray, deceleration: np.ndarray, bend: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.maximum(bend * bend - offset * offset + 2 * deceleration * left, 0.0))
    return np.maximum(root - bend - TOLERANCE, 0.0)
