"""The lid of a simulated tote: slides along one line by its handle, and says when it is open and when closed again.

May not: know the gripper, joints or items.
"""

from __future__ import annotations

import math

import numpy as np

from labctl.config.cell_schema import Lid
from labctl.drivers.common.sweep import Sweep

OPEN, CLOSED = 0.9, 0.1  # shares of the way from which on it counts as open, or below which as closed again
REACH_M = 0.015  # fingers this near to the handle take it


class SlidingLid:
    """State: how far it is slid, as a share of the way, and by how much the tool that holds it is off the handle."""

    def __init__(self, lid: Lid) -> None:
        self._closed, self._way = np.array(lid.handle_m), np.array(lid.slides_m)
        self.grasp_width = float(lid.grasp_width_m)
        self.share = 0.0
        self.held = False
        self._offset = np.zeros(3)
        self._was_open = False

    @property
    def open(self) -> bool:
        """Is enough of the tote free to put something in?"""
        return self.share >= OPEN

    def take(self, at: tuple[float, float, float]) -> bool:
        """Fingers close at a point (m): do they have the handle?"""
        off = self._closed + self.share * self._way - at
        if math.sqrt(float(off @ off)) > REACH_M:
            return False
        self.held, self._offset = True, off
        return True

    def follow(self, sweep: Sweep) -> str | None:
        """The tool has gone on with the handle: "opened" or "closed" where it has just become that."""
        along = (np.array(sweep.end[:3]) + self._offset - self._closed) @ self._way / (self._way @ self._way)
        self.share = min(max(float(along), 0.0), 1.0)
        if self.open and not self._was_open:
            self._was_open = True
            return "opened"
        if self.share <= CLOSED and self._was_open:
            self._was_open = False
            return "closed"
        return None

    def row(self) -> tuple[float, ...]:
        """As a cell's sensors would say it: the closed handle x y z, the way x y z (m), the share, and 1 where held."""
        return (*self._closed.tolist(), *self._way.tolist(), self.share, float(self.held))
