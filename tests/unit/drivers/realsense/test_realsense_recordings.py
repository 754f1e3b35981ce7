"""The RealSense driver on recordings made by librealsense's own recorder: every number, time and pixel comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cameras import barcode

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Camera, load
from labctl.errors import DeviceLost, DeviceRefused
from labctl.testing.given import SIMULATED

pytest.importorskip("labctl.drivers.realsense.librealsense")
from support.cameras.alignment import check_alignment
from support.cameras.software_realsense import CLOCK, SoftRealSense

from labctl.drivers.realsense.camera import Recorded
from labctl.drivers.realsense.device import FORMATS, describe
from labctl.drivers.realsense.librealsense import rs

pytestmark = pytest.mark.real_time

SIZE = {"width": 320, "height": 240, "rate_hz": 30.0}
ALONE = {10: "depth", 11: "depth", 20: "color"}  # of the golden recording: which stream gives nothing at which number
NUMBERS = range(1, 31)


def camera(**options: Any) -> Camera:
    return load("realsense", {**SIZE, **options}, **SIMULATED)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SoftRealSense]:
    """A recording by librealsense's own recorder, and the device it is of."""
    soft = SoftRealSense("rec-1")
    return soft.record(tmp_path_factory.mktemp("golden") / "golden.db3", NUMBERS, skip=ALONE), soft


def test_a_recording_gives_back_every_number_time_and_pixel(golden: tuple[Path, SoftRealSense]) -> None:
    path, soft = golden
    made = camera(file=str(path), pace=False)
    made.connect(0)
    found = []
    with pytest.raises(DeviceLost, match=r"golden\.db3: it has been played to its end"):
        while True:
            found.append(made.grab(len(found)))
    assert [frame.number for frame in found] == [n for n in NUMBERS if ALONE.get(n) != "color"]
    for frame in found:
        assert np.array_equal(frame.image, soft.picture(frame.number))
        assert frame.device_time == pytest.approx(frame.number * 1000 / 30, abs=1e-4)
        assert frame.domain == "global_time"
        assert (frame.depth is None) == (ALONE.get(frame.number) == "depth")
        if frame.depth is not None:
            check_alignment(frame)
    assert made.about()["counts"] == {"depth_without_picture": 1, "picture_without_depth": 2}
    assert path.stat().st_size < 1_000_000
    made.close()


def test_a_recording_knows_its_camera(golden: tuple[Path, SoftRealSense], soft: SoftRealSense) -> None:
    live, made = camera(), camera(file=str(golden[0]))
    live.connect(CLOCK.now_ns())
    made.connect(0)
    wanted, found = live.about(), made.about()
    for key in ("model", "firmware", "usb", "intrinsics", "extrinsics", "depth_scale_m", "depth_intrinsics"):
        assert found[key] == wanted[key], key
    assert (found["serial"], made.kind) == ("rec-1", "replay")
    live.close()
    made.close()


def test_a_recording_plays_the_same_however_often_and_is_let_go_of_anywhere(golden: tuple[Path, SoftRealSense]) -> None:
    def play(count: int) -> list[tuple[int, bool]]:
        made.connect(0)
        found = [made.grab(i) for i in range(count)]
        made.close()
        return [(frame.number, frame.depth is None) for frame in found]

    made = camera(file=str(golden[0]), pace=False)
    whole = play(len(NUMBERS) - 1)
    assert [play(count) for count in (3, 29, 1, 17, 29)] == [whole[:count] for count in (3, 29, 1, 17, 29)]


class Watched:
    """Stands before an object of librealsense and writes down what is called on it."""

    def __init__(self, real: Any, name: str, calls: list[str]) -> None:
        self._real, self._name, self._calls = real, name, calls

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._real, attribute)

        def call(*values: Any) -> Any:
            self._calls.append(f"{self._name}.{attribute}")
            return found(*values)

        return call


def test_the_thread_that_reads_a_recording_stands_while_its_sensors_close_and_when_its_device_goes(
    golden: tuple[Path, SoftRealSense],
) -> None:
    """Or it works on what is gone, and the process dies: see tests/faults/jitter.c, which shows it."""
    calls: list[str] = []
    made = Recorded(str(golden[0]), (320, 240), 30.0, list(FORMATS))
    made.open()
    made.read()
    made._device = Watched(made._device, "device", calls)
    made._sensors = [Watched(sensor, "sensor", calls) for sensor in made._sensors]
    made.close()
    assert calls == ["device.pause", *["sensor.stop", "sensor.close"] * 2, "device.pause"]


def test_what_is_known_of_a_recordings_camera_is_read_before_the_recording_plays(
    golden: tuple[Path, SoftRealSense], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that reads the file replaces options: one that was read meanwhile was read from memory given back."""
    found = []

    def looked(device: Any, profiles: Any) -> Any:
        found.append(device.current_status())
        return describe(device, profiles)

    monkeypatch.setattr("labctl.drivers.realsense.camera.describe", looked)
    made = camera(file=str(golden[0]))
    made.connect(0)
    settings = made.about()["settings"]
    made.close()
    assert found == [rs.playback_status.paused]
    assert settings["Stereo Module"]["laser_power"] == 150.0 and settings["RGB Camera"]["white_balance"] == 4600.0


def test_a_process_that_ends_while_a_recording_plays_ends_well(golden: tuple[Path, SoftRealSense]) -> None:
    plays = (
        "import sys; from labctl.drivers.realsense.camera import Recorded; "
        "from labctl.drivers.realsense.device import FORMATS; "
        "made = Recorded(sys.argv[1], (320, 240), 30.0, list(FORMATS)); made.open(); made.read()"
    )
    done = subprocess.run([sys.executable, "-c", plays, str(golden[0])], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_recording_plays_at_its_own_times_by_the_callers_clock(golden: tuple[Path, SoftRealSense]) -> None:
    made = camera(file=str(golden[0]))
    made.connect(SECOND)
    found = [made.grab(SECOND + ms * MILLISECOND) for ms in range(0, 500, 10)]
    found = [frame for frame in found if frame is not None]
    assert [frame.number for frame in found] == list(range(1, 16))
    assert [round((frame.host_ns - SECOND) / 1e6, 3) for frame in found] == [
        round((number - 1) * 1000 / 30, 3) for number in range(1, 16)
    ]
    made.close()


@pytest.mark.parametrize("late_ms", [-12.0, 12.0])
@pytest.mark.parametrize("color_first", [False, True])
def test_a_picture_finds_its_depth_whichever_was_recorded_first(
    tmp_path: Path, late_ms: float, color_first: bool
) -> None:
    path = SoftRealSense().record(tmp_path / "x.db3", range(1, 20), late_ms=late_ms, color_first=color_first)
    made = camera(file=str(path), pace=False)
    made.connect(0)
    found = [made.grab(i) for i in range(19)]
    assert [frame.number for frame in found] == list(range(1, 20))
    for frame in found:
        check_alignment(frame)
    made.close()


def test_a_recording_whose_depth_never_came_is_pictures_alone(tmp_path: Path) -> None:
    numbers = range(1, 10)
    path = SoftRealSense().record(tmp_path / "x.db3", numbers, skip=dict.fromkeys(numbers, "depth"))
    made = camera(file=str(path), pace=False)
    made.connect(0)
    assert [(frame.number, frame.depth) for frame in (made.grab(i) for i in numbers)] == [(n, None) for n in numbers]
    made.close()


def test_what_is_no_recording_or_lacks_what_is_asked_for_is_refused(
    golden: tuple[Path, SoftRealSense], tmp_path: Path
) -> None:
    text = tmp_path / "notes.db3"
    text.write_text("no recording")
    with pytest.raises(DeviceRefused, match=r"notes\.db3: this is not a recording that librealsense can play"):
        camera(file=str(text)).connect(0)
    with pytest.raises(DeviceRefused, match=r"no color of 640 x 480 at 30 .* it gives 320 x 240 at 30"):
        camera(file=str(golden[0]), width=640, height=480).connect(0)
    bare = SoftRealSense(depth=False).record(tmp_path / "bare.db3", range(1, 4))
    with pytest.raises(DeviceRefused, match="it gives no depth"):
        camera(file=str(bare)).connect(0)
    made = camera(file=str(bare), depth=False, pace=False)
    made.connect(0)
    assert barcode.read(made.grab(0).image).number == 1
    made.close()
