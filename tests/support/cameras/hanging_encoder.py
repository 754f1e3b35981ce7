"""A simulated camera in whose process the first video's encoder never comes back from its tenth frame."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.devices import Camera, load
from labctl.store.video import VideoWriter

LAST = 10


def build(options: Mapping[str, Any], **given: Any) -> Camera:
    """Options: those of sim_camera."""
    write = VideoWriter.write
    first: list[VideoWriter] = []

    def hang(writer: VideoWriter, rgb: np.ndarray, pts_us: int) -> None:
        first[:] = first or [writer]
        if writer is first[0] and writer.frames >= LAST:
            threading.Event().wait()
        write(writer, rgb, pts_us)

    VideoWriter.write = hang  # type: ignore[method-assign]
    return load("sim_camera", options, **given)
