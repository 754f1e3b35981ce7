"""A retimed video shows at k / fps the picture that was chosen for frame k, from any point on."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from support.cameras.barcode import paint, read

from labctl.config.cell_schema import Video
from labctl.errors import BrokenRecord, StorageError
from labctl.exports import splice
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


# A recording's settings, as a cell has them; `films` writes by them.
VIDEO = splice.Coding("libx264", "ultrafast", 23, keyframe_s=0.5, rate_hz=10.0)


@pytest.fixture
def film(tmp_path: Path) -> Path:
    """Forty pictures, one numbered mark each, a keyframe every fifth."""
    writer = VideoWriter(tmp_path / "film.mp4", 128, 96, Video(keyframe_s=0.5), rate_hz=10.0)
    for number in range(40):
        writer.write(paint(128, 96, number, number * 100_000), number * 100_000)
    writer.close()
    return tmp_path / "film.mp4"


def coded(path: Path) -> list[bytes]:
    with av.open(str(path)) as container:
        return [bytes(packet) for packet in container.demux(video=0) if packet.size]


CHOSEN = {
    "all of it": list(range(40)),
    "from the middle of a second on": list(range(7, 38)),
    "one picture twice": [*range(18), 17, *range(18, 40)],
    "a keyframe twice": [*range(16), 15, *range(16, 40)],
    "one left out": [*range(22), *range(23, 40)],
    "both, and no keyframe first": [*range(3, 12), 11, *range(12, 26), *range(27, 36)],
}


@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN.keys())
def test_copied_pictures_are_those_of_the_recording_and_each_frame_shows_its_own(
    film: Path, tmp_path: Path, chosen: list[int]
) -> None:
    levels = retime(film, [number * 100_000 for number in chosen], tmp_path / "out.mp4", 10, VIDEO)
    assert seen(tmp_path / "out.mp4") == [(Fraction(k, 10), number) for k, number in enumerate(chosen)]
    original = coded(film)
    same = [
        number for number, data in zip(chosen, coded(tmp_path / "out.mp4"), strict=True) if data == original[number]
    ]
    assert len(same) >= len(chosen) / 2, "most were copied"
    assert levels.pictures == len(set(chosen))
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.average_rate, stream.frames, stream.pix_fmt) == (10, len(chosen), "yuv420p")
        marks = []
        for k in (len(chosen) - 1, 0, len(chosen) // 2):  # any frame alone, as training reads
            container.seek(int(Fraction(k, 10) / stream.time_base), stream=stream)
            frame = next(f for f in container.decode(stream) if f.pts * stream.time_base == Fraction(k, 10))
            mark = read(frame.to_ndarray(format="rgb24"))
            marks.append(mark and mark.number)
        assert marks == [chosen[-1], chosen[0], chosen[len(chosen) // 2]]


def test_where_most_would_be_coded_anew_all_are_and_where_the_encoder_is_another(film: Path, tmp_path: Path) -> None:
    twice = [number for number in range(40) for _ in range(2)]
    retime(film, [number * 100_000 for number in twice], tmp_path / "twice.mp4", 20, VIDEO)
    assert [number for _, number in seen(tmp_path / "twice.mp4")] == twice
    gap = [*range(18), 17, *range(18, 40)]
    retime(film, [number * 100_000 for number in gap], tmp_path / "other.mp4", 10, replace(VIDEO, crf=30))
    assert [number for _, number in seen(tmp_path / "other.mp4")] == gap
    assert not set(coded(film)) & set(coded(tmp_path / "other.mp4")), "a stream has one encoder"


def test_a_stretch_that_is_copied_begins_at_a_keyframe_and_leaves_nothing_out() -> None:
    packets = splice.Packets(np.arange(20) * 100, np.arange(20) % 5 == 0)
    found = splice.runs(packets, np.array([3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15]))
    assert [(run.first, run.end, run.copied) for run in found] == [
        (0, 2, False), (2, 6, True), (6, 8, False), (8, 14, True),
    ]  # fmt: skip
    assert splice.worth_copying(found) and not splice.worth_copying([splice.Run(0, 9, copied=False)])


def test_a_picture_that_the_file_lacks_is_a_broken_record_also_where_pictures_are_copied(
    film: Path, tmp_path: Path
) -> None:
    with pytest.raises(BrokenRecord, match="no picture at 150000 us"):
        retime(film, [100_000, 150_000], tmp_path / "out.mp4", 10, VIDEO)
