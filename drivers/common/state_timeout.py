"""How long a robot has been silent, counted only while somebody listened.

May not: take a pause of this process or of its machine for silence of the robot.
"""

from __future__ import annotations

from labctl.clock import MILLISECOND

MOST_NS = 50 * MILLISECOND  # one look counts for no more: longer than that nobody looked


class Silence:
    """Ask often, at least every `MOST_NS`; any thread may."""

    def __init__(self) -> None:
        self._heard_ns = self._looked_ns = self._counted_ns = 0

    def age_ns(self, heard_ns: int, now_ns: int) -> int:
        """Time in ns since the robot was heard (at `heard_ns`), without what lay between two looks too far apart."""
        if heard_ns != self._heard_ns:
            self._heard_ns = self._looked_ns = heard_ns
            self._counted_ns = 0
        self._counted_ns += min(max(now_ns - self._looked_ns, 0), MOST_NS)
        self._looked_ns = max(now_ns, self._looked_ns)
        return self._counted_ns
