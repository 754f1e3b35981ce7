"""A video put onto a uniform grid: each frame the recorded picture nearest in time, copied as it was coded where the
grid takes one after the other, else coded again for random access.

May not: know an episode or a clock; which picture a frame takes is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labctl.errors import BrokenRecord, StorageError
from labctl.exports import splice
from labctl.exports.statistics import Histogram
from labctl.store.video import open_video, place_us

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer, OutputContainer

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


def retime(
    source: Path, places_us: Sequence[int], target: Path, fps: int, video: splice.Coding | None = None
) -> Histogram:
    """Write a video of len(places_us) frames at k / fps: frame k is the picture at places_us[k], which never go back.

    H.264, yuv420p, no B-frames. video: how the recording was coded; its
    pictures are then copied where they can be. Without it all are coded again, two frames a keyframe. Returns the
    levels of a sample of its pictures. Raises BrokenRecord when a picture is not in the file, StorageError when the
    disk refuses.
    """
    import av

    try:
        if video is not None:
            levels = _copied(source, places_us, target, fps, video)
            if levels is not None:
                return levels
        with open_video(source) as container, av.open(str(target), "w", format="mp4", options=CONTAINER) as out:
            return _coded(container, places_us, source, out, fps)
    except OSError as error:
        raise StorageError(f"the video {target.name} cannot be written: {error.strerror}") from error


def _copied(source: Path, places_us: Sequence[int], target: Path, fps: int, video: splice.Coding) -> Histogram | None:
    """As `retime` with its pictures as they are coded; None, with nothing written, where too few can be."""
    import av

    with open_video(source) as container:
        packets = splice.packets_of(container)
    wanted = np.asarray(places_us, np.int64)
    if packets is None or not len(packets.places_us) or not len(wanted):
        return None
    chosen = np.searchsorted(packets.places_us, wanted).clip(0, len(packets.places_us) - 1)
    missing = packets.places_us[chosen] != wanted
    if missing.any():
        raise _no_picture(source, int(wanted[missing.argmax()]))
    found = splice.runs(packets, chosen)
    if not splice.worth_copying(found):
        return None
    with av.open(str(target), "w", format="mp4", options=CONTAINER) as out:
        whole = splice.copy(source, packets, chosen, found, out, video, fps)
    if not whole:
        target.unlink(missing_ok=True)
        return None
    return _levels(source, packets, chosen)


def _levels(source: Path, packets: splice.Packets, chosen: np.ndarray) -> Histogram:
    """Of keyframes alone where there are enough, since these are decoded without the pictures between."""
    taken = np.unique(chosen)
    keyframes = taken[packets.keyframe[taken]]
    looked = keyframes if len(keyframes) >= LOOKED_AT // 2 else taken
    looked = looked[np.linspace(0, len(looked) - 1, min(LOOKED_AT, len(looked))).round().astype(int)]
    wanted = set(packets.places_us[looked].tolist())
    levels, look = Histogram(), _Looking()
    with open_video(source) as container:
        if len(looked) and packets.keyframe[looked].all():
            container.streams.video[0].codec_context.skip_frame = "NONKEY"
        for picture in _pictures(container, source):
            if place_us(picture.pts, picture.time_base) in wanted:
                levels.add(look.at(picture))
    return levels


class _Looking:
    """Pictures made small, for their levels."""

    def __init__(self) -> None:
        from av.video.reformatter import VideoReformatter

        self._reformatter = VideoReformatter()  # one for all: making it takes longer than a picture

    def at(self, picture: VideoFrame) -> np.ndarray:
        """Every n-th pixel of every n-th line, (h, w, 3) uint8."""
        step = max(1, picture.width // ACROSS)
        return self._reformatter.reformat(picture, format="rgb24").to_ndarray()[::step, ::step]


def _coded(
    container: InputContainer, places_us: Sequence[int], source: Path, out: OutputContainer, fps: int
) -> Histogram:
    levels, look = Histogram(), _Looking()
    sampled = set(np.linspace(0, len(places_us) - 1, min(LOOKED_AT, len(places_us))).round().astype(int).tolist())
    shape = container.streams.video[0]
    stream = out.add_stream("libx264", rate=fps, options=OPTIONS)
    stream.width, stream.height, stream.pix_fmt = shape.width, shape.height, PIXELS
    context = stream.codec_context
    context.gop_size, context.max_b_frames = KEYFRAME_FRAMES, 0
    context.thread_count = 1  # every core has a video of its own
    stream.time_base = context.time_base = Fraction(1, fps)
    for number, picture in enumerate(_chosen(container, places_us, source)):
        if number in sampled:
            levels.add(look.at(picture))
        frame = picture if picture.format.name == PIXELS else picture.reformat(format=PIXELS)
        frame.pts, frame.time_base, frame.pict_type = number, Fraction(1, fps), 0
        out.mux(stream.encode(frame))
    out.mux(stream.encode(None))
    return levels


def _chosen(container: InputContainer, places_us: Sequence[int], source: Path) -> Iterator[VideoFrame]:
    """The decoded picture of each frame, a picture as often as it is asked for."""
    wanted = 0
    for picture in _pictures(container, source):
        place = place_us(picture.pts, picture.time_base)
        while wanted < len(places_us) and places_us[wanted] == place:
            wanted += 1
            yield picture
        if wanted == len(places_us):
            return
    raise _no_picture(source, places_us[wanted])


def _pictures(container: InputContainer, source: Path) -> Iterator[VideoFrame]:
    import av.error

    try:
        yield from container.decode(video=0)
    except av.error.InvalidDataError as error:
        raise BrokenRecord(f"{source} cannot be decoded: {error}; see: labctl verify") from error


def _no_picture(source: Path, place_us: int) -> BrokenRecord:
    return BrokenRecord(f"{source} holds no picture at {place_us} us, but its index does; see: labctl verify")
