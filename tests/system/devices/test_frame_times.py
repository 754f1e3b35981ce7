"""Each recorded frame stands at the time it was taken: pictures that say when they were made, read back and sought.

What is true: in simulated time the picture's own word, to the nanosecond. Of a real stream, that a frame is stamped
when it arrives, which is after it was sent: the delay is the camera's `latency_s`, measured by doctor and taken off
when frames are placed. What is held here against the source's word is that no frame has another one's time, and that
on a machine with nothing else to do the delay of most is steady to a millisecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from support.cameras import barcode
from support.cameras.camera_rig import CameraNodeRig
from support.cameras.coded_camera import CodedCamera, mark_of
from support.cameras.mjpeg import MjpegServer
from support.machine.machine_halts import Standstill
from support.machine.machine_load import Neighbours

from labctl.clock import MILLISECOND
from labctl.core.recorded.projection import capture_ns
from labctl.devices import load
from labctl.errors import DeviceLost
from labctl.nodes.frame_gaps import NOT_COME
from labctl.store.video import read_depth, read_frames
from labctl.testing.given import SIMULATED

QUIET_CORES, QUIET_S = 0.15, 0.1
CODED = {"width": 320, "height": 240, "rate_hz": 30.0, "jitter_ms": 9.0, "seed": 7}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[CameraNodeRig]:
    made = CameraNodeRig(tmp_path, CodedCamera(CODED), live=False)
    yield made
    made.end()


def sought(path: Path, pts_us: int) -> tuple[int, np.ndarray]:
    """The frame at a time of a video as a player finds it: back to a keyframe, then on."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        container.seek(round(pts_us / 1e6 / stream.time_base), stream=stream, backward=True)
        for frame in container.decode(stream):
            at_us = round(frame.pts * stream.time_base * 1_000_000)
            if at_us >= pts_us:
                return at_us, frame.to_ndarray(format="rgb24")
    raise AssertionError(f"no frame at {pts_us} us")


def test_in_simulated_time_every_frame_has_the_time_its_picture_says(rig: CameraNodeRig) -> None:
    rows = rig.film(20.0)
    marks = [mark_of(image) for _, image in read_frames(rig.path())]
    assert len(marks) == len(rows) > 590 and None not in marks
    assert rows[:, 0].tolist() == [mark.number for mark in marks]
    assert rows[:, 2].tolist() == [mark.t_ns for mark in marks], "to the nanosecond"
    first = marks[0].t_ns
    assert all(abs(pts_us * 1000 - (mark.t_ns - first)) < 1000 for pts_us, mark in zip(rows[:, 3], marks, strict=True))


def test_seeking_finds_the_frame_of_every_time(rig: CameraNodeRig) -> None:
    rows = rig.film(20.0)
    for row in np.random.default_rng(3).permutation(rows)[:100]:
        at_us, image = sought(rig.path(), int(row[3]))
        mark = mark_of(image)
        assert mark is not None
        assert (at_us, mark.number, mark.t_ns) == (row[3], row[0], row[2])


@pytest.mark.thorough
@pytest.mark.real_time
@pytest.mark.alone
def test_frames_of_a_live_stream_are_stamped_when_they_arrive_and_never_take_each_others_time(tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    size = {"width": 640, "height": 480, "rate_hz": 30.0}
    with MjpegServer(**size) as server:
        camera = load("opencv_camera", {**size, "source": server.url}, **SIMULATED)
        rig = CameraNodeRig(tmp_path, camera, live=True)
        with Standstill() as machine:
            others = Neighbours(machine.pids)
            rows = rig.film(6.0)
            taken = others.cores()
        rig.end()
    gaps = [m.body for m in rig.said if m.kind == "gap" and m.body["why"] != NOT_COME]  # in time: sent late
    marks = [barcode.read(image) for _, image in read_frames(rig.path())]
    assert len(rows) == len(marks) >= 100 and None not in marks
    numbers = np.array([mark.number for mark in marks])
    steps = np.diff(numbers)
    assert (steps >= 1).all(), "once and in order"
    assert (steps == 1).all() == (gaps == []), "every picture that was sent, or a gap says that some are missing"
    delay_ms = (rows[:, 2] - [server.sent_ns[number] for number in numbers]) / MILLISECOND
    steady_ms = np.abs(delay_ms - np.median(delay_ms))
    within = float((steady_ms < 1.0).mean())
    late = f"{np.median(delay_ms):.2f} ms (p95 {np.percentile(delay_ms, 95):.2f}, worst {delay_ms.max():.2f})"
    print(f"\n{len(rows)} frames received {late} after they were sent, {100 * within:.0f} % within 1 ms of the median;")
    print(f"others used {taken:.2f} cores; the machine itself stood still {machine.text}")
    assert (delay_ms > 0).all(), "no frame is older than its sending"
    assert np.median(delay_ms) < 1e3 / size["rate_hz"], "nor is it the next one's"
    for row in rows[::20]:
        at_us, image = sought(rig.path(), int(row[3]))
        mark = barcode.read(image)
        assert mark is not None and at_us == row[3] and row[2] >= server.sent_ns[mark.number]
    if taken < QUIET_CORES and machine.seconds < QUIET_S:
        placed = capture_ns(rows[:, 2], float(np.median(delay_ms)) / 1e3)
        truth = np.array([server.sent_ns[number] for number in numbers])
        assert np.median(np.abs(placed - truth)) < MILLISECOND


def test_depth_of_a_realsense_comes_back_bit_for_bit_under_its_own_frames(tmp_path: Path) -> None:
    """A recording by librealsense's own recorder, played by the driver into a film; two came without depth."""
    pytest.importorskip("labctl.drivers.realsense.librealsense")
    from support.cameras.software_realsense import SoftRealSense

    path = SoftRealSense("rec-1").record(tmp_path / "r.db3", range(1, 61), skip={7: "depth", 8: "depth"})
    size = {"width": 320, "height": 240, "rate_hz": 30.0, "file": str(path)}
    straight = load("realsense", {**size, "pace": False}, **SIMULATED)
    straight.connect(0)
    expected = {}
    with pytest.raises(DeviceLost):  # at the end of the recording
        while True:
            frame = straight.grab(0)
            assert frame is not None
            expected[frame.number] = frame.depth
    straight.close()
    rig = CameraNodeRig(tmp_path, load("realsense", size, **SIMULATED), live=False)
    rows = rig.film(1.5)
    rig.end()
    depth = dict(read_depth(rig.path().with_suffix(".depth.mkv")))
    assert len(rows) >= 40 and (rows[:, 5] >= 0).sum() == len(depth)
    for number, depth_ms in rows[:, [0, 5]]:
        found = depth.get(1000 * depth_ms) if depth_ms >= 0 else None
        assert (found is None) == (expected[number] is None) == (number in (7, 8))
        assert found is None or np.array_equal(found, expected[number])
    about = json.loads(rig.path().with_suffix(".json").read_text())
    assert about["depth"]["depth_scale_m"] == about["about"]["depth_scale_m"] > 0
    assert about["clock_domains"] == ["global_time"] and about["about"]["serial"] == "rec-1"
