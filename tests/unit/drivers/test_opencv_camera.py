"""The OpenCV driver: a loopback stream, a file, and a V4L2 device played by a stand-in that does as the kernel does."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import barcode
from support.footage import write_video
from support.mjpeg import CLOCK, MjpegServer

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Camera, Frame, load
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError

cv2 = pytest.importorskip("cv2")

SIZE = {"width": 320, "height": 240, "rate_hz": 30.0}
PTS_US = [0, 33_333, 66_667, 99_000, 140_500, 166_667, 200_000, 233_333]  # as a real camera's: not quite even


def camera(source: Any, **options: Any) -> Camera:
    return load("opencv_camera", {**SIZE, "source": source, **options}, cell={}, fixture={})


def frames(made: Camera, count: int) -> list[Frame]:
    """The next frames of a live camera."""
    found: list[Frame] = []
    over_ns = CLOCK.now_ns() + 20 * SECOND
    while len(found) < count:
        assert CLOCK.now_ns() < over_ns, f"only {len(found)} frames came"
        frame = made.grab(CLOCK.now_ns())
        found += [frame] if frame is not None else []
    return found


def until_lost(made: Camera, within_s: float = 10.0) -> tuple[DeviceError, float]:
    """Grab until the camera is lost: the error, and the seconds it took."""
    began_ns = CLOCK.now_ns()
    while CLOCK.now_ns() < began_ns + within_s * SECOND:
        try:
            made.grab(CLOCK.now_ns())
        except DeviceError as error:
            return error, (CLOCK.now_ns() - began_ns) / SECOND
    raise AssertionError(f"not lost within {within_s} s")


# -- a network camera


@pytest.fixture
def server() -> Iterator[MjpegServer]:
    with MjpegServer(**SIZE) as made:
        yield made


@pytest.fixture
def live(server: MjpegServer) -> Iterator[Camera]:
    made = camera(server.url)
    made.connect(CLOCK.now_ns())
    yield made
    made.close()


def test_a_streams_pictures_arrive_in_order_in_rgb_and_stamped_on_receipt(live: Camera) -> None:
    found = frames(live, 20)
    marks = [barcode.read(frame.image) for frame in found]
    assert None not in marks
    for (before, mark_before), (after, mark_after) in pairwise(zip(found, marks, strict=True)):
        assert after.number - before.number == mark_after.number - mark_before.number > 0
        assert after.host_ns > before.host_ns
    assert all(frame.host_ns > mark.t_ns for frame, mark in zip(found, marks, strict=True))
    assert np.abs(barcode.patches(found[0].image) - barcode.PATCHES).max() < 12
    assert (live.kind, found[0].domain, found[0].depth) == ("real", "none", None)
    assert math.isnan(found[0].device_time), "a stream has no clock of its own; OpenCV invents one"


def test_what_is_not_taken_is_dropped_oldest_first_and_counted(server: MjpegServer, live: Camera) -> None:
    first = frames(live, 1)[0]
    until = server.latest + 25
    while server.latest < until:
        CLOCK.sleep_until(CLOCK.now_ns() + MILLISECOND)
    later = frames(live, 1)[0]
    gap = barcode.read(later.image).number - barcode.read(first.image).number
    assert later.number - first.number == gap > 5


@pytest.mark.parametrize(
    ("fault", "says", "at_most_s"),
    [
        ("stall", r"no picture for \d\.\d s", 4.0),
        ("close", "has ended the stream", 4.0),
        ("frozen", "same picture", 6.0),
    ],
)
def test_a_stream_that_fails_is_lost_in_bounded_time_and_comes_back(
    server: MjpegServer, live: Camera, fault: Any, says: str, at_most_s: float
) -> None:
    last = frames(live, 3)[-1]
    server.fault = fault
    error, took_s = until_lost(live)
    assert isinstance(error, DeviceLost) and took_s < at_most_s
    assert re.search(says, str(error)) and server.url in str(error) and "\n" not in str(error)
    with pytest.raises(DeviceLost):
        live.grab(CLOCK.now_ns())
    if fault == "close":
        with pytest.raises(DeviceLost, match="no stream of pictures comes from there"):
            live.connect(CLOCK.now_ns())
    server.fault = ""
    live.connect(CLOCK.now_ns())
    again = frames(live, 3)
    assert again[0].number > last.number and again[0].host_ns > last.host_ns


def test_a_frozen_camera_is_borne_where_the_cell_says_so(server: MjpegServer) -> None:
    made = camera(server.url, frozen_s=0.0)
    made.connect(CLOCK.now_ns())
    server.fault = "frozen"
    assert len({barcode.read(frame.image) for frame in frames(made, 70)}) < 10
    made.close()


def test_a_slow_stream_is_not_lost_and_its_times_tell(server: MjpegServer, live: Camera) -> None:
    frames(live, 2)
    server.fault = "slow"
    found = frames(live, 8)[4:]
    apart_s = np.diff([frame.host_ns for frame in found]) / SECOND
    assert np.median(apart_s) > 0.1


def test_a_stream_of_another_size_is_refused_in_one_line(server: MjpegServer) -> None:
    server.fault = "wrong_size"
    made = camera(server.url)
    with pytest.raises(DeviceRefused) as caught:
        made.connect(CLOCK.now_ns())
    assert "it gives pictures of 160 x 120, the cell asks for 320 x 240" in str(caught.value)
    server.fault = ""
    made.connect(CLOCK.now_ns())
    assert frames(made, 1)
    made.close()


def test_nobody_at_the_url_is_a_loss(server: MjpegServer) -> None:
    server.close()
    with pytest.raises(DeviceLost, match="no stream of pictures"):
        camera(server.url).connect(CLOCK.now_ns())


def test_a_password_is_shown_nowhere(server: MjpegServer) -> None:
    secret = server.url.replace("127.0.0.1", "anna:s3cret@127.0.0.1")
    made = camera(secret)
    made.connect(CLOCK.now_ns())
    assert "s3cret" not in json.dumps(made.about()) and server.url in made.about()["source"]
    server.fault = "close"
    assert "s3cret" not in str(until_lost(made)[0])
    made.close()


# -- a file


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("film") / "film.mp4", PTS_US)


def test_a_file_plays_at_its_own_times_by_the_callers_clock(film: Path) -> None:
    made = camera(str(film))
    made.connect(7 * SECOND)
    found = []
    for ms in range(0, 300, 5):
        now_ns = 7 * SECOND + ms * MILLISECOND
        try:
            frame = made.grab(now_ns)
        except DeviceLost as error:
            assert f"{film}: it has been played to its end" in str(error)
            break
        if frame is not None:
            assert 0 <= now_ns - frame.host_ns < 5 * MILLISECOND
            found.append(frame)
    assert [round(frame.device_time * 1000) for frame in found] == PTS_US
    assert [round((frame.host_ns - 7 * SECOND) / 1000) for frame in found] == PTS_US
    assert [barcode.read(frame.image).number for frame in found] == list(range(len(PTS_US)))
    assert [frame.number for frame in found] == list(range(len(PTS_US)))
    assert (made.kind, found[0].domain) == ("replay", "pts")
    with pytest.raises(DeviceLost, match="played to its end"):
        made.grab(20 * SECOND)
    made.connect(30 * SECOND)
    assert made.grab(30 * SECOND).number == 0
    made.close()


def test_a_file_without_pace_gives_a_picture_whenever_asked(film: Path) -> None:
    made = camera(str(film), pace=False)
    made.connect(0)
    found = [made.grab(i) for i in range(len(PTS_US))]
    assert [(frame.number, frame.host_ns) for frame in found] == [(i, i) for i in range(len(PTS_US))]
    with pytest.raises(DeviceLost):
        made.grab(99)
    made.close()


def test_a_file_of_another_size_or_no_video_is_refused(film: Path, tmp_path: Path) -> None:
    with pytest.raises(DeviceRefused, match=r"film\.mp4: it gives pictures of 320 x 240, the cell asks for 640 x 480"):
        camera(str(film), width=640, height=480).connect(0)
    text = tmp_path / "notes.txt"
    text.write_text("no pictures here")
    with pytest.raises(DeviceRefused, match=r"notes\.txt: this is not a video"):
        camera(str(text)).connect(0)


def test_a_cut_file_ends_early_but_cleanly(film: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(film.read_bytes()[: film.stat().st_size * 2 // 3])
    made = camera(str(cut), pace=False)
    made.connect(0)
    seen = 0
    with pytest.raises(DeviceLost):
        for i in range(len(PTS_US) + 1):
            assert barcode.read(made.grab(i).image).number == i
            seen += 1
    assert 0 < seen < len(PTS_US)
    made.close()


# -- options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"source": None}, "source must be an index, a device, a URL or a file, found None"),
        ({"source": -1}, "source must be an index"),
        ({"source": True}, "source must be an index"),
        ({"source": ""}, "source must be an index"),
        ({"source": "ftp://host/x"}, "scheme 'ftp'; known are http, https, rtsp"),
        ({"source": "no-such-film.mp4"}, "there is no file no-such-film.mp4"),
        ({"source": 0, "pace": True}, "pace means nothing for a device"),
        ({"source": "http://h/", "gain": 3}, "gain means nothing for a url"),
        ({"source": 0, "fourcc": "MJPEG"}, 'fourcc must be four letters such as "MJPG"'),
        ({"source": 0, "exposure_s": 30}, "exposure_s must be a number from 0.0001 to 10"),
        ({"source": 0, "exposure": 30}, "no option 'exposure'; known options: source"),
        ({"source": 0, "frozen_s": -1}, "frozen_s must be a number from 0"),
    ],
)
def test_a_bad_option_is_one_line(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        camera(**options)
    assert says in str(caught.value) and "\n" not in str(caught.value)


# -- a V4L2 device. No kernel here has one, so cv2.VideoCapture is stood in for; what it answers follows OpenCV's
# cap_v4l.cpp: `set` may say yes and the device keep another value, an unknown control reads -1, and POS_MSEC is the
# time of the buffer.


class Device:
    """A UVC camera: YUYV at 640x480 or less at 30, above that only MJPG; steps of exposure; no focus."""

    def __init__(self, *, present: bool = True) -> None:
        self.present, self.released = present, 0
        self.fourcc, self.size, self.rate = "YUYV", [640.0, 480.0], 30.0
        self.controls = {
            cv2.CAP_PROP_AUTO_EXPOSURE: 3.0,
            cv2.CAP_PROP_EXPOSURE: 156.0,
            cv2.CAP_PROP_GAIN: 0.0,
            cv2.CAP_PROP_AUTO_WB: 1.0,
            cv2.CAP_PROP_WB_TEMPERATURE: 4600.0,
        }
        self.count, self.lost, self.broken = 0, False, set()

    def isOpened(self) -> bool:
        return self.present

    def getBackendName(self) -> str:
        return "V4L2"

    def set(self, control: int, value: float) -> bool:
        if control == cv2.CAP_PROP_FOURCC:
            found = int(value).to_bytes(4, "little").decode()
            self.fourcc = found if found in ("YUYV", "MJPG") else self.fourcc
        elif control in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT):
            self.size[control == cv2.CAP_PROP_FRAME_HEIGHT] = min(value, (1280, 720)[control == 4])
        elif control == cv2.CAP_PROP_FPS:
            self.rate = min(value, 30.0 if self.fourcc == "MJPG" or self.size[0] <= 640 else 10.0)
        elif control == cv2.CAP_PROP_EXPOSURE:
            if self.controls[cv2.CAP_PROP_AUTO_EXPOSURE] == 1:
                self.controls[control] = min(max(value, 3), 2047)
        elif control in self.controls:
            self.controls[control] = value if control != cv2.CAP_PROP_GAIN else min(value, 100)
        else:
            return False
        return True

    def get(self, control: int) -> float:
        known = {
            cv2.CAP_PROP_FRAME_WIDTH: self.size[0],
            cv2.CAP_PROP_FRAME_HEIGHT: self.size[1],
            cv2.CAP_PROP_FPS: self.rate,
            cv2.CAP_PROP_FOURCC: float(int.from_bytes(self.fourcc.encode(), "little")),
            cv2.CAP_PROP_POS_MSEC: 1000.0 + self.count * 33.3,
        }
        return {**known, **self.controls}.get(control, -1.0)

    def grab(self) -> bool:
        if self.lost:
            return False
        self.count += 1
        CLOCK.sleep_until(CLOCK.now_ns() + 5 * MILLISECOND)
        return True

    def retrieve(self) -> tuple[bool, np.ndarray | None]:
        if self.count in self.broken:
            return False, None
        if self.count == 66:
            raise cv2.error("OpenCV(5.0.0) :-1: error: (-5:Bad argument) in function 'x'\n> two lines\n")
        picture = barcode.paint(int(self.size[0]), int(self.size[1]), self.count, 0)
        return True, np.ascontiguousarray(picture[:, :, ::-1])

    def release(self) -> None:
        self.released += 1


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    from labctl.drivers import opencv_camera

    monkeypatch.setattr(opencv_camera, "open_video", lambda source, silent_s: made)
    return made


def test_a_devices_settings_are_set_and_read_back(device: Device) -> None:
    made = camera(0, fourcc="MJPG", width=1280, height=720, exposure_s=0.01, gain=20, white_balance_k=5000)
    made.connect(0)
    assert made.about()["settings"] == {
        "auto_exposure": 1.0,
        "auto_white_balance": 0.0,
        "exposure_s": 0.01,
        "gain": 20.0,
        "white_balance_k": 5000.0,
        "rate_hz": 30.0,
    }
    assert made.about()["format"] == "MJPG"
    made.close()


def test_what_is_not_said_stays_as_the_camera_has_it_and_is_written_down(device: Device) -> None:
    made = camera("/dev/v4l/by-id/usb-x")
    made.connect(0)
    settings = made.about()["settings"]
    assert (settings["auto_exposure"], settings["exposure_s"], settings["auto_white_balance"]) == (3.0, 0.0156, 1.0)
    made.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"width": 1920, "height": 1080}, "it gives pictures of 1280 x 720, the cell asks for 1920 x 1080"),
        ({"width": 1280, "height": 720}, '10 pictures per second at this size, the cell asks for 30; fourcc = "MJPG"'),
        ({"rate_hz": 60.0, "fourcc": "MJPG"}, "30 pictures per second at this size, the cell asks for 60"),
        ({"fourcc": "H264"}, "it gives pictures as YUYV, the cell asks for fourcc = 'H264'"),
        ({"exposure_s": 0.5}, "it did not take exposure_s = 0.5, it has 0.2047"),
        ({"gain": 300}, "it did not take gain = 300, it has 100"),
        ({"focus": 10}, "it has no focus to set; leave the option out"),
    ],
)
def test_a_device_that_gives_something_else_is_refused_in_one_line(
    device: Device, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(DeviceRefused) as caught:
        camera(0, **options).connect(0)
    assert says in str(caught.value) and str(caught.value).startswith("/dev/video0: ") and device.released


def test_a_devices_frames_carry_the_time_of_their_buffer(device: Device) -> None:
    made = camera(0)
    made.connect(0)
    found = frames(made, 5)
    assert all(frame.domain == "v4l2" for frame in found)
    for frame in found:
        assert frame.device_time == pytest.approx(1000 + barcode.read(frame.image).number * 33.3)
    made.close()


def test_a_picture_that_cannot_be_decoded_is_a_gap(device: Device) -> None:
    device.broken = {3, 4}
    made = camera(0)
    made.connect(0)
    found = frames(made, 4)
    assert [frame.number for frame in found] == [0, 1, 4, 5]
    made.close()


def test_an_unplugged_device_is_lost_and_may_come_back(device: Device) -> None:
    made = camera(0)
    made.connect(0)
    frames(made, 2)
    device.lost = True
    error, _ = until_lost(made)
    assert isinstance(error, DeviceLost) and "check its cable and power" in str(error)
    device.lost = False
    made.connect(0)
    assert frames(made, 2)
    made.close()


def test_opencvs_own_exception_is_a_loss_in_one_line(device: Device) -> None:
    device.count = 60
    made = camera(0)
    made.connect(0)
    error, _ = until_lost(made)
    assert isinstance(error, DeviceLost) and "Bad argument" in str(error) and "\n" not in str(error)
    made.close()


def test_a_device_that_is_not_there_says_what_is(device: Device) -> None:
    device.present = False
    with pytest.raises(DeviceLost, match="/dev/v4l/by-id/usb-x: there is no such device; found: no camera at all"):
        camera("/dev/v4l/by-id/usb-x").connect(0)


def test_a_real_missing_device_is_lost_and_opencv_keeps_quiet() -> None:
    code = """
from labctl.devices import load
from labctl.errors import DeviceLost
for source in (42, "http://127.0.0.1:9/x"):
    made = load("opencv_camera", {"source": source}, cell={}, fixture={})
    try:
        made.connect(0)
    except DeviceLost as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_a_devices_model_and_serial_are_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labctl.drivers.common import camera_source

    usb = tmp_path / "usb1" / "1-2"
    interface = usb / "1-2:1.0"
    folder = tmp_path / "class" / "video4"
    folder.mkdir(parents=True)
    interface.mkdir(parents=True)
    (folder / "name").write_text("HD Pro Webcam C920\n")
    (usb / "serial").write_text("ABC123\n")
    (folder / "device").symlink_to(interface)
    monkeypatch.setattr(camera_source, "SYSFS", tmp_path / "class")
    source = camera_source.parse_source(4, "x")
    assert camera_source.device_names(source) == ("HD Pro Webcam C920", "ABC123")
    assert camera_source.device_names(camera_source.parse_source(5, "x")) == ("unknown", None)
