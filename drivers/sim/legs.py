"""A path of a simulated controller under construction, leg by leg: tool poses and openings at equal times.

May not: choose where to go.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

HOVER_M = 0.10  # above the item before and after the grasp
CLEAR_M = 0.22  # height of a carry, above the totes
TURN_RAD_S = 1.5
PEAK = 1.875  # peak over mean speed of a minimum-jerk move
CLOSE_S = 0.8
OPENING_S = 0.5

Point = tuple[float, float, float, float]  # x y z yaw


class Legs:
    """A path under construction: rows x y z yaw opening, `dt_s` apart."""

    def __init__(
        self, speed_m_s: float, dt_s: float, hesitation: Callable[[], float], here: Point, opening: float
    ) -> None:
        """speed_m_s: the tool's at its peak; hesitation: seconds of doubt before a leg, asked anew for each."""
        self._speed_m_s, self._dt_s, self._hesitation = speed_m_s, dt_s, hesitation
        self._here, self._opening = np.array(here), opening
        self._rows: list[np.ndarray] = []

    def wait(self, seconds: float) -> None:
        n = round(seconds / self._dt_s)
        if n:
            self._rows.append(np.repeat(np.array([[*self._here, self._opening]]), n, axis=0))

    def grip(self, opening: float, seconds: float) -> None:
        self._opening = opening
        self.wait(seconds)

    def go(self, there: Point, speed_m_s: float | None = None) -> None:
        self.wait(self._hesitation())
        goal = np.array(there)
        delta = goal - self._here
        far = math.sqrt(float((delta[:3] ** 2).sum()))
        seconds = PEAK * max(far / (speed_m_s or self._speed_m_s), abs(float(delta[3])) / TURN_RAD_S)
        n = math.ceil(seconds / self._dt_s - 1e-9)
        if n == 0:
            return
        s = np.arange(1, n + 1) / n
        rows = np.empty((n, 5))
        rows[:, :4] = self._here + (s**3 * (10 - 15 * s + 6 * s * s))[:, None] * delta
        rows[:, 4] = self._opening
        self._rows.append(rows)
        self._here = goal

    def rows(self) -> np.ndarray:
        return np.concatenate(self._rows)
