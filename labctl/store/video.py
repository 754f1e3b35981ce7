"""Video files that stay playable when their writer is killed: H.264 in fragmented mp4, depth as lossless FFV1 in
Matroska; and the reading of both.

May not: know cameras, episodes or clocks; a frame's time is the caller's, in microseconds since the first frame.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from labctl.config.cell_schema import Video
from labctl.errors import InputError, StorageError
from labctl.realtime import kept

if TYPE_CHECKING:
    from av import VideoFrame
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.packet import Packet
    from av.subtitles.stream import SubtitleStream
    from av.video.codeccontext import VideoCodecContext
    from av.video.stream import VideoStream

TIME_BASE = Fraction(1, 1_000_000)
DEPTH_TIME_BASE = Fraction(1, 1000)  # Matroska's own: milliseconds
OPEN_S = 0.25  # how much of a video a killed writer may lose

# Without flush_packets a killed writer leaves nothing readable; with it, all but the open fragment.
_FRAGMENTED = {
    "movflags": "frag_keyframe+empty_moov+default_base_moof",
    "frag_duration": str(round(OPEN_S * 1e6)),
    "flush_packets": "1",
}
_CLUSTERED = {"cluster_time_limit": str(round(OPEN_S * 1e3)), "flush_packets": "1"}
# No date and no library version in the header: the same frames give the same bytes.
_REPEATABLE = {"fflags": "+bitexact"}
USUAL = Video()
# What makes a codec give each packet soon and its bytes repeat; others are given preset and crf alone. SVT-AV1 4.1.0 is
# not asked for packets at once (pred-struct=1): where four processes of an ordinary user wrote side by side, three of
# them stood still within 131 files, the encoder waiting for itself. As below none of four did in 600 files each; it
# holds up to 12 frames back.
AT_ONCE: Mapping[str, Mapping[str, str]] = {
    "libx264": {"tune": "zerolatency", "x264-params": "sliced-threads=0"},
    "libx265": {"tune": "zerolatency", "x265-params": "log-level=error:pools=1:frame-threads=1"},
    "libsvtav1": {"svtav1-params": "lp=1:hierarchical-levels=2:lookahead=0"},
}


# What is used here of PyAV's own classes, whose types leave open of which stream a packet is.
class _Encoder(Protocol):
    def encode(self, frame: VideoFrame | None, /) -> list[Packet[VideoStream]]: ...


class _Stream(_Encoder, Protocol):
    time_base: Fraction | None

    @property
    def codec_context(self) -> VideoCodecContext: ...


class _File(Protocol):
    def add_stream(
        self, codec: str, /, *, rate: Fraction, options: dict[str, str]
    ) -> VideoStream | AudioStream | SubtitleStream: ...
    def start_encoding(self) -> None: ...
    def mux(self, packet: Packet[VideoStream], /) -> None: ...
    def close(self) -> None: ...


class _Writer:
    """A container with one video stream, and what of it has surely reached the file.

    Single-threaded: simulated campaigns must repeat to the byte.
    """

    _stream: _Stream  # of each kind of writer its own

    def __init__(self, path: Path, container: str, options: Mapping[str, str]) -> None:
        import av

        self._path = path
        self._written: int | None = None  # time of the last packet handed over
        self._size = 0
        self.frames = 0
        self.settled: int | None = None  # every frame up to this time is in the file, whatever happens to this process
        self._container: _File | None = av.open(str(path), "w", format=container, options={**options, **_REPEATABLE})

    @property
    def _open(self) -> _File:
        assert self._container is not None, f"{self._path} is closed"
        return self._container

    def _begin(self, width: int, height: int, pixels: str, time_base: Fraction, refusal: str) -> None:
        context = self._stream.codec_context
        context.width, context.height, context.pix_fmt = width, height, pixels
        context.max_b_frames = 0
        context.thread_count = 1
        self._stream.time_base = context.time_base = time_base
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with kept(begun=True):
                self._open.start_encoding()
            self._size = self._path.stat().st_size
        except OSError as error:
            raise self._refused(error) from error
        except ValueError as error:
            raise InputError(refusal) from error

    def close(self) -> int:
        """Finish the file; how many frames it holds. Closing twice changes nothing. Raises StorageError."""
        if self._container is not None:
            container, self._container = self._container, None
            try:
                if self.frames:
                    self._mux(container, None)
                container.close()
            except OSError as error:
                raise self._refused(error) from error
            self.settled = self._written
        return self.frames

    def _add(self, picture: VideoFrame, time: int, time_base: Fraction) -> None:
        picture.pts, picture.time_base = time, time_base
        try:
            self._mux(self._open, picture)
        except OSError as error:
            raise self._refused(error) from error
        self.frames += 1

    def _mux(self, container: _File, picture: VideoFrame | None) -> None:
        for packet in self._stream.encode(picture):
            time = packet.pts
            container.mux(packet)
            size = self._path.stat().st_size
            if size > self._size:  # a fragment was flushed when this packet opened the next one
                self._size, self.settled = size, self._written
            self._written = time

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(f"the video {self._path} cannot be written: {error.strerror}")


class VideoWriter(_Writer):
    """One camera's colour video of one episode."""

    def __init__(
        self,
        path: Path,
        width: int,
        height: int,
        video: Video = USUAL,
        *,
        rate_hz: float = 10.0,
    ) -> None:
        """Open the file, making its folder. Width and height are even (4:2:0); rate_hz only sets the keyframe distance.

        Raises InputError for an unknown codec or preset or an odd size, StorageError when the file cannot be made.
        """
        import av.error
        from av.video.reformatter import VideoReformatter

        if width % 2 or height % 2:
            raise InputError(f"a video is {width} x {height} pixels; both must be even")
        super().__init__(path, "mp4", _FRAGMENTED)
        self._shape = (height, width, 3)
        self._last_us: int | None = None
        codec, options = video.codec, {"preset": video.preset, "crf": str(video.crf), **AT_ONCE.get(video.codec, {})}
        try:
            rate = Fraction(rate_hz).limit_denominator(1000)
            stream = self._open.add_stream(codec, rate=rate, options=options)
            if not isinstance(stream, av.VideoStream):
                raise ValueError(f"{codec} codes no pictures")
        except (ValueError, av.error.FFmpegError) as error:
            self._open.close()
            raise InputError(
                f"this build of ffmpeg has no video encoder {codec!r}; libx264 is the usual one"
            ) from error
        self._stream = stream
        stream.codec_context.gop_size = max(1, round(video.keyframe_s * rate_hz))
        self._reformatter = VideoReformatter()
        refusal = f"the video encoder {codec!r} refuses preset {video.preset!r} with crf {video.crf}"
        self._begin(width, height, "yuv420p", TIME_BASE, refusal)

    def write(self, rgb: np.ndarray, pts_us: int) -> None:
        """Add a frame: rgb (height, width, 3) uint8, pts_us later than the last one's.

        Raises ValueError for another shape or a time that does not advance, StorageError when the disk refuses.
        """
        import av

        if rgb.shape != self._shape or rgb.dtype != np.uint8:
            raise ValueError(f"a frame of {rgb.shape} {rgb.dtype} in a video of {self._shape} uint8")
        if self._last_us is not None and pts_us <= self._last_us:
            raise ValueError(f"a frame at {pts_us} us after one at {self._last_us} us")
        seen = av.VideoFrame.from_numpy_buffer(np.ascontiguousarray(rgb), format="rgb24")
        # AREA: the mean colour of each 2 x 2 pixels; the encoder's own way costs a third more in all
        picture = self._reformatter.reformat(seen, format="yuv420p", interpolation="AREA", threads=1)
        self._add(picture, pts_us, TIME_BASE)
        self._last_us = pts_us


class DepthWriter(_Writer):
    """One camera's depth of one episode, bit for bit: FFV1, 16 bits of grey."""

    def __init__(self, path: Path, width: int, height: int, *, rate_hz: float = 30.0) -> None:
        """Open the file, making its folder. Raises StorageError when it cannot be made."""
        import av

        super().__init__(path, "matroska", _CLUSTERED)
        self._shape = (height, width)
        self._last_ms = -1
        rate = Fraction(rate_hz).limit_denominator(1000)
        stream = self._open.add_stream("ffv1", rate=rate, options={"level": "3", "slicecrc": "1"})
        assert isinstance(stream, av.VideoStream), "ffv1 codes pictures"
        self._stream = stream
        self._begin(width, height, "gray16le", DEPTH_TIME_BASE, f"no depth video can be {width} x {height} pixels")

    def write(self, depth: np.ndarray, pts_us: int) -> int:
        """Add a frame, depth (height, width) uint16. Returns its time in the file, in ms: the nearest that is free.

        Raises ValueError for another shape, StorageError when the disk refuses.
        """
        import av

        if depth.shape != self._shape or depth.dtype != np.uint16:
            raise ValueError(f"depth of {depth.shape} {depth.dtype} in a video of {self._shape} uint16")
        self._last_ms = max(self._last_ms + 1, round(pts_us / 1000))
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(depth), format="gray16le")
        self._add(picture, self._last_ms, DEPTH_TIME_BASE)
        return self._last_ms


def read_frames(path: Path, only: Container[int] | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Each frame in order: (pts in microseconds, image (height, width, 3) uint8 RGB). Ends where a cut file does.
    only: the pts of those that are wanted.

    Raises StorageError when the file cannot be opened as a video.
    """
    return _decoded(path, "rgb24", only)


def read_depth(path: Path) -> Iterator[tuple[int, np.ndarray]]:
    """Each frame of a depth file in order: (time in microseconds, whole milliseconds; depth (height, width) uint16).

    Ends where a cut file does. Raises StorageError when the file cannot be opened as a video.
    """
    return _decoded(path, "gray16le")


def depth_picture(depth: np.ndarray) -> bytes:
    """Depth (height, width) uint16 as a PNG of 16 bits of grey, for viewers."""
    import av

    encoder = av.CodecContext.create("png", "w")
    encoder.height, encoder.width = depth.shape
    encoder.pix_fmt, encoder.time_base = "gray16be", DEPTH_TIME_BASE
    picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(depth), format="gray16le").reformat(format="gray16be")
    return _coded(encoder, picture)


def _coded(encoder: _Encoder, picture: VideoFrame) -> bytes:
    return b"".join(bytes(packet) for packet in (*encoder.encode(picture), *encoder.encode(None)))


def frame_times(path: Path) -> np.ndarray:
    """When each frame of a video stands in it, (n,) int64 us, by reading its packets. Raises StorageError."""
    import av.error

    places: list[int | None] = []
    with open_video(path) as container:
        stream = container.streams.video[0]
        base = stream.time_base  # asked once: each packet would make a fraction of it anew
        try:
            for packet in container.demux(stream):
                if packet.size:
                    places.append(packet.pts)
        except av.error.InvalidDataError:  # as in `_decoded`
            pass
        except (av.error.FFmpegError, ValueError) as error:
            raise _not_ours(path, error) from error
    if base != TIME_BASE or None in places:
        places = [place_us(place, base) for place in places]
    return np.array(places, dtype=np.int64)


def count_frames(path: Path) -> int:
    """How many frames a video really holds, by reading its packets. Raises StorageError when it is not a video."""
    return len(frame_times(path))


def mend(path: Path) -> int:
    """Cut off the header of a fragment that a killed writer, or a full disk, left half-written; how many bytes.

    Players refuse an mp4 that ends in one. Pictures are not touched: their header is always written before them.
    Raises StorageError.
    """
    try:
        with path.open("r+b") as file:
            size, at = path.stat().st_size, 0
            while at + 8 <= size:
                file.seek(at)
                length, kind = struct.unpack(">I4s", file.read(8))
                if kind == b"moof" and at + length > size:
                    file.truncate(at)
                    return size - at
                if length < 8:  # not a box of ours: this is no fragmented mp4
                    return 0
                at += length
            return 0
    except OSError as error:
        raise StorageError(f"the video {path} cannot be mended: {error.strerror}") from error


def _decoded(path: Path, pixels: str, only: Container[int] | None = None) -> Iterator[tuple[int, np.ndarray]]:
    import av.error

    with open_video(path) as container:
        try:
            for frame in container.decode(video=0):
                pts_us = place_us(frame.pts, frame.time_base)
                if only is None or pts_us in only:
                    yield pts_us, frame.to_ndarray(format=pixels)
        except av.error.InvalidDataError:  # the fragment that was being written when its writer died
            return
        except (av.error.FFmpegError, ValueError) as error:
            raise _not_ours(path, error) from error


def _not_ours(path: Path, error: Exception) -> StorageError:
    return StorageError(f"{path} cannot be read as a video: {error}")


def place_us(pts: int | None, time_base: Fraction | None) -> int:
    """Where a picture stands in its file, us. Raises StorageError for one of somebody else's file that does not say."""
    if pts is None or time_base is None:
        raise StorageError("a video holds pictures without a time of their own: labctl wrote no such file")
    return pts if time_base == TIME_BASE else round(pts * time_base / TIME_BASE)


def open_video(path: Path) -> InputContainer:
    """The container of a video file, to be closed. Raises StorageError when it is none."""
    import av.error

    try:
        container = av.open(str(path))
    except (OSError, ValueError, av.error.FFmpegError) as error:  # ValueError: words in it that are no UTF-8
        raise _not_ours(path, error) from error
    if not container.streams.video:
        container.close()
        raise StorageError(f"{path} holds no video")
    return container
