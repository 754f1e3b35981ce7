"""A video put onto a uniform grid: each frame the recorded picture nearest in time, coded again for random access.

May not: know an episode or a clock; which picture a frame takes is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from labctl.errors import BrokenRecord, StorageError
from labctl.exports.statistics import Histogram
from labctl.store.video import TIME_BASE, open_video

# A keyframe every other frame: datasets are read in random order, and decode at most two pictures for one.
KEYFRAME_FRAMES = 2
# Without the macroblock tree: it can make other bytes of the same pictures, and gains nothing over two pictures.
OPTIONS = {"preset": "veryfast", "crf": "20", "x264-params": "mbtree=0"}
# The table of contents first, for readers that fetch a file from its beginning; no date or library in the header.
CONTAINER = {"movflags": "faststart", "fflags": "+bitexact"}
CODEC, PIXELS = "h264", "yuv420p"
LOOKED_AT = 100  # pictures of an episode that statistics are made of
ACROSS = 160  # and how many pixels of a line at most


def picture_size(path: Path) -> tuple[int, int]:
    """(height, width) in pixels. Raises StorageError when it is no video."""
    with open_video(path) as container:
        stream = container.streams.video[0]
        return stream.height, stream.width


def retime(source: Path, places_us: Sequence[int], target: Path, fps: int) -> Histogram:
    """Write a video of len(places_us) frames at k / fps: frame k is the picture at places_us[k], which never go back.

    H.264, yuv420p, no B-frames, two frames a keyframe. Returns the levels of a sample of its pictures.
    Raises BrokenRecord when a picture is not in the file, StorageError when the disk refuses.
    """
    import av

    levels = Histogram()
    sampled = set(np.linspace(0, len(places_us) - 1, min(LOOKED_AT, len(places_us))).round().astype(int).tolist())
    with open_video(source) as container, av.open(str(target), "w", format="mp4", options=CONTAINER) as out:
        shape = container.streams.video[0]
        stream = out.add_stream("libx264", rate=fps, options=OPTIONS)
        stream.width, stream.height, stream.pix_fmt = shape.width, shape.height, PIXELS
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = KEYFRAME_FRAMES, 0
        stream.time_base = stream.codec_context.time_base = Fraction(1, fps)
        try:
            for number, picture in enumerate(_chosen(container, places_us, source)):
                if number in sampled:
                    step = max(1, picture.width // ACROSS)
                    levels.add(picture.to_ndarray(format="rgb24")[::step, ::step])
                frame = picture if picture.format.name == PIXELS else picture.reformat(format=PIXELS)
                frame.pts, frame.time_base, frame.pict_type = number, Fraction(1, fps), 0
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
        except OSError as error:
            raise StorageError(f"the video {target.name} cannot be written: {error.strerror}") from error
    return levels


def _chosen(container: Any, places_us: Sequence[int], source: Path) -> Iterator[Any]:
    """The decoded picture of each frame, a picture as often as it is asked for."""
    import av.error

    wanted = 0
    try:
        for picture in container.decode(video=0):
            place = round(picture.pts * picture.time_base / TIME_BASE)
            while wanted < len(places_us) and places_us[wanted] == place:
                wanted += 1
                yield picture
            if wanted == len(places_us):
                return
    except av.error.InvalidDataError as error:
        raise BrokenRecord(f"{source} cannot be decoded: {error}; see: labctl verify") from error
    raise BrokenRecord(f"{source} holds no picture at {places_us[wanted]} us, but its index does; see: labctl verify")
