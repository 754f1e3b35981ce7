"""The two cameras that every driver's sources become: a live one, read by a thread, and a recording, played.

May not: know a camera or a file format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from labctl.devices import Frame, Kind
from labctl.drivers.common.frame_reader import FrameReader, FrameSource
from labctl.drivers.common.player import Player
from labctl.errors import DeviceError
from labctl.plain import CameraAbout

SILENT_S = 1.0
SILENT_PERIODS = 5
LONGEST_WAIT_S = 0.2  # of `grab`, for a frame that is not there yet


UNKNOWN: CameraAbout = {  # before a camera is connected
    "model": None,
    "serial": None,
    "settings": {},
    "intrinsics": None,
    "extrinsics": None,
    "depth_scale_m": None,
}


class Source(FrameSource, Protocol):
    """What a driver writes: `FrameSource`, and who it is. Of a recording, `read` returns None at the end.

    size: width and height in pixels; shown: its name for people; about: see `labctl.devices.Camera`.
    """

    size: tuple[int, int]
    rate_hz: float
    shown: str

    def about(self) -> CameraAbout: ...


def silent_s(rate_hz: float) -> float:
    """So long without a frame, and a camera of this rate is lost."""
    return max(SILENT_S, SILENT_PERIODS / rate_hz)


class _Camera:
    """What both have of their source."""

    def __init__(self, source: Source) -> None:
        self.width, self.height = source.size
        self.rate_hz = source.rate_hz
        self._source = source

    def sense(self, observation: Mapping[str, np.ndarray]) -> None:
        """A real camera sees for itself, and what was recorded does not change."""

    def about(self) -> CameraAbout:
        """See `labctl.devices.Camera`."""
        return self._source.about()


class LiveCamera(_Camera):
    """See `labctl.devices.Camera`. open_s: how long `connect` waits for a first frame; frozen_s: see `Repeats`."""

    kind: Kind = "real"

    def __init__(self, source: Source, *, open_s: float, frozen_s: float) -> None:
        super().__init__(source)
        self._reader = FrameReader(
            source.shown, source, silent_s=silent_s(source.rate_hz), open_s=open_s, frozen_s=frozen_s
        )

    def connect(self, now_ns: int) -> None:
        """Open the camera and wait for its first frame. Raises DeviceLost, or DeviceRefused in one line."""
        self._reader.start()

    def grab(self, now_ns: int) -> Frame | None:
        """The next frame. Waits for it up to a frame period. Raises DeviceLost."""
        return self._reader.take(min(1.0 / self.rate_hz, LONGEST_WAIT_S))

    def close(self) -> None:
        """Let go of the camera. Any number of times."""
        self._reader.end()


class PlayedCamera(_Camera):
    """See `labctl.devices.Camera`. A recording, by the caller's clock; `connect` begins it anew after its end."""

    kind: Kind = "replay"

    def __init__(self, source: Source, *, paced: bool) -> None:
        super().__init__(source)
        self._paced = paced
        self._player: Player | None = None
        self._lost: DeviceError | None = None

    def connect(self, now_ns: int) -> None:
        """Open the recording; its first frame is due now. Raises DeviceRefused in one line."""
        if self._player is not None and self._lost is None:
            return
        self.close()
        shown, source = self._source.shown, self._source
        try:
            source.open()
            self._player = Player(source.read, paced=self._paced, start_ns=now_ns)
        except DeviceError as error:
            source.close()
            raise type(error)(f"{shown}: {error}") from error

    def grab(self, now_ns: int) -> Frame | None:
        """The frame that is due, or None. Raises DeviceLost at the end."""
        if self._player is None:
            raise RuntimeError("the camera is not connected")
        if self._lost is None:
            try:
                return self._player.take(now_ns)
            except DeviceError as error:
                self._lost = type(error)(f"{self._source.shown}: {error}")
        raise self._lost

    def close(self) -> None:
        """Let go of the file. Any number of times."""
        self._source.close()
        self._player = self._lost = None
