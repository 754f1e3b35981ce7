"""What a controller has seen last: the robot's newest state, and of each camera the newest pictures at full size.

May not: decide when a controller is asked, hand out a picture as newer than it is, or keep more than a controller's
`Pace` asks for.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.config.cell_schema import Cell
from labctl.devices import Observation, Pace, Picture

MARGIN_NS = SECOND // 4  # a picture a little older than a history asks for may still be the nearest one
TOLD_NS = SECOND  # what is waited for so long is said


class ObservationBuffer:
    """See the module. latency_s: of each camera, from light to receipt (the cell's `latency_s`). tell: hears, once each
    time, what `ready` has waited a second for; it may tell an arm.
    """

    def __init__(self, latency_s: Mapping[str, float], tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell
        self._lacking_ns: int | None = None  # since when something lacks
        self._told = False
        self._latency_ns = {name: round(seconds * SECOND) for name, seconds in latency_s.items()}
        self._live: Message | None = None  # the robot's newest state, which nothing delays
        self._state: Message | None = None
        self._waiting: list[Message] = []
        self.delay_ns = 0  # how much later a policy gets what comes, where its condition says so
        self._pictures: dict[str, deque[Picture]] = {}
        self.pace = Pace()

    @classmethod
    def of(cls, cell: Cell) -> ObservationBuffer:
        """One for a cell. In simulated time, where a controller has no log of its own, nothing is told."""
        tell = None if cell.cell.clock == "manual" else logging.getLogger("controller").warning
        return cls({camera.name: camera.latency_s for camera in cell.camera}, tell)

    def see(self, message: Message) -> None:
        """Take a message of kind "obs" or "frame"."""
        if message.kind == "obs":
            self._live = message
        if self.delay_ns:
            self._waiting.append(message)
        else:
            self._take(message)

    def let_in(self, now_ns: int) -> None:
        """What was delayed, and has come to the policy by now."""
        for message in self._waiting:
            if int(message.body["t_ns"]) + self.delay_ns <= now_ns:
                self._take(message)
        self._waiting = [one for one in self._waiting if int(one.body["t_ns"]) + self.delay_ns > now_ns]

    def undelayed(self, now_ns: int) -> int:
        """Nothing is delayed from now on; when the newest state was captured."""
        self.delay_ns = 0
        self.let_in(now_ns)
        return self.live_ns

    def _take(self, message: Message) -> None:
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
        """When the newest state that the controller may see was captured; None before there was one."""
        return None if self._state is None else int(self._state.body["t_ns"])

    @property
    def live_ns(self) -> int:
        """When the robot's newest state was captured. Needs one."""
        assert self._live is not None
        return int(self._live.body["t_ns"])

    def image_ns(self) -> int:
        """When the oldest of the newest pictures that the controller asks for was taken; -1 when it asks for none."""
        taken = [self._pictures[camera][-1].t_ns for camera in self.pace.cameras if self._pictures.get(camera)]
        return min(taken, default=-1)

    def ready(self, now_ns: int) -> bool:
        """A state is there, and of every camera that the controller asks for a picture that is not too old, but for the
        delay that its condition adds.
        """
        lacks = self._lacks(now_ns)
        if not lacks:
            self._lacking_ns, self._told = None, False
        elif self._lacking_ns is None:
            self._lacking_ns = now_ns
        elif self._tell is not None and not self._told and now_ns - self._lacking_ns >= TOLD_NS:
            self._tell(f"waits for {lacks}")
            self._told = True
        return not lacks

    def _lacks(self, now_ns: int) -> str:
        """What is not there yet, in words; "" where all is."""
        if self._state is None:
            return "a state of the robot: none has come"
        most_ns = self.pace.max_age_s * SECOND + self.delay_ns
        for camera in self.pace.cameras:
            kept = self._pictures.get(camera)
            if not kept or now_ns - kept[-1].t_ns > most_ns:
                newest = f"the newest is {(now_ns - kept[-1].t_ns) / SECOND:.3g} s old" if kept else "none has come"
                return f"a picture of camera {camera} no older than {most_ns / SECOND:g} s: {newest}"
        return ""

    def observation(self, instruction: str) -> Observation:
        """What the controller is handed. Needs `ready`."""
        assert self._state is not None and self.t_ns is not None
        images = {camera: tuple(self._pictures[camera]) for camera in self.pace.cameras}
        return Observation(self.t_ns, self._state.arrays, instruction, images)

    def measured(self) -> Mapping[str, np.ndarray]:
        """The arrays of the newest state, delayed or not: q (dof,), tcp (7,), … What moves the robot counts from it."""
        assert self._live is not None
        return self._live.arrays
