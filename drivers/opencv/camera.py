"""Driver "opencv_camera": a USB camera by V4L2, a network camera by URL, or a video file played as a camera.

May not: accept another size, rate, format or setting than the cell asks for, or stamp a live picture with anything but
the host's clock on receipt. Devices are unverified on hardware: see docs/hardware.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Frame
from labctl.drivers.common.cameras import UNKNOWN, LiveCamera, PlayedCamera, silent_s
from labctl.drivers.opencv.options import OpencvOptions
from labctl.drivers.opencv.source import Source, device_names, why_absent
from labctl.errors import DeviceLost, DeviceRefused
from labctl.plain import CameraAbout, Json

# OpenCV reads these when it first opens a camera. -8: FFmpeg says nothing (labctl says it better); 1 s instead of 10
# until a device that sends nothing is given up.
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", "1")

import cv2

SILENT = 0  # LOG_LEVEL_SILENT
# Of OpenCV 4, else of 5.
(getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel)(SILENT)

OPEN_S = 5.0
BEHIND_S = 4.0  # of pictures that are passed over at most until one has to be waited for
# Of V4L2, as OpenCV passes them through: EXPOSURE_AUTO is 1 for manual and 3 for automatic, EXPOSURE_ABSOLUTE counts
# 100 us, WHITE_BALANCE_TEMPERATURE kelvin (kernel documentation, "Camera Control Reference", "User Controls").
MANUAL_EXPOSURE = 1
EXPOSURE_STEP_S = 1e-4
# option: (what switches its automatic off, that value, the control, one unit of the control in the option's unit)
CONTROLS: Mapping[str, tuple[int | None, int, int, float]] = {
    "exposure_s": (cv2.CAP_PROP_AUTO_EXPOSURE, MANUAL_EXPOSURE, cv2.CAP_PROP_EXPOSURE, EXPOSURE_STEP_S),
    "gain": (None, 0, cv2.CAP_PROP_GAIN, 1.0),
    "white_balance_k": (cv2.CAP_PROP_AUTO_WB, 0, cv2.CAP_PROP_WB_TEMPERATURE, 1.0),
    "focus": (cv2.CAP_PROP_AUTOFOCUS, 0, cv2.CAP_PROP_FOCUS, 1.0),
}
READ_BACK = {"auto_exposure": cv2.CAP_PROP_AUTO_EXPOSURE, "auto_white_balance": cv2.CAP_PROP_AUTO_WB}


def build(options: OpencvOptions, *, cell: Cell, fixture: Fixture) -> LiveCamera | PlayedCamera:
    """A camera, or a file played as one."""
    source, size = options.found, (options.width, options.height)
    if source.sort == "file":
        return PlayedCamera(VideoFile(source, size, options.rate_hz), paced=options.pace)
    given = {name: getattr(options, name) for name in CONTROLS}
    settings = {name: value for name, value in given.items() if value is not None}
    camera = Capture(source, size, options.rate_hz, options.fourcc or "", settings)
    return LiveCamera(camera, open_s=OPEN_S + silent_s(options.rate_hz), frozen_s=options.frozen_s)


class Capture:
    """A live cv2.VideoCapture: opening it, comparing what it gives with what was asked, reading."""

    def __init__(
        self,
        source: Source,
        size: tuple[int, int],
        rate_hz: float,
        fourcc: str = "",
        settings: Mapping[str, float] | None = None,
    ) -> None:
        self.size, self.rate_hz, self.shown = size, rate_hz, source.shown
        self._source = source
        self._fourcc, self._settings = fourcc, dict(settings or {})
        self._clock = MonotonicClock()
        self._video: Any = None
        self._number = -1
        self._behind = False
        self._known: CameraAbout = {**UNKNOWN}

    def open(self) -> None:
        """Open and set up the source. Raises DeviceLost when it is not there, DeviceRefused when it will not."""
        cv2.setNumThreads(1)  # its helpers wait for the next picture by spinning: a tenth of what a camera takes
        self._behind = self._source.sort == "url"
        try:
            self._video = video = open_video(self._source.looked_up(), silent_s(self.rate_hz))
            if not video.isOpened():
                if self._source.sort == "file":
                    raise DeviceRefused("this is not a video that FFmpeg can read")
                raise DeviceLost(why_absent(self._source))
            settings = self._set_up() if self._source.sort == "device" else {}
            self._compare_size()
            model, serial = device_names(self._source)
            self._known = {
                "model": model,
                "serial": serial,
                "source": self.shown,
                "software": f"opencv {cv2.__version__}, {video.getBackendName()}",
                "format": _fourcc_text(video.get(cv2.CAP_PROP_FOURCC)),
                "settings": settings,
                "intrinsics": None,
                "extrinsics": None,
                "depth_scale_m": None,
            }
        except cv2.error as error:
            raise mapped(error) from error

    def about(self) -> CameraAbout:
        """See `labctl.devices.Camera`. OpenCV knows no calibration, so that is null."""
        return {**self._known}

    def _compare_size(self) -> None:
        found = (self._video.get(cv2.CAP_PROP_FRAME_WIDTH), self._video.get(cv2.CAP_PROP_FRAME_HEIGHT))
        if found != self.size:
            raise DeviceRefused(
                f"it gives pictures of {found[0]:g} x {found[1]:g}, the cell asks for "
                f"{self.size[0]} x {self.size[1]}; change width and height of this [[camera]], or the camera"
            )

    def _set_up(self) -> dict[str, Json]:
        """Format, size, rate and controls of a V4L2 device, each read back. Raises DeviceRefused."""
        video = self._video
        if self._fourcc:
            video.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*self._fourcc))
        video.set(cv2.CAP_PROP_FRAME_WIDTH, self.size[0])
        video.set(cv2.CAP_PROP_FRAME_HEIGHT, self.size[1])
        video.set(cv2.CAP_PROP_FPS, self.rate_hz)
        found = _fourcc_text(video.get(cv2.CAP_PROP_FOURCC))
        if self._fourcc and found != self._fourcc:
            raise DeviceRefused(f"it gives pictures as {found}, the cell asks for fourcc = {self._fourcc!r}")
        self._compare_size()
        rate_hz = video.get(cv2.CAP_PROP_FPS)
        if abs(rate_hz - self.rate_hz) > 0.01 * self.rate_hz:
            hint = "" if self._fourcc else '; fourcc = "MJPG" may allow more'
            raise DeviceRefused(
                f"it gives {rate_hz:g} pictures per second at this size, the cell asks for {self.rate_hz:g}{hint}"
            )
        for name, value in self._settings.items():
            _set_control(video, name, value)
        back = {name: video.get(control) for name, control in READ_BACK.items()}
        read = [name for name in CONTROLS if name != "focus" or name in self._settings]
        back |= {name: video.get(CONTROLS[name][2]) * CONTROLS[name][3] for name in read}
        known = {name: round(value, 6) if value >= 0 else None for name, value in back.items()}
        return known | {"rate_hz": rate_hz}

    def read(self) -> Frame | None:
        """The next picture of a live source. Raises DeviceLost."""
        try:
            began_ns, came, host_ns = self._caught_up() if self._behind else self._grab()
            if not came:
                waited_s = (host_ns - began_ns) / SECOND
                silent = waited_s > silent_s(self.rate_hz) / 2
                words = f"no picture for {waited_s:.1f} s" if silent else "it has ended the stream"
                raise DeviceLost(f"{words}; check its cable and power")
            self._number += 1
            image = self._image()
            device_ms = self._video.get(cv2.CAP_PROP_POS_MSEC) if self._source.sort == "device" else 0.0
        except cv2.error as error:
            raise mapped(error) from error
        if image is None:
            return None  # a picture that could not be decoded: a gap in the numbers
        if device_ms > 0:
            return Frame(image, host_ns, device_ms, self._number, domain="v4l2", counted=False)
        return Frame(image, host_ns, math.nan, self._number, domain="none", counted=False)

    def _grab(self) -> tuple[int, bool, int]:
        began_ns = self._clock.now_ns()
        return began_ns, self._video.grab(), self._clock.now_ns()

    def _caught_up(self) -> tuple[int, bool, int]:
        """The first picture of a network camera that had to be waited for. What came while the stream was being opened
        lies in a buffer: read at once, it would bear the time of reading and not that of its arrival.
        """
        self._behind = False
        waited_ns = SECOND / self.rate_hz / 2
        grabbed = self._grab()
        for _ in range(math.ceil(BEHIND_S * self.rate_hz)):
            began_ns, came, host_ns = grabbed
            if not came or host_ns - began_ns >= waited_ns:
                break
            grabbed = self._grab()
        return grabbed

    def _image(self) -> np.ndarray | None:
        good, picture = self._video.retrieve()
        if not good or picture is None:
            return None
        if picture.shape != (self.size[1], self.size[0], 3):
            raise DeviceLost(f"its pictures became {picture.shape[1]} x {picture.shape[0]}")
        return cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)

    def close(self) -> None:
        """Release the source. Any number of times."""
        if self._video is not None:
            self._video.release()
            self._video = None


class VideoFile(Capture):
    """A video file."""

    def read(self) -> Frame | None:
        """The next picture, device_time its PTS in ms, number its place; None at the end. Raises DeviceLost."""
        try:
            if not self._video.grab():
                return None
            number = round(self._video.get(cv2.CAP_PROP_POS_FRAMES)) - 1
            image = self._image()
            if image is None:
                raise DeviceLost(f"its picture {number} cannot be decoded")
            return Frame(image, 0, self._video.get(cv2.CAP_PROP_POS_MSEC), number, domain="pts")
        except cv2.error as error:
            raise mapped(error) from error


def mapped(error: Exception) -> DeviceLost:
    """labctl's error for one of OpenCV's, in one line."""
    return DeviceLost(" ".join(str(error).split()) or type(error).__name__)


def open_video(source: Source, read_s: float) -> Any:
    """A cv2.VideoCapture of a source, opened or not."""
    if source.sort == "device":
        return cv2.VideoCapture(source.opened, cv2.CAP_V4L2)
    timing = {cv2.CAP_PROP_OPEN_TIMEOUT_MSEC: OPEN_S * 1000, cv2.CAP_PROP_READ_TIMEOUT_MSEC: read_s * 1000}
    timing[cv2.CAP_PROP_N_THREADS] = 1  # more would hold back as many pictures of an H.264 stream
    return cv2.VideoCapture(source.opened, cv2.CAP_FFMPEG, [round(x) for pair in timing.items() for x in pair])


def _set_control(video: Any, name: str, value: float) -> None:
    automatic, manual, control, unit = CONTROLS[name]
    if automatic is not None:
        video.set(automatic, manual)
    video.set(control, round(value / unit))
    found = video.get(control) * unit
    if found < 0:
        raise DeviceRefused(f"it has no {name} to set; leave the option out")
    if round(found / unit) != round(value / unit):
        raise DeviceRefused(f"it did not take {name} = {value:g}, it has {found:g}; ask for a value it can have")


def _fourcc_text(code: float) -> str:
    return int(code).to_bytes(4, "little", signed=False).decode("ascii", "replace").strip() if code > 0 else ""
