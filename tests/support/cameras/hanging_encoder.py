"""A simulated camera in whose process the encoder of the first video that gets so far never comes back from its
seventieth frame: seven seconds at 10 Hz, which no episode has that ends before it began.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.devices import Camera, load
from labctl.store.video import VideoWriter

LAST = 70


def build(options: Mapping[str, Any], **given: Any) -> Camera:
    """Options: those of sim_camera."""
    write = VideoWriter.write
    first: list[VideoWriter] = []

    def hang(writer: VideoWriter, rgb: np.ndarray, pts_us: int) -> None:
        if writer.frames >= LAST:
            first[:] = first or [writer]
            if writer is first[0]:
                threading.Event().wait()
        write(writer, rgb, pts_us)

    VideoWriter.write = hang  # type: ignore[method-assign]
    return load("sim_camera", options, **given)
