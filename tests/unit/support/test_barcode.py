"""What later tests rest on: a marked picture reads back exactly after JPEG, H.264 and resizing, or not at all."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.cameras import barcode
from support.cameras.barcode import Mark
from support.cameras.mjpeg import jpeg

from labctl.config.cell_schema import Video
from labctl.store.video import VideoWriter, read_frames

NUMBERS = st.integers(0, 2**32 - 1)
TIMES = st.integers(0, 2**64 - 1)
SIZES = st.sampled_from([(64, 48), (320, 240), (640, 480), (424, 240)])


@given(number=NUMBERS, t_ns=TIMES, size=SIZES)
def test_a_mark_survives_jpeg(number: int, t_ns: int, size: tuple[int, int]) -> None:
    picture = barcode.paint(*size, number, t_ns)
    decoded = np.asarray(Image.open(io.BytesIO(jpeg(picture))))
    assert barcode.read(decoded) == Mark(number, t_ns)


@given(number=NUMBERS, t_ns=TIMES, size=st.tuples(st.integers(160, 1280), st.integers(100, 160)))
def test_a_mark_survives_resizing(number: int, t_ns: int, size: tuple[int, int]) -> None:
    picture = Image.fromarray(barcode.paint(640, 400, number, t_ns))
    width = size[1] * 640 // 400
    assert barcode.read(np.asarray(picture.resize((width, size[1])))) == Mark(number, t_ns)
    assert barcode.read(np.asarray(picture)[::3, ::3]) == Mark(number, t_ns)


@given(number=NUMBERS, t_ns=TIMES, at=st.tuples(st.integers(0, 7), st.integers(0, 15)))
def test_a_mark_with_one_cell_painted_over_is_no_mark(number: int, t_ns: int, at: tuple[int, int]) -> None:
    picture = barcode.paint(320, 240, number, t_ns)
    cell = (slice(15 * at[0], 15 * at[0] + 15), slice(15 * at[1], 15 * at[1] + 15))
    picture[cell] = barcode.WHITE + barcode.BLACK - picture[cell]
    assert barcode.read(picture) is None


@pytest.mark.parametrize("shape", [(240, 320, 3), (480, 640), (320, 200, 3)])
def test_a_picture_without_a_mark_reads_as_none(shape: tuple[int, ...]) -> None:
    assert barcode.read(np.random.default_rng(1).integers(0, 255, shape, dtype=np.uint8)) is None
    assert barcode.read(np.full(shape, 70, np.uint8)) is None


def test_marks_and_colours_survive_the_campaigns_own_h264(tmp_path) -> None:
    writer = VideoWriter(tmp_path / "v.mp4", 320, 240, Video(crf=30))
    for i in range(40):
        writer.write(barcode.paint(320, 240, i * 7, 2**62 + i), 33_333 * i)
    writer.close()
    found = list(read_frames(tmp_path / "v.mp4"))
    assert [barcode.read(image) for _, image in found] == [Mark(i * 7, 2**62 + i) for i in range(40)]
    assert np.abs(barcode.patches(found[-1][1]) - barcode.PATCHES).max() < 12
