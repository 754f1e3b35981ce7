"""Driver "realsense": a RealSense camera by pyrealsense2, colour with depth seen from the colour sensor; or a .db3.

May not: take another camera than the one asked for, accept a setting that the camera did not take, or let the library
connect anew by itself. Unverified on hardware: see docs/hardware.md.
"""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labctl.clock import MonotonicClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Frame
from labctl.drivers.common.cameras import UNKNOWN, LiveCamera, PlayedCamera
from labctl.drivers.common.frame_reader import QUEUE
from labctl.drivers.realsense.device import (
    FORMATS,
    VENDOR,
    check_options,
    choose,
    describe,
    find_stream,
    mapped,
    mapping,
    set_options,
)
from labctl.drivers.realsense.librealsense import rs
from labctl.drivers.realsense.options import RealsenseOptions
from labctl.drivers.realsense.pairing import Pairing
from labctl.errors import DeviceRefused, InputError
from labctl.plain import CameraAbout

OPEN_S = 10.0  # a camera that was just plugged in takes seconds to give its first picture
POLL_S = 0.1
HOLD_S = 0.002
# set before others: a preset changes them, an automatic overrides them
FIRST = ("visual_preset", "enable_auto_exposure", "enable_auto_white_balance")


def connected_devices() -> list[Any]:
    """The RealSense cameras at this computer. Tests put software devices in its place; the rest is the same code."""
    return list(rs.context().query_devices())


def build(options: RealsenseOptions, *, cell: Cell, fixture: Fixture) -> LiveCamera | PlayedCamera:
    """A camera or a recording of one. Raises InputError for a file that is not there, or an unknown setting."""
    size, rate_hz = (options.width, options.height), options.rate_hz
    streams = list(FORMATS) if options.depth else [rs.stream.color]
    if options.file is not None:
        if not Path(options.file).is_file():
            raise InputError(f"realsense: there is no file {options.file}")
        return PlayedCamera(Recorded(options.file, size, rate_hz, streams), paced=options.pace)
    tables = {"color_sensor": options.color_sensor, "depth_sensor": options.depth_sensor}
    settings = {name: _settings(name, table) for name, table in tables.items()}
    live = Live(options.serial or "", size, rate_hz, streams, settings)
    return LiveCamera(live, open_s=OPEN_S, frozen_s=options.frozen_s)


def _settings(sensor: str, table: Mapping[str, float]) -> dict[str, float]:
    for name in table:
        if name not in rs.option.__members__:
            raise InputError(f"realsense: {sensor} has no option {name!r}; use librealsense's names, such as exposure")
    ordered = sorted(table, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return {name: float(table[name]) for name in ordered}


class Images:
    """Makes frames of librealsense's framesets, and counts what came alone."""

    def __init__(self) -> None:
        self._align = rs.align(rs.stream.color)
        self._last_picture: tuple[int, float] | None = None
        self._last_depth: tuple[int, float] | None = None
        self.depth_alone = self.picture_alone = 0

    def begin(self) -> None:
        """A stream begins: frame numbers may begin anew."""
        self._last_picture = self._last_depth = None

    def of(self, frameset: Any, host_ns: int) -> Frame | None:
        """The frame of a frameset, or None if it holds no new picture.

        A pipeline fills a frameset up with the last frame of a stream that gave nothing: such depth is none.
        """
        picture, depth = frameset.get_color_frame(), frameset.get_depth_frame()
        seen = (picture.get_frame_number(), picture.get_timestamp()) if picture else self._last_picture
        if seen == self._last_picture:
            self.depth_alone += 1
            return None
        self._last_picture = seen
        mark = (depth.get_frame_number(), depth.get_timestamp()) if depth else self._last_depth
        fresh, self._last_depth = mark != self._last_depth, mark
        return self.frame(picture, self._align.process(frameset).get_depth_frame() if fresh else None, host_ns)

    def frame(self, picture: Any, depth: Any, host_ns: int) -> Frame:
        """A frame of a picture and the depth aligned to it, both copied out of the library's memory."""
        self.picture_alone += depth is None
        return Frame(
            np.array(picture.get_data()),
            host_ns,
            picture.get_timestamp(),
            picture.get_frame_number(),
            None if depth is None else np.array(depth.get_data()),
            picture.get_frame_timestamp_domain().name,
        )

    def counts(self) -> dict[str, int]:
        """So many depth images came without a picture (dropped), and pictures without depth (kept)."""
        return {"depth_without_picture": self.depth_alone, "picture_without_depth": self.picture_alone}


class Joiner:
    """Makes one frameset of a picture and a depth image, as alignment wants it."""

    def __init__(self) -> None:
        self._made = rs.frame_queue(1)
        self._pair: list[Any] = []
        self._block = rs.processing_block(self._make)  # not rs.filter: 2.59 cannot hand it a frame_source
        self._block.start(self._made)

    def _make(self, frame: Any, source: Any) -> None:
        source.frame_ready(source.allocate_composite_frame(self._pair))

    def clear(self) -> None:
        """Let go of the last frames."""
        self._pair = []

    def join(self, picture: Any, depth: Any) -> Any:
        """A frameset of both."""
        self._pair = [depth, picture]
        self._block.invoke(picture)
        return self._made.wait_for_frame().as_frameset()


class Live:
    """A camera, as `FrameReader` sees it. Its frames are stamped in librealsense's own thread, when they come."""

    def __init__(
        self,
        serial: str,
        size: tuple[int, int],
        rate_hz: float,
        streams: Sequence[Any],
        settings: Mapping[str, Mapping[str, float]],
    ) -> None:
        self.size, self.rate_hz = size, rate_hz
        self.shown = f"RealSense {serial}".strip()
        self._serial, self._streams, self._settings = serial, streams, settings
        self._clock = MonotonicClock()
        self._images = Images()
        self._known: CameraAbout = {**UNKNOWN}
        self._pipeline: Any = None
        self._came: queue.Queue[tuple[Any, int]] = queue.Queue(QUEUE)

    def open(self) -> None:
        """Raises DeviceLost when the camera is not there, DeviceRefused when it will not do as the cell asks."""
        with mapping():
            device = choose(connected_devices(), self._serial)
            config = rs.config()
            wanted = []
            for stream in self._streams:
                sensor, _ = find_stream(device, stream, self.size, self.rate_hz)
                config.enable_stream(stream, *self.size, FORMATS[stream], int(self.rate_hz))
                wanted.append((sensor, self._settings["color_sensor" if stream == rs.stream.color else "depth_sensor"]))
                set_options(*wanted[-1])
            self._images.begin()
            self._came = queue.Queue(QUEUE)
            self._pipeline = rs.pipeline()
            self._pipeline.set_device(device)  # this very one keeps what was set
            # with a callback, or `wait_for_frames` would restart a camera that was unplugged, with other settings
            atexit.register(self.close)  # a frame that comes while the interpreter ends would abort the process
            profile = self._pipeline.start(config, self._arrive)
            for sensor, settings in wanted:
                check_options(sensor, settings)
            self._known = describe(device, {stream: profile.get_stream(stream) for stream in self._streams})

    def _arrive(self, frameset: Any) -> None:
        host_ns = self._clock.now_ns()
        with contextlib.suppress(queue.Empty):
            if self._came.full():
                self._came.get_nowait()
        self._came.put_nowait((frameset, host_ns))  # one thread alone puts

    def read(self) -> Frame | None:
        """The next picture. Raises DeviceLost."""
        try:
            frameset, host_ns = self._came.get(timeout=POLL_S)
        except queue.Empty:
            return None
        with mapping():
            return self._images.of(frameset.as_frameset(), host_ns)

    def about(self) -> CameraAbout:
        """See `labctl.devices.Camera`; `counts` are of all frames so far."""
        return {**self._known, "counts": self._images.counts()}

    def close(self) -> None:
        """Stop streaming. Any number of times."""
        if self._pipeline is not None:
            with contextlib.suppress(*VENDOR):  # it never started, or the camera is gone
                self._pipeline.stop()
            self._pipeline = None
            atexit.unregister(self.close)


class Recorded:
    """A .db3, read as fast as it is asked for. The library pairs no streams of a recording, so that is done here."""

    def __init__(self, file: str, size: tuple[int, int], rate_hz: float, streams: Sequence[Any]) -> None:
        self.size, self.rate_hz, self.shown = size, rate_hz, file
        self._streams = streams
        self._images = Images()
        self._known: CameraAbout = {**UNKNOWN}
        self._device: Any = None
        self._sensors: list[Any] = []
        self._came: queue.Queue[Any] = queue.Queue()
        self._flowing, self._end = threading.Event(), threading.Event()
        self._pairing: Pairing[Any] = Pairing(0.0)
        self._joiner = Joiner()
        self._ended = False

    def open(self) -> None:
        """Raises DeviceRefused for what is no recording, or one without what the cell asks for."""
        try:
            self._device = rs.context().load_device(self.shown)
        except VENDOR as error:
            raise DeviceRefused(f"this is not a recording that librealsense can play ({mapped(error)})") from error
        atexit.register(self.close)  # as above (seen)
        with mapping():
            found = {stream: find_stream(self._device, stream, self.size, self.rate_hz) for stream in self._streams}
            self._device.set_real_time(False)
            self._device.pause()  # or what comes before the last sensor is started would be lost
            self._came, self._pairing = queue.Queue(), Pairing(500.0 / self.rate_hz)
            self._end.clear()
            self._flowing.clear()
            self._ended = False
            self._images.begin()
            for sensor, profile in found.values():
                sensor.open(profile)
                self._sensors.append(sensor)
                sensor.start(self._arrive)
            self._device.pause()  # a start only asks the thread that reads the file: now it has done what they asked
            # before it plays: the thread that reads the file puts new options in the place of those that are read here,
            # and what is read then is what was there (seen: a laser power of -1.7e-24, and a segmentation fault)
            self._known = describe(self._device, {stream: profile for stream, (_, profile) in found.items()})
            self._device.resume()
            self._flowing.set()

    def _arrive(self, frame: Any) -> None:
        """In librealsense's threads. To wait here holds the recording up: it plays no faster than it is read.

        Before `resume` has returned nothing may wait, since it waits for what it has set going. And a full
        rs.frame_queue may not stand here: it would wait with the interpreter's lock in its hands.
        """
        while self._flowing.is_set() and self._came.qsize() >= QUEUE and not self._end.is_set():
            self._end.wait(HOLD_S)
        if not self._end.is_set():
            frame.keep()  # out of the few that the library recycles
            self._came.put(frame)

    def read(self) -> Frame | None:
        """The next picture; None at the end. Raises DeviceLost."""
        with mapping():
            while (pair := self._pairing.ready(ended=self._ended)) is None and not self._ended:
                stopped = self._device.current_status() == rs.playback_status.stopped
                try:
                    frame = self._came.get(timeout=POLL_S)
                except queue.Empty:
                    self._ended = stopped
                    continue
                put = self._pairing.depth if frame.is_depth_frame() else self._pairing.picture
                put(frame.get_timestamp(), frame)
            if pair is None:
                return None
            picture, depth = pair
            if depth is None:
                return self._images.frame(picture.as_video_frame(), None, 0)
            return self._images.of(self._joiner.join(picture, depth), 0)

    def about(self) -> CameraAbout:
        """See `labctl.devices.Camera`; `counts` are of all frames so far."""
        return {**self._known, "counts": {**self._images.counts(), "depth_without_picture": self._pairing.alone}}

    def close(self) -> None:
        """Let go of the file. Any number of times."""
        self._end.set()
        self._paused()  # a sensor that closes lets go of queues into which the thread that reads may be putting a frame
        for sensor in self._sensors:
            with contextlib.suppress(*VENDOR):  # it was not started
                sensor.stop()
                sensor.close()
        # The thread that reads the file may have taken its next order and not begun it; the device's end waits only for
        # one that has begun, and the order is then run on what is gone.
        self._paused()
        self._came = queue.Queue()  # frames go before the device that they are of, and not in the middle of the next
        self._pairing.clear()
        self._joiner.clear()
        self._sensors, self._device = [], None
        atexit.unregister(self.close)

    def _paused(self) -> None:
        """Pause the file; when this returns, the thread that reads it has run its orders and waits."""
        if self._device is not None:
            with contextlib.suppress(*VENDOR):
                self._device.pause()
