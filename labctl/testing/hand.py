"""What every controller does that a person drives by a device: the gripper is the person's while the clutch is held.

May not: know a device. A test class names its own by a fixture `hand` that gives a `HandRig`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import Controller, Observation

__all__ = ["HandConformance", "HandRig"]

CLOCK = MonotonicClock()
PATIENCE_NS, PAUSE_NS = 60 * SECOND, 5 * MILLISECOND
HELD_NS = SECOND // 2  # longer than a spring takes a trigger back, and than a reading grows old


@dataclass
class HandRig:
    """A loaded controller and the hand on its device. says(engaged, closed): from now on the device says that its
    clutch is held or not, and that the gripper ought to be closed or open; it has been at rest before. q: the joints of
    the robot, which a leader stands at.
    """

    controller: Controller
    says: Callable[[bool, bool], None]
    q: np.ndarray
    opening_m: tuple[float, float]  # closed, open

    def asks(self) -> float:
        """The opening that the hand asks for now, m, of a gripper that is open."""
        arrays = {"q": self.q, "dq": np.zeros(len(self.q)), "gripper": np.array([self.opening_m[1]])}
        return float(self.controller.infer(Observation(CLOCK.now_ns(), arrays)).gripper[0])

    def until(self, opening_m: float) -> None:
        """Wait until the hand asks for this opening, m."""
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while abs((asked := self.asks()) - opening_m) > 1e-3:
            assert CLOCK.now_ns() < over_ns, f"the hand asks for {asked:.3f} m, not for {opening_m:.3f} m"
            CLOCK.sleep_until(CLOCK.now_ns() + PAUSE_NS)

    def stays(self, opening_m: float) -> None:
        """For a while the hand asks for this opening, m, and for no other."""
        over_ns = CLOCK.now_ns() + HELD_NS
        while CLOCK.now_ns() < over_ns:
            assert self.asks() == pytest.approx(opening_m, abs=1e-3)
            CLOCK.sleep_until(CLOCK.now_ns() + PAUSE_NS)


class HandConformance:
    """What every controller does that a person drives by a device."""

    @pytest.fixture
    def hand(self) -> Iterator[HandRig]:
        """A rig whose device is open and at rest, closed afterwards. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `hand` that yields a HandRig")

    def test_a_hand_that_holds_the_clutch_closes_and_opens(self, hand: HandRig) -> None:
        self.grasp(hand)
        hand.says(True, False)
        hand.until(hand.opening_m[1])

    def test_grip_on_release_what_was_grasped_stays_in_the_fingers(self, hand: HandRig) -> None:
        """Issue 20.15: letting go of a leader opened the gripper."""
        self.grasp(hand)
        hand.says(False, False)
        hand.stays(hand.opening_m[0])

    def test_who_takes_the_clutch_again_drops_nothing(self, hand: HandRig) -> None:
        self.grasp(hand)
        hand.says(False, True)
        hand.stays(hand.opening_m[0])
        hand.says(True, True)
        hand.stays(hand.opening_m[0])

    def grasp(self, hand: HandRig) -> None:
        """Take the clutch where the gripper stands, open, and close."""
        hand.says(True, False)
        hand.stays(hand.opening_m[1])
        hand.says(True, True)
        hand.until(hand.opening_m[0])
