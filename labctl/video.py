"""Video files: H.264 in a fragmented mp4 that stays playable when its writer is killed, and the reading of them.

May not: know cameras, episodes or clocks; a frame's time is the caller's, in microseconds since the first frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from labctl.errors import InputError, StorageError

TIME_BASE = Fraction(1, 1_000_000)

# Without flush_packets a killed writer leaves nothing readable; with it, all but the open keyframe interval.
_CONTAINER = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1"}
# No date and no library version in the header: the same frames give the same bytes.
_REPEATABLE = {"fflags": "+bitexact"}


class VideoWriter:
    """One camera's video of one episode. Single-threaded: simulated campaigns must repeat to the byte."""

    def __init__(
        self,
        path: Path,
        width: int,
        height: int,
        *,
        codec: str = "libx264",
        preset: str = "ultrafast",
        crf: int = 23,
        keyframe_s: float = 1.0,
        rate_hz: float = 10.0,
    ) -> None:
        """Open the file, making its folder. Width and height are even (4:2:0); rate_hz only sets the keyframe distance.

        Raises InputError for an unknown codec or preset or an odd size, StorageError when the file cannot be made.
        """
        import av.error

        if width % 2 or height % 2:
            raise InputError(f"a video is {width} x {height} pixels; both must be even")
        self._path, self._shape = path, (height, width, 3)
        self._last_us: int | None = None
        self.frames = 0
        self._container: Any = av.open(str(path), "w", format="mp4", options={**_CONTAINER, **_REPEATABLE})
        options = {"preset": preset, "crf": str(crf), "tune": "zerolatency", "x264-params": "sliced-threads=0"}
        try:
            rate = Fraction(rate_hz).limit_denominator(1000)
            self._stream: Any = self._container.add_stream(codec, rate=rate, options=options)
        except (ValueError, av.error.FFmpegError) as error:
            self._container.close()
            raise InputError(
                f"this build of ffmpeg has no video encoder {codec!r}; libx264 is the usual one"
            ) from error
        context = self._stream.codec_context
        context.width, context.height, context.pix_fmt = width, height, "yuv420p"
        context.gop_size = max(1, round(keyframe_s * rate_hz))
        context.max_b_frames = 0
        context.thread_count = 1
        self._stream.time_base = context.time_base = TIME_BASE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._container.start_encoding()
        except OSError as error:
            raise self._refused(error) from error
        except ValueError as error:
            raise InputError(f"the video encoder {codec!r} refuses preset {preset!r} with crf {crf}") from error

    def write(self, rgb: np.ndarray, pts_us: int) -> None:
        """Add a frame: rgb (height, width, 3) uint8, pts_us later than the last one's.

        Raises ValueError for another shape or a time that does not advance, StorageError when the disk refuses.
        """
        import av.error

        if rgb.shape != self._shape or rgb.dtype != np.uint8:
            raise ValueError(f"a frame of {rgb.shape} {rgb.dtype} in a video of {self._shape} uint8")
        if self._last_us is not None and pts_us <= self._last_us:
            raise ValueError(f"a frame at {pts_us} us after one at {self._last_us} us")
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
        frame.pts, frame.time_base = pts_us, TIME_BASE
        self._mux(frame)
        self.frames, self._last_us = self.frames + 1, pts_us

    def close(self) -> int:
        """Finish the file; how many frames it holds. Closing twice changes nothing."""
        if self._container is not None:
            if self.frames:
                self._mux(None)
            self._container.close()
            self._container = None
        return self.frames

    def _mux(self, frame: Any) -> None:
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> StorageError:
        return StorageError(f"the video {self._path} cannot be written: {error.strerror}")


def read_frames(path: Path) -> Iterator[tuple[int, np.ndarray]]:
    """Each frame in order: (pts in microseconds, image (height, width, 3) uint8 RGB). Ends where a cut file does.

    Raises StorageError when the file cannot be opened as a video.
    """
    import av.error

    with _open(path) as container:
        try:
            for frame in container.decode(video=0):
                yield round(frame.pts * frame.time_base / TIME_BASE), frame.to_ndarray(format="rgb24")
        except av.error.InvalidDataError:  # the fragment that was being written when its writer died
            return


def count_frames(path: Path) -> int:
    """How many frames a video really holds, by reading its packets. Raises StorageError when it is not a video."""
    with _open(path) as container:
        return sum(1 for packet in container.demux(video=0) if packet.size)


def _open(path: Path) -> Any:
    import av.error

    try:
        container = av.open(str(path))
    except (OSError, av.error.FFmpegError) as error:
        raise StorageError(f"{path} cannot be read as a video: {error}") from error
    if not container.streams.video:
        container.close()
        raise StorageError(f"{path} holds no video")
    return container
