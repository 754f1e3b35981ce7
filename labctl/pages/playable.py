"""A sealed video as a browser plays it: its coded pictures copied into a plain mp4, or coded again where a browser does
not play the codec; and single pictures of it.

May not: read a file, load its library before a video is asked for, or change a picture that need not be.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from labctl.errors import StorageError

if TYPE_CHECKING:
    from av import VideoStream
    from av.container import InputContainer, OutputContainer

PLAYED = ("h264", "av1", "vp9", "vp8")  # what Chromium, Firefox and Safari of today play in an mp4
TIME_BASE = Fraction(1, 1_000_000)
# Coded again: quick rather than small, a key picture a second for scrubbing, and no picture that waits for a later one.
AGAIN = {"preset": "ultrafast", "crf": "23", "bf": "0", "g": "30"}
ENDED = (
    b"\x00\x00\x00\x10mfro\x00\x00\x00\x00"  # the box that ends a fragmented mp4 with an index (ISO 14496-12, 8.8.11)
)
_REPEATABLE = {"fflags": "+bitexact"}


def playable(data: bytes) -> bytes:
    """An mp4 with an index, so that a browser knows its length and seeks in it; each picture keeps its time. The
    recorder's own file is in fragments, of which a browser learns the length only at its end, and one that was cut
    off has no index at all.

    data: a video as recorded. Raises StorageError when it is none.
    """
    import av.error

    out = io.BytesIO()
    try:
        with av.open(io.BytesIO(data), "r") as source, av.open(out, "w", format="mp4", options=_REPEATABLE) as target:
            if not source.streams.video:
                raise StorageError("this file holds no video")
            stream = source.streams.video[0]
            if stream.codec_context.codec.canonical_name in PLAYED:
                _copy(source, stream, target)
            else:
                _code_again(source, stream, target)
    except (OSError, av.error.FFmpegError) as error:
        raise StorageError(f"this video cannot be made into one that a browser plays: {error}") from error
    return out.getvalue()


def played(data: bytes) -> bytes:
    """As `playable`, but a file that a browser plays from its disk as it is stays as it is: it was ended in order, so
    that its fragments have an index at their end. Raises StorageError.
    """
    import av.error

    try:
        with av.open(io.BytesIO(data), "r") as source:
            known = bool(source.streams.video) and source.streams.video[0].codec_context.codec.canonical_name in PLAYED
    except (OSError, av.error.FFmpegError) as error:
        raise StorageError(f"this video cannot be made into one that a browser plays: {error}") from error
    return data if known and data[-16:-4] == ENDED else playable(data)


def _copy(source: InputContainer, stream: VideoStream, target: OutputContainer) -> None:
    import av.error

    copied = target.add_stream_from_template(stream)
    try:
        for packet in source.demux(stream):
            if packet.dts is not None and not packet.is_corrupt:
                packet.stream = copied
                target.mux(packet)
    except av.error.InvalidDataError:
        return  # the fragment that was being written when its writer died


def _code_again(source: InputContainer, stream: VideoStream, target: OutputContainer) -> None:
    import av.error

    coded = target.add_stream("libx264", rate=stream.average_rate or 30, options=AGAIN)
    coded.width, coded.height, coded.pix_fmt = stream.width // 2 * 2, stream.height // 2 * 2, "yuv420p"
    coded.time_base = coded.codec_context.time_base = TIME_BASE
    try:
        for picture in source.decode(stream):
            if picture.pts is not None and picture.time_base is not None:
                same = picture.reformat(width=coded.width, height=coded.height, format="yuv420p")
                same.pts, same.time_base = round(picture.pts * picture.time_base / TIME_BASE), TIME_BASE
                target.mux(coded.encode(same))
    except av.error.InvalidDataError:
        pass
    target.mux(coded.encode(None))


def pictures(data: bytes, at_us: Sequence[int], width: int) -> list[np.ndarray]:
    """The picture that is shown at each of these times (ascending, us from the first), (height, width, 3) uint8 RGB,
    made `width` pixels wide. data: as `playable` gives it; only what is asked for is decoded.

    Raises StorageError.
    """
    import av.error

    found: list[np.ndarray] = []
    try:
        with av.open(io.BytesIO(data), "r") as source:
            stream = source.streams.video[0]
            base = stream.time_base or TIME_BASE
            times = sorted(p.pts for p in source.demux(stream) if p.pts is not None and p.size)
            for wanted in at_us:
                number = max(0, bisect_right(times, round(wanted * TIME_BASE / base)) - 1)
                source.seek(times[number], stream=stream)
                for picture in source.decode(stream):
                    if picture.pts is not None and picture.pts >= times[number]:
                        high = max(2, round(picture.height * width / picture.width))
                        found.append(picture.reformat(width=width, height=high, format="rgb24").to_ndarray())
                        break
    except (OSError, av.error.FFmpegError, IndexError) as error:
        raise StorageError(f"no picture can be taken from this video: {error}") from error
    return found
