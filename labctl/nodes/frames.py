"""Full pictures for a controller that reads them: published while an episode is open, the newest alone, and forgotten.

May not: know which controller listens or whether one does, be recorded, or delay what is. Whether a campaign wants
them is the same for every trial of it (`frozen_cards.cameras_wanted`), so that it tells no arm.
"""

from __future__ import annotations

from labctl.bus import Message
from labctl.devices import Frame
from labctl.messages import pictures

TOPIC = "@frames"


class Frames:
    """Passes on a camera's frames while they are wanted."""

    def __init__(self, camera: str) -> None:
        self.wanted = False
        self._camera = camera

    def of(self, frame: Frame) -> list[Message]:
        """The picture to publish: `t_ns` is when the host received it."""
        if not self.wanted:
            return []
        return [pictures.Frame(self._camera, frame.host_ns).to(TOPIC, {"image": frame.image})]
