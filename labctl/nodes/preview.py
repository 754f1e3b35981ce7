"""Small pictures for whoever looks on, published and forgotten: they may be late or lost and disturb nothing.

May not: be recorded, or be measured by anyone; the video is what was seen.
"""

from __future__ import annotations

import numpy as np

from labctl.bus import Message
from labctl.clock import MILLISECOND
from labctl.devices import Frame
from labctl.messages import pictures

WIDTH = 320
LIVE_NS = 100 * MILLISECOND
UNSEEN_NS = 500 * MILLISECOND  # in simulated time, where nobody looks


class Preview:
    """Thins out a camera's frames: at most one for each `every_ns`, made smaller by leaving out pixels."""

    def __init__(self, camera: str, *, real_time: bool) -> None:
        self.every_ns = LIVE_NS if real_time else UNSEEN_NS
        self._camera = camera
        self._last_ns: int | None = None

    def of(self, frame: Frame, now_ns: int) -> list[Message]:
        """The picture to publish, when one is due."""
        if self._last_ns is not None and now_ns - self._last_ns < self.every_ns:
            return []
        on_time = self._last_ns is not None and now_ns - self._last_ns < 2 * self.every_ns
        self._last_ns = self._last_ns + self.every_ns if on_time and self._last_ns is not None else now_ns
        stride = max(1, frame.image.shape[1] // WIDTH)
        small = np.empty((-(-frame.image.shape[0] // stride), -(-frame.image.shape[1] // stride), 3), np.uint8)
        for colour in range(3):  # eight times as fast as all at once
            small[..., colour] = frame.image[::stride, ::stride, colour]
        return [pictures.Preview(self._camera, frame.host_ns, frame.number).to("@preview", {"image": small})]
