"""How fast a robot behind ROS 2 goes, of what comes on the topic that says so: a share of its full speed.

May not: hear anything itself, or decide what is done about a robot that is slow.
"""

from __future__ import annotations

import math

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.common.state_timeout import Silence
from labctl.drivers.ros2.messages import Float64
from labctl.drivers.ros2.network import publisher_of
from labctl.drivers.ros2.publishers import OnePublisher, several_in_words

FULL, SLOW_NS = 0.995, SECOND // 5  # less is slowed; for so long, and not by one corner of its way
MOST = 1.05  # more is another unit
SILENT_NS = 2 * SECOND


class SpeedScaling:
    """See the module. topic: named in words; full: what is said there at full speed.

    `share` is the last value, of 1; not a number before the first.
    """

    def __init__(self, topic: str, full: float) -> None:
        self._topic, self._full = topic, full
        self._clock, self._silence, self._publisher = MonotonicClock(), Silence(), OnePublisher()
        self.share, self._slow_ns, self._heard_ns = math.nan, 0, 0  # a share; since when it is less than full

    def read(self, message: Float64) -> None:
        """One message. What is no number says nothing."""
        now, share = self._clock.now_ns(), float(message.data) / self._full
        if math.isfinite(share) and self._publisher.takes(publisher_of(message), now):
            self._heard_ns, self.share = now, share
            self._slow_ns = (self._slow_ns or now) if share < FULL else 0

    def heard(self) -> bool:
        """Has a value come?"""
        return math.isfinite(self.share)

    def misread(self) -> str:
        """Why its values do not say how fast the robot goes, in words; "" while they do."""
        if self._publisher.several(self._clock.now_ns()):
            return several_in_words("how fast the robot goes", self._topic)
        if self.share > MOST:
            said, full = self.share * self._full, self._full
            return f"{self._topic} says {said:g}, more than `scaling_full` = {full:g}: name what it says at full speed"
        return ""

    def wrong(self) -> str:
        """Why the robot goes slower than it is led, or nobody knows whether it does, in words; "" when neither is."""
        since_ns, share = self._slow_ns, self.share  # in this order: another thread writes them, the first last
        age_ns = self._silence.age_ns(self._heard_ns, self._clock.now_ns())
        if self.heard() and age_ns > SILENT_NS:
            return (
                f"nothing on {self._topic} for {age_ns / 1e9:.1f} s, and the robot's speed slider is not seen: is its "
                "broadcaster active?"
            )
        if misread := self.misread():
            return misread
        if not since_ns or share >= FULL or self._clock.now_ns() - since_ns < SLOW_NS:
            return ""
        said = f"{self._topic} says that the robot goes at {100 * share:.0f} % of its speed"
        return f"{said}, and every time would be longer by it: set its speed slider to 100 %, then acknowledge"
