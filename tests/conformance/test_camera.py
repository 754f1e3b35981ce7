"""What every camera does, whichever it is: the contract of labctl.devices.Camera.

Simulated ones and recordings go by a clock that the test turns; live ones by the host's. The RealSense ones are
librealsense's own: a pipeline fed by a software_device, and a recording by its recorder. The OpenCV ones are FFmpeg's:
a stream from loopback and a file.
"""

from __future__ import annotations

import json
import math
import threading
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mjpeg import MjpegServer
from support.recorded_videos import write_video
from support.software_realsense import SoftRealSense

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import Camera, Frame, load
from labctl.errors import DeviceError, DeviceLost

pytestmark = pytest.mark.real_time

ROOT = Path(__file__).parents[2]
CELL = tomllib.loads((ROOT / "hw_configs" / "sim_fr3.toml").read_text())
GIVEN = {"cell": CELL, "fixture": tomllib.loads((ROOT / "fixtures" / "two_totes.toml").read_text())}
CLOCK = MonotonicClock()
STEP_NS = 5 * MILLISECOND
PATIENCE_NS = 20 * SECOND
KEPT = {"model", "serial", "settings", "intrinsics", "extrinsics", "depth_scale_m"}
LENS = {"width", "height", "fx", "fy", "cx", "cy", "distortion", "coefficients"}


class Rig:
    """A camera with its clock. `lose` makes it lost, `mend` undoes what `lose` did; None where it cannot be lost."""

    def __init__(self, driver: str, rate_hz: float, options: dict[str, Any], *, live: bool) -> None:
        size = {"width": 320, "height": 240, "rate_hz": rate_hz}
        self.camera: Camera = load(driver, {**options, **size}, **GIVEN)
        self.rate_hz, self.live = rate_hz, live
        self.lose: Callable[[], object] | None = None
        self.mend: Callable[[], object] = lambda: None
        self._now_ns = SECOND

    def now(self) -> int:
        """The time; a turned clock goes on with each look."""
        self._now_ns += STEP_NS
        return CLOCK.now_ns() if self.live else self._now_ns

    def connect(self) -> None:
        self.camera.connect(self.now())

    def grab(self) -> Frame | None:
        """One look. It returns soon, whatever the camera does."""
        began_ns = CLOCK.now_ns()
        try:
            return self.camera.grab(self.now())
        finally:
            assert CLOCK.now_ns() - began_ns < SECOND

    def frames(self, count: int) -> list[Frame]:
        found: list[Frame] = []
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while len(found) < count:
            assert CLOCK.now_ns() < over_ns, f"only {len(found)} frames came"
            frame = self.grab()
            found += [frame] if frame is not None else []
        return found

    def until_lost(self) -> DeviceError:
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while CLOCK.now_ns() < over_ns:
            try:
                self.grab()
            except DeviceError as error:
                return error
        raise AssertionError("it was not lost")


def sim(view: str) -> Iterator[Rig]:
    yield Rig("sim_camera", 10.0, {"view": view}, live=False)


def opencv_url(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with MjpegServer(320, 240, 30.0) as server:
        rig = Rig("opencv_camera", 30.0, {"source": server.url}, live=True)
        rig.lose, rig.mend = (lambda: setattr(server, "fault", "close")), (lambda: setattr(server, "fault", ""))
        yield rig


def opencv_file(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Rig]:
    path = write_video(folder / "film.mp4", [i * 100_000 // 3 for i in range(60)])
    rig = Rig("opencv_camera", 30.0, {"source": str(path)}, live=False)
    rig.lose = lambda: None  # its end comes by itself
    yield rig


def realsense_live(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with SoftRealSense() as soft:
        patch.setattr("labctl.drivers.realsense.camera.connected_devices", lambda: [soft.device])
        rig = Rig("realsense", 30.0, {}, live=True)
        rig.lose, rig.mend = (lambda: setattr(soft, "fault", "silent")), (lambda: setattr(soft, "fault", ""))
        yield rig


def realsense_replay(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Rig]:
    path = SoftRealSense().record(folder / "golden.db3", range(1, 61))
    rig = Rig("realsense", 30.0, {"file": str(path)}, live=False)
    rig.lose = lambda: None
    yield rig


RIGS: dict[str, Callable[[Path, pytest.MonkeyPatch], Iterator[Rig]]] = {
    "sim-over_shoulder": lambda folder, patch: sim("over_shoulder"),
    "sim-wrist": lambda folder, patch: sim("wrist"),
    "opencv-url": opencv_url,
    "opencv-file": opencv_file,
    "realsense-live": realsense_live,
    "realsense-replay": realsense_replay,
}
LOSABLE = [name for name in RIGS if not name.startswith("sim")]


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    making = RIGS[request.param](tmp_path, monkeypatch)
    made = next(making)
    try:
        yield made
    finally:
        made.camera.close()
        list(making)


every_camera = pytest.mark.parametrize("rig", list(RIGS), indirect=True)
every_losable = pytest.mark.parametrize("rig", LOSABLE, indirect=True)


@every_camera
def test_it_is_a_camera_and_says_what_kind(rig: Rig, request: pytest.FixtureRequest) -> None:
    camera = rig.camera
    assert isinstance(camera, Camera)
    name = request.node.callspec.id
    wanted = "sim" if "sim" in name else "replay" if "file" in name or "replay" in name else "real"
    assert camera.kind == wanted
    assert (camera.width, camera.height, camera.rate_hz) == (320, 240, rig.rate_hz)


@every_camera
def test_a_camera_that_was_not_connected_is_a_mistake_of_the_callers_not_a_loss(rig: Rig) -> None:
    with pytest.raises(RuntimeError, match="not connected"):
        rig.camera.grab(0)


@every_camera
def test_frames_are_rgb_bytes_of_the_promised_size_and_depth_is_of_the_same(rig: Rig) -> None:
    rig.connect()
    for frame in rig.frames(10):
        assert (frame.image.shape, frame.image.dtype) == ((240, 320, 3), np.uint8)
        assert isinstance(frame.number, int) and isinstance(frame.host_ns, int) and isinstance(frame.device_time, float)
        assert isinstance(frame.domain, str) and frame.domain
        if frame.depth is not None:
            assert (frame.depth.shape, frame.depth.dtype) == ((240, 320), np.uint16)
            assert rig.camera.about()["depth_scale_m"] == 0.001


@every_camera
def test_numbers_and_times_rise_and_nothing_comes_from_the_future(rig: Rig) -> None:
    rig.connect()
    found = rig.frames(25)
    for before, after in pairwise(found):
        assert after.number > before.number
        assert after.device_time > before.device_time or (after.domain == "none" and math.isnan(after.device_time))
        assert after.host_ns > before.host_ns
    assert found[-1].host_ns <= rig.now()


@every_camera
def test_frames_come_at_about_the_promised_rate(rig: Rig) -> None:
    rig.connect()
    found = rig.frames(40)[5:]
    numbers = found[-1].number - found[0].number
    rate_hz = numbers / (found[-1].host_ns - found[0].host_ns) * SECOND
    assert 0.5 * rig.rate_hz < rate_hz < 1.25 * rig.rate_hz, "its source shares this machine, and may be late"
    if found[0].domain == "none":
        return
    device_hz = numbers / (found[-1].device_time - found[0].device_time) * 1000
    assert 0.8 * rig.rate_hz < device_hz < 1.25 * rig.rate_hz


@every_camera
def test_a_frame_belongs_to_the_caller(rig: Rig) -> None:
    rig.connect()
    first = rig.frames(1)[0]
    kept, depth = first.image.copy(), None if first.depth is None else first.depth.copy()
    later = rig.frames(8)
    assert np.array_equal(first.image, kept)
    assert depth is None or np.array_equal(first.depth, depth)
    images = [frame.image for frame in (first, *later)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(images) for b in images[:i])


@every_camera
def test_connecting_and_closing_twice_is_harmless(rig: Rig) -> None:
    rig.connect()
    before = rig.frames(2)[-1]
    rig.connect()
    assert rig.frames(1)[0].number > before.number
    rig.camera.close()
    rig.camera.close()
    with pytest.raises(RuntimeError, match="not connected"):
        rig.camera.grab(rig.now())


@every_camera
def test_after_close_it_connects_again(rig: Rig) -> None:
    for _ in range(3):
        rig.connect()
        assert len(rig.frames(3)) == 3
        rig.camera.close()


@every_camera
def test_closing_what_was_never_connected_is_harmless(rig: Rig) -> None:
    rig.camera.close()


@every_camera
def test_what_is_to_be_known_beside_the_pictures_is_complete_and_plain_json(rig: Rig) -> None:
    rig.connect()
    about = rig.camera.about()
    assert json.loads(json.dumps(about, allow_nan=False)) == about
    assert set(about) >= KEPT
    assert isinstance(about["model"], str) and isinstance(about["settings"], dict)
    lens = about["intrinsics"]
    if lens is not None:
        assert set(lens) == LENS and (lens["width"], lens["height"]) == (320, 240)
        assert 0 < lens["cx"] < 320 and 0 < lens["cy"] < 240 and lens["fx"] > 0
    for name, between in (about["extrinsics"] or {}).items():
        turn = np.array(between["rotation"])
        assert "_from_" in name and len(between["translation_m"]) == 3
        assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-6) and np.linalg.det(turn) == pytest.approx(1)


@every_camera
def test_it_bears_the_arms_observations(rig: Rig) -> None:
    rig.connect()
    rig.camera.sense({})
    assert rig.frames(1)


@every_losable
def test_a_loss_is_a_DeviceLost_each_time_and_it_can_be_connected_again(rig: Rig) -> None:
    assert rig.lose is not None
    rig.connect()
    rig.frames(3)
    rig.lose()
    error = rig.until_lost()
    assert type(error) is DeviceLost and str(error) and "\n" not in str(error)
    for _ in range(3):
        with pytest.raises(DeviceLost):
            rig.grab()
    rig.mend()
    rig.connect()
    assert len(rig.frames(3)) == 3


@every_losable
def test_a_lost_camera_can_be_closed(rig: Rig) -> None:
    assert rig.lose is not None
    rig.connect()
    rig.lose()
    rig.until_lost()
    rig.camera.close()
    rig.camera.close()
    rig.mend()
    rig.connect()
    assert rig.frames(1)


@every_camera
def test_connecting_again_and_again_leaves_no_thread_behind(rig: Rig) -> None:
    def cycle() -> None:
        rig.connect()
        rig.frames(1)
        rig.camera.close()

    def threads() -> tuple[int, int]:
        """Of Python and of this process; the loopback server's own end when it notices that a client has gone."""
        names = [thread.name for thread in threading.enumerate() if "process_request" not in thread.name]
        return len(names), len(list(Path("/proc/self/task").iterdir()))

    cycle()  # libraries keep some threads of their own
    cycle()
    python, system = threads()
    for _ in range(4):
        cycle()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("camera-")]
    over_ns = CLOCK.now_ns() + PATIENCE_NS
    while (now := threads())[0] > python or now[1] > system:
        assert CLOCK.now_ns() < over_ns, f"{python} and {system} threads became {now}"
        CLOCK.sleep_until(CLOCK.now_ns() + 10 * MILLISECOND)
