"""ros2_control's controllers as its documentation has them: a joint trajectory controller (positions alone: a straight
line from where the joints stand to each point in turn) and a position group controller; and what MoveIt Servo hands to
one of them.

May not: speak DDS, or know a scene.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Joints:
    """Joints that are led along a trajectory, or put at positions at once, as fast as they can.

    q (n,), fastest (n,) in rad/s (or m/s).
    """

    def __init__(self, q: np.ndarray, fastest: np.ndarray) -> None:
        self.q, self._fastest = q.copy(), fastest
        self.dq = np.zeros(len(q))
        self._points: list[tuple[float, np.ndarray]] = []  # seconds from when it came, positions
        self._from: tuple[float, np.ndarray] = (0.0, self.q)
        self._led: tuple[float, np.ndarray] = (-np.inf, self.dq)  # until when, rad/s

    def follow(self, now_s: float, points: Sequence[tuple[float, np.ndarray]]) -> None:
        """A new trajectory takes the place of the one before; an empty one is a stop where the joints are."""
        self._led = -np.inf, self.dq
        self._from = now_s, self.q.copy()
        self._points = [(now_s + after, at) for after, at in points] or [(now_s, self.q.copy())]

    def put(self, now_s: float, q: np.ndarray) -> None:
        """A position group controller hands over at once what came last."""
        self.follow(now_s, [(0.0, q)])

    def lead(self, now_s: float, dq: np.ndarray, for_s: float) -> None:
        """At dq (n,) for so long, or until something else is asked; then they stay where they are."""
        self.follow(now_s, [])
        self._led = now_s + for_s, dq

    def advance(self, now_s: float, period_s: float) -> None:
        """One period later."""
        until_s, led = self._led
        wanted = self.q + led * period_s if now_s < until_s else self._wanted(now_s)
        if now_s < until_s:
            self._from, self._points = (now_s, wanted), []
        step = np.clip(wanted - self.q, -self._fastest * period_s, self._fastest * period_s)
        self.q = self.q + step
        self.dq = step / period_s

    def stand(self) -> None:
        """One period later, of joints that something keeps where they are."""
        self.dq = np.zeros(len(self.q))

    def _wanted(self, now_s: float) -> np.ndarray:
        begin_s, begin = self._from
        for end_s, end in self._points:
            if begin_s <= now_s < end_s:
                return begin + (end - begin) * (now_s - begin_s) / (end_s - begin_s)
            begin_s, begin = end_s, end
        return begin
