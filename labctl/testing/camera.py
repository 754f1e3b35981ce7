"""What every camera does, whichever it is: the contract of `labctl.devices.Camera` as tests.

May not: know a driver. A test class names its camera by a fixture `rig` that gives a `CameraRig`.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Camera
from labctl.errors import DeviceLost
from labctl.testing.camera_rig import CLOCK, PATIENCE_NS, CameraRig

KEPT = {"model", "serial", "settings", "intrinsics", "extrinsics", "depth_scale_m"}
LENS = {"width", "height", "fx", "fy", "cx", "cy", "distortion", "coefficients"}

__all__ = ["CameraConformance", "CameraRig", "LosableCameraConformance"]


class OfACamera:
    """The fixture of each class of tests on a camera."""

    @pytest.fixture
    def rig(self) -> Iterator[CameraRig]:
        """A rig whose camera is not connected yet, closed afterwards. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `rig` that yields a CameraRig")


class CameraConformance(OfACamera):
    """What every camera does."""

    def test_it_is_a_camera_and_says_what_kind(self, rig: CameraRig) -> None:
        camera = rig.camera
        assert isinstance(camera, Camera)
        assert camera.kind == rig.kind
        assert (camera.width, camera.height, camera.rate_hz) == (rig.width, rig.height, rig.rate_hz)

    def test_a_camera_that_was_not_connected_is_a_mistake_of_the_callers_not_a_loss(self, rig: CameraRig) -> None:
        with pytest.raises(RuntimeError, match="not connected"):
            rig.camera.grab(0)

    def test_frames_are_rgb_bytes_of_the_promised_size_and_depth_is_of_the_same(self, rig: CameraRig) -> None:
        rig.connect()
        for frame in rig.frames(10):
            assert (frame.image.shape, frame.image.dtype) == ((rig.height, rig.width, 3), np.uint8)
            assert isinstance(frame.number, int) and isinstance(frame.host_ns, int)
            assert isinstance(frame.device_time, float)
            assert isinstance(frame.domain, str) and frame.domain
            if frame.depth is not None:
                assert (frame.depth.shape, frame.depth.dtype) == ((rig.height, rig.width), np.uint16)
                scale = rig.camera.about()["depth_scale_m"]
                assert scale is not None and 0 < scale < 0.1, "depth_scale_m: metres of one unit of depth"

    def test_numbers_and_times_rise_and_nothing_comes_from_the_future(self, rig: CameraRig) -> None:
        rig.connect()
        found = rig.frames(25)
        for before, after in pairwise(found):
            assert after.number > before.number
            assert after.device_time > before.device_time or (after.domain == "none" and math.isnan(after.device_time))
            assert after.host_ns > before.host_ns
        assert found[-1].host_ns <= rig.now()

    def test_frames_come_at_about_the_promised_rate(self, rig: CameraRig) -> None:
        rig.connect()
        found = rig.frames(40)[5:]
        numbers = found[-1].number - found[0].number
        rate_hz = numbers / (found[-1].host_ns - found[0].host_ns) * SECOND
        spans_ns = [(b.host_ns - a.host_ns) / (b.number - a.number) for a, b in pairwise(found)]
        most_hz = SECOND / np.median(spans_ns)  # its source shares this machine, which may stand still meanwhile
        assert rate_hz < 1.25 * rig.rate_hz and most_hz > 0.5 * rig.rate_hz, (rate_hz, most_hz)
        if found[0].domain == "none":
            return
        device_hz = numbers / (found[-1].device_time - found[0].device_time) * 1000
        assert 0.8 * rig.rate_hz < device_hz < 1.25 * rig.rate_hz

    def test_a_frame_belongs_to_the_caller(self, rig: CameraRig) -> None:
        rig.connect()
        first = rig.frames(1)[0]
        kept, depth = first.image.copy(), None if first.depth is None else first.depth.copy()
        later = rig.frames(8)
        assert np.array_equal(first.image, kept)
        if depth is not None:
            assert first.depth is not None and np.array_equal(first.depth, depth)
        images = [frame.image for frame in (first, *later)]
        assert not any(np.shares_memory(a, b) for i, a in enumerate(images) for b in images[:i])

    def test_connecting_and_closing_twice_is_harmless(self, rig: CameraRig) -> None:
        rig.connect()
        before = rig.frames(2)[-1]
        rig.connect()
        assert rig.frames(1)[0].number > before.number
        rig.camera.close()
        rig.camera.close()
        with pytest.raises(RuntimeError, match="not connected"):
            rig.camera.grab(rig.now())

    def test_after_close_it_connects_again(self, rig: CameraRig) -> None:
        for _ in range(3):
            rig.connect()
            assert len(rig.frames(3)) == 3
            rig.camera.close()

    def test_closing_what_was_never_connected_is_harmless(self, rig: CameraRig) -> None:
        rig.camera.close()

    def test_what_is_to_be_known_beside_the_pictures_is_complete_and_plain_json(self, rig: CameraRig) -> None:
        rig.connect()
        about = rig.camera.about()
        assert json.loads(json.dumps(about, allow_nan=False)) == about
        assert set(about) >= KEPT
        assert isinstance(about["model"], str) and isinstance(about["settings"], dict)
        lens = about["intrinsics"]
        if lens is not None:
            assert set(lens) == LENS and (lens["width"], lens["height"]) == (rig.width, rig.height)
            assert 0 < lens["cx"] < rig.width and 0 < lens["cy"] < rig.height and lens["fx"] > 0
        for name, between in (about["extrinsics"] or {}).items():
            turn = np.array(between["rotation"])
            assert "_from_" in name and len(between["translation_m"]) == 3
            assert np.allclose(turn @ turn.T, np.eye(3), atol=1e-6) and np.linalg.det(turn) == pytest.approx(1)

    def test_it_bears_the_robots_observations(self, rig: CameraRig) -> None:
        rig.connect()
        rig.camera.sense({})
        assert rig.frames(1)

    def test_connecting_again_and_again_leaves_no_thread_behind(self, rig: CameraRig) -> None:
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


class LosableCameraConformance(OfACamera):
    """What every camera does that a test can have lost: its rig has `lose`, and `mend` to undo it."""

    def test_a_loss_is_a_DeviceLost_each_time_and_it_can_be_connected_again(self, rig: CameraRig) -> None:
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

    def test_a_lost_camera_can_be_closed(self, rig: CameraRig) -> None:
        assert rig.lose is not None
        rig.connect()
        rig.lose()
        rig.until_lost()
        rig.camera.close()
        rig.camera.close()
        rig.mend()
        rig.connect()
        assert rig.frames(1)
