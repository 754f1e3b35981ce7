"""Opens the hand before the robot goes where episodes begin: whoever stages a scene, and a policy, expect it open.

May not: move a robot, or open a hand that nobody ordered to be staged.
"""

from __future__ import annotations

from labctl.clock import SECOND
from labctl.devices import Gripper
from labctl.errors import DeviceRefused

OPEN_M = 0.005  # so near its stroke a hand is open: a driver's own resolution is finer
OPEN_NS = 5 * SECOND  # without a further millimetre: a Franka Hand at its lowest speed (10 mm/s) takes 8 s in all
STEP_M = 0.001


class HandOpening:
    """One gripper's. The servo thread begins it, after the last target that it asked for itself."""

    def __init__(self, gripper: Gripper) -> None:
        self._gripper = gripper
        self._until_ns, self._seen_m = 0, 0.0

    def begin(self, now_ns: int) -> None:
        """Ask the hand to open."""
        self._until_ns, self._seen_m = now_ns + OPEN_NS, self._gripper.opening()
        self._gripper.target(self._gripper.stroke_m)

    def done(self, now_ns: int) -> bool:
        """Is it open? Raises DeviceRefused for one that opens no further."""
        opening, stroke = self._gripper.opening(), self._gripper.stroke_m
        if stroke - opening < OPEN_M:
            return True
        if opening > self._seen_m + STEP_M:
            self._until_ns, self._seen_m = now_ns + OPEN_NS, opening
        if now_ns > self._until_ns:
            raise DeviceRefused(f"the hand does not open: it stands at {1000 * opening:.0f} of {1000 * stroke:.0f} mm")
        return False
