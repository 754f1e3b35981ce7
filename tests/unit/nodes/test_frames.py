"""Full pictures are published only while an episode is open that wants them, and hold the times of the frame."""

from __future__ import annotations

import numpy as np

from labctl.clock import SECOND
from labctl.devices import Frame
from labctl.nodes.frames import Frames


def frame(number: int) -> Frame:
    return Frame(np.full((4, 6, 3), number, np.uint8), number * SECOND, 0.0, number)


def test_nothing_is_published_until_it_is_wanted():
    frames = Frames("wrist")
    assert frames.of(frame(1)) == []
    frames.wanted = True
    (message,) = frames.of(frame(2))
    assert (message.to, message.kind, message.body) == ("@frames", "frame", {"camera": "wrist", "t_ns": 2 * SECOND})
    assert message.arrays["image"].shape == (4, 6, 3) and message.arrays["image"][0, 0, 0] == 2
