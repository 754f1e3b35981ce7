"""A retimed video shows at k / fps the picture that was chosen for frame k, from any point on."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from support.cameras.barcode import paint, read

from labctl.errors import BrokenRecord, StorageError
from labctl.exports.retime import picture_size, retime
from labctl.store.video import VideoWriter

PLACES = [0, 101_000, 199_000, 302_500, 398_000, 500_001, 601_000, 700_000]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    writer = VideoWriter(tmp_path / "v.mp4", 128, 96)
    for number, pts_us in enumerate(PLACES):
        writer.write(paint(128, 96, number, pts_us), pts_us)
    writer.close()
    return tmp_path / "v.mp4"


def seen(path: Path) -> list[tuple[Fraction, int]]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        marks = [
            (frame.pts * stream.time_base, read(frame.to_ndarray(format="rgb24"))) for frame in container.decode(stream)
        ]
    return [(time, mark.number) for time, mark in marks if mark]


@pytest.mark.parametrize("fps", [7, 10, 30])
def test_each_frame_is_the_chosen_picture_at_its_place(recorded: Path, tmp_path: Path, fps: int) -> None:
    chosen = [0, 1, 1, 1, 2, 4, 7, 7]
    retime(recorded, [PLACES[i] for i in chosen], tmp_path / "out.mp4", fps)
    assert seen(tmp_path / "out.mp4") == [(Fraction(k, fps), number) for k, number in enumerate(chosen)]
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.codec_context.codec.name, stream.pix_fmt) == (fps, "h264", "yuv420p")
        assert picture_size(tmp_path / "out.mp4") == (96, 128)


def test_any_frame_is_at_most_one_from_a_keyframe(recorded: Path, tmp_path: Path) -> None:
    retime(recorded, PLACES, tmp_path / "out.mp4", 10)
    with av.open(str(tmp_path / "out.mp4")) as container:
        keyframes = [packet.is_keyframe for packet in container.demux(video=0) if packet.size]
    assert all(a or b for a, b in pairwise(keyframes)) and keyframes[0]
    data = (tmp_path / "out.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat"), "it can be read from its beginning on"


def test_levels_are_those_of_the_pictures(recorded: Path, tmp_path: Path) -> None:
    levels = retime(recorded, PLACES, tmp_path / "out.mp4", 10)
    wanted = np.mean([paint(128, 96, number, place) / 255 for number, place in enumerate(PLACES)], axis=(0, 1, 2))
    assert levels.pictures == len(PLACES)
    np.testing.assert_allclose(np.ravel(levels.stats()["mean"]), wanted, atol=0.02)


def test_what_the_index_has_and_the_file_lacks_is_a_broken_record(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokenRecord, match="no picture at 150000 us"):
        retime(recorded, [0, 150_000], tmp_path / "out.mp4", 10)
    (tmp_path / "none.mp4").write_bytes(b"x")
    with pytest.raises(StorageError, match="cannot be read as a video"):
        retime(tmp_path / "none.mp4", [0], tmp_path / "out.mp4", 10)
