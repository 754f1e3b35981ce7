"""A recorded depth film as Rerun shows it: some of its frames, a part of their pixels.

May not: stand for the depth itself; all of it, bit for bit, is in the file beside the video.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import rerun as rr

from labctl.clock import SECOND
from labctl.store.video import depth_picture, read_depth
from labctl.ui.rerun.episode_view import Depth

HZ = 2.0  # a hundred seconds of 640 x 480 are some megabytes then
STRIDE = 2  # one pixel of so many, each way
CLOSE = 0.75  # of the time between two: frames jitter


def thinned(depth: Depth) -> tuple[list[int], list[bytes]]:
    """(host time in ns, PNG of every other pixel) of about two frames a second. Raises StorageError."""
    times_of = dict(zip((np.asarray(depth.ms) * 1000).tolist(), np.asarray(depth.times_ns).tolist(), strict=True))
    times: list[int] = []
    pictures: list[bytes] = []
    for at_us, image in read_depth(depth.path):
        t_ns = times_of.get(at_us)
        if t_ns is not None and (not times or t_ns - times[-1] >= CLOSE * SECOND / HZ):
            times.append(t_ns)
            pictures.append(depth_picture(image[::STRIDE, ::STRIDE]))
    return times, pictures


def look(scale_m: float | None) -> rr.EncodedDepthImage:
    """How depth is coloured, and how many of its steps make a metre, where the camera said."""
    meter = 1 / scale_m if scale_m else None
    colours = rr.components.Colormap.Turbo
    return rr.EncodedDepthImage.from_fields(media_type="image/png", meter=meter, colormap=colours)


def columns(pictures: list[bytes]) -> Any:
    """The pictures as one column."""
    return rr.EncodedDepthImage.columns(blob=[np.frombuffer(picture, np.uint8) for picture in pictures])
