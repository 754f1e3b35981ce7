"""A RealSense camera without hardware: librealsense's own software_device, live or recorded to a .db3.

May not: be more than a source of frames. USB, real options and unplugging cannot be played: see docs/hardware.md.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.realsense.librealsense import rs
from support.cameras import barcode

CLOCK = MonotonicClock()
DEPTH_SCALE_M = 0.001
BASELINE_M = 0.015  # from the depth sensor to the colour sensor, along x
FOCAL = {"color": 310.0, "depth": 300.0}
SECOND_MS = 1000.0
# silent: nothing comes. frozen: new frames with the same picture. no_depth, no_color: one stream alone goes on.
Fault = Literal["", "silent", "frozen", "no_depth", "no_color"]
OPTIONS: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {  # least, most, step, at first; as of a D435
    "color": {
        "exposure": (1, 10000, 1, 156),
        "gain": (0, 128, 1, 64),
        "enable_auto_exposure": (0, 1, 1, 1),
        "white_balance": (2800, 6500, 10, 4600),
        "enable_auto_white_balance": (0, 1, 1, 1),
    },
    "depth": {"laser_power": (0, 360, 30, 150), "emitter_enabled": (0, 2, 1, 1), "visual_preset": (0, 5, 1, 0)},
}


def depth_image(width: int, height: int, number: int) -> np.ndarray:
    """Depth (height, width) uint16 in mm: a slope, one step further with each frame."""
    slope = np.linspace(600, 1400, width)[None] + np.linspace(0, 100, height)[:, None]
    return (slope + number % 200).astype(np.uint16)


class SoftRealSense:
    """`device` is an rs.device; `with` it, marked frames come at its rate, whether or not anybody streams. `sent_ns`:
    when each was given to the library.
    """

    def __init__(
        self, serial: str = "soft-1", *, width: int = 320, height: int = 240, rate_hz: int = 30, depth: bool = True
    ) -> None:
        self.serial, self.width, self.height, self.rate_hz = serial, width, height, rate_hz
        self._fault: Fault = ""
        self._sending = threading.Lock()
        self.sent, self.sent_ns = 0, dict[int, int]()
        self.device = rs.software_device()
        for key, text in (("name", "Soft D435"), ("serial_number", serial), ("firmware_version", "5.16.0.1")):
            self.device.register_info(getattr(rs.camera_info, key), text)
        self.device.register_info(rs.camera_info.usb_type_descriptor, "3.2")
        self._sensors: dict[str, Any] = {}
        self._profiles: dict[str, Any] = {}
        for name, label in (("depth", "Stereo Module"), ("color", "RGB Camera"))[0 if depth else 1 :]:
            self._add(name, label)
        if depth:
            self._sensors["depth"].add_read_only_option(rs.option.depth_units, DEPTH_SCALE_M)
            self._sensors["depth"].add_read_only_option(rs.option.stereo_baseline, 50)
            between = rs.extrinsics()
            between.rotation, between.translation = [1, 0, 0, 0, 1, 0, 0, 0, 1], [BASELINE_M, 0, 0]
            self._profiles["depth"].register_extrinsics_to(self._profiles["color"], between)
            self.device.create_matcher(rs.matchers.dlr_c)
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def _add(self, name: str, label: str) -> None:
        sensor = self._sensors[name] = self.device.add_sensor(label)
        lens = rs.intrinsics()
        lens.width, lens.height = self.width, self.height
        lens.fx = lens.fy = FOCAL[name] * self.width / 320
        lens.ppx, lens.ppy = self.width / 2 - 0.5, self.height / 2 + 0.25
        lens.model, lens.coeffs = rs.distortion.brown_conrady, [0.0] * 5
        stream = rs.video_stream()
        stream.type, stream.index, stream.uid = getattr(rs.stream, name), 0, len(self._sensors)
        stream.width, stream.height, stream.fps, stream.intrinsics = self.width, self.height, self.rate_hz, lens
        stream.fmt, stream.bpp = (rs.format.rgb8, 3) if name == "color" else (rs.format.z16, 2)
        self._profiles[name] = sensor.add_video_stream(stream)
        for option, (least, most, step, value) in OPTIONS[name].items():
            limits = rs.option_range()
            limits.min, limits.max, limits.step, limits.default = least, most, step, value
            sensor.add_option(getattr(rs.option, option), limits, True)

    @property
    def fault(self) -> Fault:
        """What is wrong with it. Once it was set, no frame of before is on its way."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        with self._sending:
            self._fault = fault

    def picture(self, number: int) -> np.ndarray:
        return barcode.paint(self.width, self.height, number, number * SECOND // self.rate_hz)

    def send(
        self,
        number: int,
        *,
        only: str = "",
        picture: np.ndarray | None = None,
        late_ms: float = 0.0,
        color_first: bool = False,
    ) -> None:
        """One frame of each stream, or of `only` one. late_ms: how far depth's time is behind the picture's."""
        at_ms = number * SECOND_MS / self.rate_hz
        for name in ("color", "depth") if color_first else ("depth", "color"):
            if name == "color" and only != "depth":
                self._give(name, self.picture(number) if picture is None else picture, 3, number, at_ms)
            elif name in self._sensors and name == "depth" and only != "color":
                self._give(name, depth_image(self.width, self.height, number), 2, number, at_ms + late_ms)

    def _give(self, name: str, pixels: np.ndarray, size: int, number: int, at_ms: float) -> None:
        frame = rs.software_video_frame()
        frame.pixels, frame.stride, frame.bpp = pixels, self.width * size, size
        frame.timestamp, frame.domain, frame.frame_number = at_ms, rs.timestamp_domain.global_time, number
        frame.profile = self._profiles[name].as_video_stream_profile()
        frame.depth_units = DEPTH_SCALE_M
        self._sensors[name].set_metadata(rs.frame_metadata_value.frame_counter, number)
        self._sensors[name].set_metadata(rs.frame_metadata_value.actual_exposure, 100 + number)
        self._sensors[name].on_video_frame(frame)

    def record(self, path: Path, numbers: range, *, skip: Mapping[int, str] | None = None, **how: Any) -> Path:
        """A .db3 of these frames. skip: number -> the stream that gives nothing then; how: see `send`."""
        recorder = rs.recorder(str(path), self.device, True)
        sensors = recorder.query_sensors()
        took = threading.Semaphore(0)
        for sensor in sensors:
            sensor.open(sensor.get_stream_profiles())
            sensor.start(lambda frame: took.release())
        for number in numbers:
            only = {"depth": "color", "color": "depth", None: ""}[(skip or {}).get(number)]
            self.send(number, only=only, **how)
            for _ in range(1 if only else len(self._sensors)):
                assert took.acquire(timeout=60), "the recorder took no frame"
        for sensor in sensors:
            sensor.stop()
            sensor.close()
        del recorder, sensors, sensor
        gc.collect()  # the file is finished when the last of these is gone
        return path

    def _stream(self) -> None:
        start_ns, number = CLOCK.now_ns(), 0
        while True:
            number += 1
            due_ns = start_ns + number * SECOND // self.rate_hz
            if self._end.wait(max(0.0, (due_ns - CLOCK.now_ns()) / SECOND)):
                return
            with self._sending:
                if self.fault != "silent":
                    only = {"no_depth": "color", "no_color": "depth"}.get(self.fault, "")
                    self.sent_ns[number] = CLOCK.now_ns()
                    self.send(number, only=only, picture=self.picture(0) if self.fault == "frozen" else None)
                    self.sent = number

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._stream, name="soft-realsense", daemon=True)
        self._thread.start()

    def __enter__(self) -> SoftRealSense:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
