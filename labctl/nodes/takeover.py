"""A person's hand beside a policy: while the dead-man is held, the hand drives and the policy is not asked.

May not: let a hand in that its gate refuses, ask a policy, or keep an episode from going on when the device is gone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from labctl.clock import SECOND
from labctl.devices import ActionChunk, Observation, Pace
from labctl.errors import DeviceError
from labctl.plain import Hand


class HandDriver(Protocol):
    """A controller that knows whether its hand wants the robot now (`labctl.drivers.teleop.controller`)."""

    pace: Pace

    def load(self) -> None: ...
    def reset(self, seed: int) -> None: ...
    def hold(self, hand: np.ndarray) -> None: ...
    def wants(self, observation: Observation) -> bool: ...
    def infer(self, observation: Observation) -> ActionChunk: ...
    def hand(self, q: np.ndarray) -> Hand: ...
    def close(self) -> None: ...


class TakeOver:
    """One hand device of a policy episode. `driving`: the hand has the robot. `lost`: why the device is gone, "" while
    it is there; a device that is lost gives the robot back.

    The gripper stays as the policy last asked for it until the hand takes it over: whoever takes over from a robot that
    holds an item does not drop it, and neither does who lets go of the device.
    """

    def __init__(self, hand: HandDriver) -> None:
        self._hand = hand
        self.driving = False
        self.lost = ""
        self._next_ns = 0
        self._sent: np.ndarray | None = None

    def look(self, seen: Observation, now_ns: int, asked: np.ndarray | None) -> ActionChunk | None:
        """What the hand asks for, when it is time to ask it again, by its pace as in a trial of its own; None while it
        does not drive, or drives on as asked. At the release it is rest, once. `driving` says afterwards who has the
        robot.

        asked: what the policy asks of the hand's axes now, (h,), None when it has asked for nothing yet. Never blocks:
        the device is read in a thread of its own.
        """
        if self.lost:
            return None
        try:
            wants = self._hand.wants(seen)
            if not self.driving and not wants:
                return None
            if self.driving and wants and seen.t_ns < self._next_ns:
                return None
            if not self.driving:
                measured = np.ravel(seen.arrays["gripper"])
                self._hand.hold(next(one for one in (asked, self._sent, measured) if one is not None))
            chunk = self._hand.infer(seen)
            if not wants:
                self._hand.reset(0)  # the next grip is ramped anew, from where the robot is then
        except DeviceError as error:
            self.driving, self.lost = False, str(error)
            return None
        self.driving, self._sent = wants, np.atleast_1d(chunk.gripper[-1])
        self._next_ns = now_ns + round((chunk.dt_s * chunk.execute - self._hand.pace.ask_ahead_s) * SECOND)
        return chunk

    def hand(self, q: np.ndarray) -> Hand | None:
        """What a screen says of the device while it drives, as of a person's trial; None while it does not."""
        return self._hand.hand(q) if self.driving else None

    def close(self) -> None:
        """Close the device. Raises DeviceError."""
        self._hand.close()
