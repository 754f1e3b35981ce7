"""What a controller has seen last: the robot's newest state, and of each camera the newest pictures at full size.

May not: decide when a controller is asked, hand out a picture as newer than it is, or keep more than a controller's
`Pace` asks for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.devices import Observation, Pace, Picture

MARGIN_NS = SECOND // 4  # a picture a little older than a history asks for may still be the nearest one


class ObservationBuffer:
    """See the module. latency_s: of each camera, from light to receipt (the cell's `latency_s`)."""

    def __init__(self, latency_s: Mapping[str, float]) -> None:
        self._latency_ns = {name: round(seconds * SECOND) for name, seconds in latency_s.items()}
        self._state: Message | None = None
        self._pictures: dict[str, deque[Picture]] = {}
        self.pace = Pace()

    def see(self, message: Message) -> None:
        """Take a message of kind "obs" or "frame"."""
        if message.kind == "obs":
            self._state = message
            return
        camera = message.body["camera"]
        picture = Picture(message.arrays["image"], int(message.body["t_ns"]) - self._latency_ns.get(camera, 0))
        kept = self._pictures.setdefault(camera, deque())
        kept.append(picture)
        first_ns = picture.t_ns - (round(self.pace.history_s * SECOND) + MARGIN_NS if self.pace.history_s else 0)
        while len(kept) > 1 and kept[0].t_ns < first_ns:
            kept.popleft()

    def forget(self) -> None:
        """Drop all pictures but the newest of each camera: an episode's history begins with what is there at its go."""
        for kept in self._pictures.values():
            while len(kept) > 1:
                kept.popleft()

    @property
    def t_ns(self) -> int | None:
        """When the newest state of the robot was captured; None before there was one."""
        return None if self._state is None else int(self._state.body["t_ns"])

    def image_ns(self) -> int:
        """When the oldest of the newest pictures that the controller asks for was taken; -1 when it asks for none."""
        taken = [self._pictures[camera][-1].t_ns for camera in self.pace.cameras if self._pictures.get(camera)]
        return min(taken, default=-1)

    def ready(self, now_ns: int) -> bool:
        """A state is there, and of every camera that the controller asks for a picture that is not too old."""
        if self._state is None or any(not self._pictures.get(camera) for camera in self.pace.cameras):
            return False
        return not self.pace.cameras or now_ns - self.image_ns() <= self.pace.max_age_s * SECOND

    def observation(self, instruction: str) -> Observation:
        """What the controller is handed. Needs `ready`."""
        assert self._state is not None and self.t_ns is not None
        images = {camera: tuple(self._pictures[camera]) for camera in self.pace.cameras}
        return Observation(self.t_ns, self._state.arrays, instruction, images)

    def measured(self) -> Mapping[str, np.ndarray]:
        """The arrays of the newest state: q (dof,), tcp (7,), …"""
        assert self._state is not None
        return self._state.arrays
