"""Keeps axes that are not an arm's joints within their own limits: ends, speed, and acceleration where there is one.

May not: know what an axis moves, or time: one setpoint is one control period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.axes import Axis

MARGIN = 1.0 - 1e-9  # differences of rounded places must not exceed a limit in the last bit


class AxisLimiter:
    """The limits applied over time. State: where the axes are, `at` (k,), and their last step, `move` (k,)."""

    def __init__(self, axes: Sequence[Axis], period_s: float) -> None:
        self._low, self._high = (np.array([getattr(axis, end) for axis in axes]) for end in ("lower", "upper"))
        self._step = np.array([axis.velocity for axis in axes]) * period_s
        self._kick = np.array([axis.acceleration for axis in axes]) * period_s * period_s * MARGIN
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
        clipped: dict[str, None] = {}
        for i in range(len(wanted)):
            inside = np.clip(np.where(np.isfinite(wanted[i]), wanted[i], self.at), self._low, self._high)
            ahead = inside - self.at
            move = np.clip(ahead, -self._fastest(ahead), self._fastest(ahead))
            self._go(np.clip(move, self.move - self._kick, self.move + self._kick))
            rows[i] = self.at
            for name, out, fast in zip(self._names, inside != wanted[i], np.abs(ahead) > self._step, strict=True):
                clipped |= {f"the end of {name}": None} if out else {f"the speed of {name}": None} if fast else {}
        self.clipped = ", ".join(clipped)
        return rows

    def _fastest(self, ahead: np.ndarray) -> np.ndarray:
        """The largest step from which an axis can still come to rest where it is to go, `ahead` (k,) from here, and not
        beyond: braking by one `kick` a period, it gets there in n steps of n, of which the first is ahead / n + kick
        (n - 1) / 2.
        """
        bounded = np.isfinite(self._kick)
        kick, way = np.where(bounded, self._kick, 1.0), np.abs(ahead)
        n = np.maximum(np.ceil(np.sqrt(2 * way / kick + 0.25) - 0.5), 1.0)
        return np.where(bounded, np.minimum(self._step, way / n + kick * (n - 1) / 2), self._step) * MARGIN

    def brake(self, n: int) -> np.ndarray:
        """Come to rest within the acceleration limits, then stand: (n, k)."""
        rows = np.empty((n, len(self.at)))
        for i in range(n):
            self._go(np.sign(self.move) * np.maximum(np.abs(self.move) - self._kick, 0.0))
            rows[i] = self.at
        return rows

    def _go(self, move: np.ndarray) -> None:
        at = np.clip(self.at + move, self._low, self._high)
        self.move, self.at = at - self.at, at
