"""Keeps axes that are not an arm's joints within their own limits: ends, speed, and acceleration where there is one.

May not: know what an axis moves, or time: one setpoint is one control period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.axes import Axis


class AxisLimiter:
    """The limits applied over time. State: where the axes are, `at` (k,), and their last step, `move` (k,)."""

    def __init__(self, axes: Sequence[Axis], period_s: float) -> None:
        self._low, self._high = (np.array([getattr(axis, end) for axis in axes]) for end in ("lower", "upper"))
        self._step = np.array([axis.velocity for axis in axes]) * period_s
        self._kick = np.array([axis.acceleration for axis in axes]) * period_s * period_s
        self._names = [axis.name for axis in axes]
        self.clipped = ""  # the limit that shaped the last setpoints
        self.reset(np.clip(np.zeros(len(axes)), self._low, self._high))

    def reset(self, at: np.ndarray) -> None:
        """Stand at values (k,)."""
        self.at, self.move = np.array(at, float), np.zeros(len(self._names))
        self.clipped = ""

    @property
    def still(self) -> bool:
        return not self.move.any()

    def follow(self, wanted: np.ndarray) -> np.ndarray:
        """What of setpoints (n, k), one control period apart, the limits leave, (n, k)."""
        rows = np.empty(wanted.shape)
        clipped: set[str] = set()
        for i in range(len(wanted)):
            inside = np.clip(wanted[i], self._low, self._high)
            ahead = inside - self.at
            # slow enough to stand at the target: v² = 2 a s, in steps of one period
            most = np.minimum(
                self._step, np.sqrt(2.0 * self._kick * np.abs(ahead)) if np.isfinite(self._kick).any() else self._step
            )
            most = np.where(np.isfinite(self._kick), most, self._step)
            move = np.clip(ahead, -most, most)
            move = np.clip(move, self.move - self._kick, self.move + self._kick)
            self._go(move)
            rows[i] = self.at
            for name, out, fast in zip(
                self._names, inside != wanted[i], np.abs(ahead) > self._step * 1.0001, strict=True
            ):
                clipped |= {f"the end of {name}"} if out else {f"the speed of {name}"} if fast else set()
        self.clipped = ", ".join(sorted(clipped))
        return rows

    def brake(self, n: int) -> np.ndarray:
        """Come to rest within the acceleration limits, then stand: (n, k)."""
        rows = np.empty((n, len(self.at)))
        for i in range(n):
            kick = np.where(np.isfinite(self._kick), self._kick, np.inf)
            self._go(np.sign(self.move) * np.maximum(np.abs(self.move) - kick, 0.0))
            rows[i] = self.at
        return rows

    def _go(self, move: np.ndarray) -> None:
        at = np.clip(self.at + move, self._low, self._high)
        self.move, self.at = at - self.at, at
