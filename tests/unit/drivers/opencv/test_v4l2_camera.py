"""The OpenCV driver on a V4L2 device, played by a stand-in that does as the kernel does."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cameras import barcode
from support.cameras.camera_grabs import CLOCK, frames, until_lost

from labctl.clock import MILLISECOND
from labctl.devices import Camera, load
from labctl.errors import DeviceLost, DeviceRefused
from labctl.testing.given import SIMULATED

cv2 = pytest.importorskip("cv2")

pytestmark = pytest.mark.real_time

SIZE = {"width": 320, "height": 240, "rate_hz": 30.0}


def camera(source: Any, **options: Any) -> Camera:
    return load("opencv_camera", {**SIZE, "source": source, **options}, **SIMULATED)


# No kernel here has a V4L2 device, so cv2.VideoCapture is stood in for; what it answers follows OpenCV's cap_v4l.cpp:
# `set` may say yes and the device keep another value, an unknown control reads -1, and POS_MSEC is the time of the
# buffer.


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
        self.count, self.lost, self.broken, self.last = 0, False, set(), math.inf

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
        if self.lost or self.count >= self.last:
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
    from labctl.drivers.opencv import camera as opencv_camera

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
    assert all((frame.domain, frame.counted) == ("v4l2", False) for frame in found), "it has a clock and no count"
    for frame in found:
        assert frame.device_time == pytest.approx(1000 + barcode.read(frame.image).number * 33.3)
    made.close()


def test_a_picture_that_cannot_be_decoded_is_a_gap(device: Device) -> None:
    device.broken, device.last = {3, 4}, 6  # no more than are kept, however late they are taken
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
    error = until_lost(made)
    assert isinstance(error, DeviceLost) and "check its cable and power" in str(error)
    device.lost = False
    made.connect(0)
    assert frames(made, 2)
    made.close()


def test_opencvs_own_exception_is_a_loss_in_one_line(device: Device) -> None:
    device.count = 60
    made = camera(0)
    made.connect(0)
    error = until_lost(made)
    assert isinstance(error, DeviceLost) and "Bad argument" in str(error) and "\n" not in str(error)
    made.close()


def test_a_device_that_is_not_there_says_what_is(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.present = False
    monkeypatch.setattr("labctl.drivers.opencv.source.BY_ID", tmp_path)
    with pytest.raises(DeviceLost, match="/dev/v4l/by-id/usb-x: there is no such device; found: no camera at all"):
        camera("/dev/v4l/by-id/usb-x").connect(0)


def test_a_real_missing_device_is_lost_and_opencv_keeps_quiet() -> None:
    code = """
from labctl.devices import load
from labctl.errors import DeviceLost
from labctl.testing.given import SIMULATED
for source in (42, "http://127.0.0.1:9/x"):
    options = {"source": source, "width": 64, "height": 48, "rate_hz": 10.0}
    made = load("opencv_camera", options, **SIMULATED)
    try:
        made.connect(0)
    except DeviceLost as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_a_devices_model_and_serial_are_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labctl.drivers.opencv import source as camera_source

    usb = tmp_path / "usb1" / "1-2"
    interface = usb / "1-2:1.0"
    folder = tmp_path / "class" / "video4"
    folder.mkdir(parents=True)
    interface.mkdir(parents=True)
    (folder / "name").write_text("HD Pro Webcam C920\n")
    (usb / "serial").write_text("ABC123\n")
    (folder / "device").symlink_to(interface)
    monkeypatch.setattr(camera_source, "SYSFS", tmp_path / "class")
    source = camera_source.parse_source(4)
    assert camera_source.device_names(source) == ("HD Pro Webcam C920", "ABC123")
    assert camera_source.device_names(camera_source.parse_source(5)) == ("unknown", None)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("rtsp://lab:secret@camera:554/stream", "rtsp://camera:554/stream"),
        ("http://camera/video?channel=2&password=secret", "http://camera/video?channel=…&password=…"),
        ("http://camera/video.mjpg", "http://camera/video.mjpg"),
    ],
)
def test_what_is_shown_of_an_address_has_no_password_wherever_it_stood(given: str, shown: str) -> None:
    from labctl.drivers.opencv.source import parse_source

    source = parse_source(given)
    assert (source.opened, source.shown) == (given, shown)
