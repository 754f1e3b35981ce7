"""A video as recorded, made into one that a browser plays: the same pictures at the same times."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import pytest

from labctl.config.cell_schema import Video
from labctl.errors import StorageError
from labctl.pages.playable import pictures, playable, played
from labctl.store.video import VideoWriter, read_frames

TIMES_US = [0, 100_000, 230_000, 300_000, 1_400_000, 1_500_000]  # with a hole, as a lost camera leaves one


def recorded(path: Path, codec: str = "libx264") -> bytes:
    """A video of grey pictures, each a little lighter."""
    writer = VideoWriter(path, 64, 48, Video(codec=codec), rate_hz=10.0)
    for number, at_us in enumerate(TIMES_US):
        writer.write(np.full((48, 64, 3), 20 + 30 * number, np.uint8), at_us)
    writer.close()
    return path.read_bytes()


def seen(data: bytes) -> list[tuple[int, int]]:
    """(time in us, mean grey) of each picture."""
    with av.open(io.BytesIO(data)) as container:
        base = container.streams.video[0].time_base
        return [
            (round(picture.pts * base * 1_000_000), round(float(picture.to_ndarray(format="rgb24").mean())))
            for picture in container.decode(video=0)
        ]


def test_the_coded_pictures_are_copied_with_their_times_and_the_length_is_known(tmp_path: Path) -> None:
    data = recorded(tmp_path / "camera.mp4")
    made = playable(data)
    assert seen(made) == [(at, round(float(image.mean()))) for at, image in read_frames(tmp_path / "camera.mp4")]
    assert [at for at, _ in seen(made)] == TIMES_US
    with av.open(io.BytesIO(made)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        assert container.duration is not None and container.duration >= TIMES_US[-1]
    assert b"moof" not in made and b"moof" in data, "an index of the whole, in place of fragments"
    assert playable(data) == made, "the same bytes every time"


def test_a_codec_that_browsers_do_not_play_is_coded_again(tmp_path: Path) -> None:
    made = playable(recorded(tmp_path / "camera.mp4", "libx265"))
    with av.open(io.BytesIO(made)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
    assert [at for at, _ in seen(made)] == TIMES_US
    assert [grey for _, grey in seen(made)] == pytest.approx([20 + 30 * n for n in range(6)], abs=4)


def test_a_video_that_was_cut_off_is_played_up_to_there(tmp_path: Path) -> None:
    data = recorded(tmp_path / "camera.mp4")
    made = playable(data[: data.rindex(b"mdat") + 20])
    assert 1 <= len(seen(made)) < len(TIMES_US)


def test_a_file_that_was_ended_in_order_stays_as_it_is(tmp_path: Path) -> None:
    data = recorded(tmp_path / "camera.mp4")
    assert played(data) == data
    cut = data[: data.rindex(b"mdat") + 20]
    assert played(cut) == playable(cut) != cut
    with pytest.raises(StorageError, match="cannot be made into one that a browser plays"):
        played(b"no video at all")


def test_what_is_no_video_is_refused_in_a_line() -> None:
    with pytest.raises(StorageError, match="cannot be made into one that a browser plays"):
        playable(b"no video at all")
    with pytest.raises(StorageError, match="no picture can be taken"):
        pictures(b"no video at all", [0], 32)


def test_pictures_are_those_that_are_shown_at_their_times(tmp_path: Path) -> None:
    made = playable(recorded(tmp_path / "camera.mp4"))
    found = pictures(made, [-5, 99_980, 100_000, 1_000_000, 9_000_000], 32)
    assert [image.shape for image in found] == [(24, 32, 3)] * 5
    assert [round(float(image.mean()) / 10) * 10 for image in found] == [20, 20, 50, 110, 170]
