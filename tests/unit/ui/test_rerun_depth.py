"""Depth in the viewer: some frames of the film, bit for bit what they were, at the time they were taken."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pytest

from labctl.store.video import DepthWriter, VideoWriter
from labctl.ui.rerun.episode_view import Depth, EpisodeView, Stream, Video, depth_place

GO = 7_000_000_000


def image(number: int) -> np.ndarray:
    slope = np.linspace(600, 1400, 64)[None] + np.linspace(0, 100, 48)[:, None]
    return (slope + 7 * number).astype(np.uint16)


@pytest.fixture
def depth(tmp_path: Path) -> Depth:
    """Two seconds at 10 Hz, without the third frame."""
    writer = DepthWriter(tmp_path / "wrist.depth.mkv", 64, 48, rate_hz=10.0)
    ms = [writer.write(image(n), n * 100_000) for n in range(20) if n != 3]
    writer.close()
    return Depth(tmp_path / "wrist.depth.mkv", GO + np.array(ms) * 1_000_000, np.array(ms), 0.001)


def test_two_frames_a_second_are_shown_bit_for_bit_at_their_own_time(depth: Depth) -> None:
    from labctl.ui.rerun.depth import STRIDE, thinned

    times, pictures = thinned(depth)
    numbers = [(t_ns - GO) // 100_000_000 for t_ns in times]
    assert numbers == [0, 4, 8, 12, 16]
    for number, picture in zip(numbers, pictures, strict=True):
        with av.open(io.BytesIO(picture)) as png:
            shown = next(png.decode(video=0)).to_ndarray(format="gray16le")
        assert np.array_equal(shown, image(number)[::STRIDE, ::STRIDE])


def test_a_frame_that_no_row_names_is_not_shown(depth: Depth) -> None:
    from labctl.ui.rerun.depth import thinned

    kept = Depth(depth.path, depth.times_ns[5:7], depth.ms[5:7], 0.001)
    assert thinned(kept)[0] == [int(depth.times_ns[5])]


@pytest.mark.parametrize(("scale_m", "meter"), [(0.001, 1000.0), (None, None)])
def test_depth_lies_beside_its_picture_and_says_how_long_a_metre_is(
    depth: Depth, tmp_path: Path, scale_m: float | None, meter: float | None
) -> None:
    from rerun.chunk import RrdReader

    from labctl.ui.rerun.episode import save_episode

    writer = VideoWriter(tmp_path / "wrist.mp4", 64, 48)
    writer.write(np.zeros((48, 64, 3), np.uint8), 0)
    writer.close()
    lens = {"width": 64, "height": 48, "fx": 60.0, "fy": 60.0, "cx": 31.5, "cy": 23.5}
    placed = {"base_from_camera": {"rotation": np.eye(3).tolist(), "translation_m": [0.1, 0.0, 0.5]}}
    about = {"intrinsics": lens, "extrinsics": placed}
    known = Depth(depth.path, depth.times_ns, depth.ms, scale_m)
    video = Video(tmp_path / "wrist.mp4", np.array([GO]), np.array([0]), about, known)
    assert depth_place("wrist", video) == "world/cameras/wrist_depth"
    state = Stream(("q.fr3_joint1",), np.array([GO]), np.zeros((1, 1)))
    save_episode(tmp_path / "e.rrd", EpisodeView("e-7k2m4q", GO, {"arm/state": state}, {"wrist": video}))
    found: dict[str, list[object]] = {}
    for chunk in RrdReader(tmp_path / "e.rrd").stream():
        if chunk.entity_path == "/world/cameras/wrist_depth":
            for name, values in chunk.to_record_batch().to_pydict().items():
                found[name] = found.get(name, []) + values
    assert len(found["EncodedDepthImage:blob"]) == 5
    assert found["Pinhole:resolution"] == [[[32.0, 24.0]]] and found["EncodedDepthImage:media_type"] == [["image/png"]]
    assert found.get("EncodedDepthImage:meter") == ([[meter]] if meter else None)
