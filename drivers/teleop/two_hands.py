"""A person who drives two robots, each by a device of its own: two leaders, or two sticks.

May not: start the clock before both clutches are held, or let one hand's device move the other hand's robot.
"""

from __future__ import annotations

import numpy as np

from labctl.config.cell_schema import Cell
from labctl.devices import ActionChunk, Observation
from labctl.drivers.common.sides import TwoControllers
from labctl.drivers.teleop.controller import Teleop
from labctl.errors import DeviceLost, InputError
from labctl.plain import Hand

LOOK_S = 0.02


class TwoHands(TwoControllers):
    """See the module and `labctl.devices.ByHand`."""

    def __init__(self, cell: Cell, hands: tuple[Teleop, Teleop]) -> None:
        """Raises InputError for two devices that lead in different ways, and for a rail that one of them drives."""
        super().__init__(cell, hands)
        self._hands = hands
        if hands[0].leader != hands[1].leader:
            kinds = ["a leader" if hand.leader else "a stick" for hand in hands]
            text = f"[teleop] is {kinds[0]} and [second_teleop] {kinds[1]}"
            raise InputError(f"{text}; one question has one answer for both robots: take two leaders or two sticks")
        if any(hand.slides for hand in hands):
            raise InputError("[[teleop.axis]] with `by`: a rail is led by its driver alone in a cell of two robots")

    def warm(self, observation: Observation) -> None:
        """Wait until both clutches are held, and leaders stand near; whoever waits in vain is not ready."""
        while not all(hand.ready(self._sides.observation(observation, i)) for i, hand in enumerate(self._hands)):
            if any(hand.closed(LOOK_S / 2) for hand in self._hands):
                raise DeviceLost("closed before both hands were ready")

    def infer(self, observation: Observation) -> ActionChunk:
        """What both hands ask for; done when either says so. Raises DeviceLost."""
        chunks = [hand.infer(self._sides.observation(observation, i)) for i, hand in enumerate(self._hands)]
        found = self._sides.together(chunks)
        found.done = any(chunk.done for chunk in chunks)
        return found

    def hold(self, hand: np.ndarray) -> None:
        """See `Teleop.hold`: of both hands (h,)."""
        for i, one in enumerate(self._hands):
            one.hold(self._sides.arrays({"gripper": hand}, i)["gripper"])

    def wants(self, observation: Observation) -> bool:
        """Whether either hand takes its robot, or keeps it; the other's robot then holds. Raises DeviceLost."""
        return any([hand.wants(self._sides.observation(observation, i)) for i, hand in enumerate(self._hands)])

    def hand(self, q: np.ndarray) -> Hand:
        """What the person has to see of both devices."""
        seen = [hand.hand(self._sides.arrays({"q": q}, i)["q"]) for i, hand in enumerate(self._hands)]
        waits = [f"{name}: {one['waits']}" for name, one in zip(self._sides.names, seen, strict=True) if one["waits"]]
        gaps = [one["gap_rad"] for one in seen]
        return {
            "device": " + ".join(one["device"] for one in seen),
            "waits": "; ".join(waits),
            "engaged": all(one["engaged"] for one in seen),
            "fresh": all(one["fresh"] for one in seen),
            "ramp": min(one["ramp"] for one in seen),
            "gap_rad": [gap for each in gaps if each is not None for gap in each] or None,
            "limit_rad": min(one["limit_rad"] for one in seen),
        }
