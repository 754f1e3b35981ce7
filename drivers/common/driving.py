"""A base that drives: its speeds within their limits, where they lead, and how far it is from its place.

May not: choose a way, know an obstacle, hold a speed that nobody asks for, or read a clock: one setpoint is one control
period.

Speeds are vx, vy (m/s) and wz (rad/s) along the base's own axes, as many of them as it has; a place is x, y (m) and yaw
(rad) in the frame of the place where the base was staged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from labctl import rotations
from labctl.axes import Axis

MARGIN = 1.0 - 1e-9  # differences of rounded speeds must not exceed a limit in the last bit


class SpeedLimiter:
    """The limits applied over time. State: the base's speeds now, `speed` (k,). A setpoint that is no number asks for
    none.
    """

    def __init__(self, axes: Sequence[Axis], period_s: float) -> None:
        self._most = np.array([axis.velocity for axis in axes])
        self._kick = np.array([axis.acceleration for axis in axes]) * period_s * MARGIN
        self._names = [axis.name for axis in axes]
        self.reset()

    def reset(self) -> None:
        """Stand."""
        self.speed = np.zeros(len(self._names))
        self.clipped = ""  # the limit that shaped the last setpoints

    @property
    def still(self) -> bool:
        return not self.speed.any()

    def follow(self, wanted: np.ndarray) -> np.ndarray:
        """What of speeds (n, k), one control period apart, the limits leave, (n, k)."""
        asked = np.where(np.isfinite(wanted), wanted, 0.0)
        inside = np.clip(asked, -self._most, self._most)
        over = (inside != asked).any(axis=0)
        self.clipped = ", ".join(f"the speed of {name}" for name, out in zip(self._names, over, strict=True) if out)
        return self._led(inside)

    def brake(self, n: int) -> np.ndarray:
        """Come to rest within the acceleration limits, then stand: (n, k)."""
        return self._led(np.zeros((n, len(self._names))))

    def _led(self, wanted: np.ndarray) -> np.ndarray:
        rows = np.empty(wanted.shape)
        for i in range(len(wanted)):
            self.speed = self.speed + np.clip(wanted[i] - self.speed, -self._kick, self._kick)
            rows[i] = self.speed
        return rows


def driven(place: np.ndarray, speeds: np.ndarray, period_s: float) -> np.ndarray:
    """Places (n, 3) reached from place (3,) by speeds (n, 3), each for a period: dead reckoning by mid-period yaw."""
    turns = speeds[:, 2] * period_s
    yaw = place[2] + np.cumsum(turns)
    ahead = yaw - turns / 2
    c, s = np.cos(ahead), np.sin(ahead)
    x = place[0] + np.cumsum(c * speeds[:, 0] - s * speeds[:, 1]) * period_s
    y = place[1] + np.cumsum(s * speeds[:, 0] + c * speeds[:, 1]) * period_s
    return np.column_stack([x, y, yaw])


def onto_floor(poses: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Poses (n, 7) in the frame of a base at places (n, 3) or (3,), in the frame of where it was staged."""
    places = np.broadcast_to(places, (len(poses), 3))
    turn, at = _turns(places[:, 2]), np.column_stack([places[:, :2], np.zeros(len(places))])
    return np.column_stack([rotations.turned(turn, poses[:, :3]) + at, rotations.product(turn, poses[:, 3:])])


def from_floor(poses: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The inverse of `onto_floor` for one place (3,)."""
    turn = np.broadcast_to(_turns(-place[2:3]), (len(poses), 4))
    at = poses[:, :3] - np.append(place[:2], 0.0)
    return np.column_stack([rotations.turned(turn, at), rotations.product(turn, poses[:, 3:])])


def _turns(yaw: np.ndarray) -> np.ndarray:
    nothing = np.zeros(len(yaw))
    return np.column_stack([nothing, nothing, np.sin(yaw / 2), np.cos(yaw / 2)])


def off_place(place: np.ndarray, near_m: float, near_rad: float) -> str:
    """Where a base is to stand and how far off it is, for the person who puts it there; "" where it stands there."""
    away_m, turn = math.hypot(float(place[0]), float(place[1])), math.remainder(float(place[2]), math.tau)
    if away_m <= near_m and abs(turn) <= near_rad:
        return ""
    where = f"x {place[0]:+.2f} m, y {place[1]:+.2f} m, {math.degrees(turn):+.0f}°"
    near = f"{near_m:g} m and {math.degrees(near_rad):.0f}°"
    return f"put the base in its place (0, 0, 0°): by its odometry it is at {where}; within {near} will do"
