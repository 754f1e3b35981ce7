"""The coded pictures of a video file as they are, one access unit each, parameter sets in band: what streams carry.

May not: decode or encode a picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.errors import StorageError
from labctl.store.video import open_video, place_us

if TYPE_CHECKING:
    from av.container import InputContainer

# A codec's name -> what stream formats call it, and the filter that puts start codes and parameter sets in.
CODECS = {"h264": ("h264", "h264_mp4toannexb"), "hevc": ("h265", "hevc_mp4toannexb")}


@dataclass(frozen=True, slots=True)
class AccessUnit:
    """One picture as coded: its place in the file (us), whether decoding may begin here, and its bytes."""

    pts_us: int
    keyframe: bool
    data: bytes


def stream_format(path: Path) -> str:
    """How stream formats call the file's codec: h264 or h265.

    Raises StorageError for any other codec, or a file that is no video.
    """
    with open_video(path) as container:
        return CODECS[_codec(container, path)][0]


def access_units(path: Path) -> Iterator[AccessUnit]:
    """The pictures of a file, in order; ends where a cut file does. Raises StorageError as `stream_format`."""
    import av.error
    from av.bitstream import BitStreamFilterContext

    with open_video(path) as container:
        stream = container.streams.video[0]
        to_annexb = BitStreamFilterContext(CODECS[_codec(container, path)][1], stream)
        try:
            for packet in container.demux(stream):
                for unit in to_annexb.filter(packet) if packet.size else ():
                    yield AccessUnit(place_us(unit.pts, stream.time_base), unit.is_keyframe, bytes(unit))
        except av.error.InvalidDataError:  # the fragment that was being written when its writer died
            return


def _codec(container: InputContainer, path: Path) -> str:
    name = container.streams.video[0].codec_context.codec.canonical_name
    if name not in CODECS:
        raise StorageError(f"{path} is coded as {name}; a stream of it can be made of {' and '.join(CODECS)} alone")
    return name
