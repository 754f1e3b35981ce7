"""A clock for the hands of a person who reads the screen before each key."""

from __future__ import annotations

from labctl.clock import MILLISECOND, ManualClock

READ_NS = 350 * MILLISECOND  # how long a person looks at a screen before a key


class Unhurried(ManualClock):
    """Whoever asks it for the time has read the screen since it was asked last."""

    def now_ns(self) -> int:
        self.sleep_until(super().now_ns() + READ_NS)
        return super().now_ns()
