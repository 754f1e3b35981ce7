"""How long setpoints may be left out because the robot has not come to rest where they are to begin.

May not: know a robot or its client, or stop anything.
"""

from __future__ import annotations

from labctl.clock import MILLISECOND

UNREST_NS = 2_000 * MILLISECOND  # a servo may lag by so much; a robot that still turns then is stopped
PAUSE_NS = 500 * MILLISECOND  # setpoints that come later than this after those before begin anew


class Unrest:
    """Setpoints come at each visit of the loop while something is to move; time without any is not counted."""

    def __init__(self) -> None:
        self._since_ns = self._last_ns = 0

    def over(self) -> None:
        """Setpoints were taken."""
        self._since_ns = 0

    def left_out(self, now_ns: int) -> bool:
        """Setpoints were left out: has that gone on for too long?"""
        if not self._since_ns or now_ns - self._last_ns > PAUSE_NS:
            self._since_ns = now_ns
        self._last_ns = now_ns
        return now_ns - self._since_ns > UNREST_NS
