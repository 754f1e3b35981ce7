"""Coded pictures taken out of a file decode, from any keyframe, to the pictures that were put in."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import pytest
from support.cameras.barcode import paint, read

from labctl.errors import StorageError
from labctl.exports.annexb import access_units, stream_format


def film(path: Path, codec: str, frames: int = 25) -> None:
    container = av.open(str(path), "w", format="mp4")
    stream = container.add_stream(codec, rate=10)
    stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
    stream.codec_context.gop_size, stream.codec_context.max_b_frames = 10, 0
    stream.time_base = stream.codec_context.time_base = Fraction(1, 1_000_000)
    for number in range(frames):
        picture = av.VideoFrame.from_ndarray(paint(128, 96, number, 0), format="rgb24")
        picture.pts, picture.time_base = 100_000 * number + number % 3, Fraction(1, 1_000_000)
        container.mux(stream.encode(picture))
    container.mux(stream.encode(None))
    container.close()


@pytest.mark.parametrize(("encoder", "decoder", "form"), [("libx264", "h264", "h264"), ("libx265", "hevc", "h265")])
def test_pictures_decode_from_any_keyframe_on(tmp_path: Path, encoder: str, decoder: str, form: str) -> None:
    film(tmp_path / "v.mp4", encoder)
    assert stream_format(tmp_path / "v.mp4") == form
    units = list(access_units(tmp_path / "v.mp4"))
    assert [unit.pts_us for unit in units] == [100_000 * n + n % 3 for n in range(25)]
    keyframes = [n for n, unit in enumerate(units) if unit.keyframe]
    assert keyframes[0] == 0 and len(keyframes) >= 3
    for first in keyframes:
        context = av.CodecContext.create(decoder, "r")
        images = [image for unit in units[first:] for image in context.decode(av.Packet(unit.data))]
        images += context.decode(None)
        marks = [read(image.to_ndarray(format="rgb24")) for image in images]
        assert [mark.number if mark else None for mark in marks] == list(range(first, 25))


def test_a_codec_that_streams_do_not_carry_is_named(tmp_path: Path) -> None:
    film(tmp_path / "v.mp4", "libvpx-vp9", frames=3)
    with pytest.raises(StorageError, match=r"coded as vp9; .* h264 and hevc"):
        stream_format(tmp_path / "v.mp4")


def test_a_file_that_is_no_video_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "v.mp4").write_bytes(b"no video")
    with pytest.raises(StorageError, match="cannot be read as a video"):
        list(access_units(tmp_path / "v.mp4"))


def test_a_cut_file_gives_what_is_whole(tmp_path: Path) -> None:
    whole = tmp_path / "whole.mp4"
    container = av.open(str(whole), "w", format="mp4", options={"movflags": "frag_keyframe+empty_moov"})
    stream = container.add_stream("libx264", rate=10, options={"tune": "zerolatency"})
    stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
    stream.codec_context.gop_size = 5
    for number in range(20):
        container.mux(stream.encode(av.VideoFrame.from_ndarray(paint(128, 96, number, 0), format="rgb24")))
    container.mux(stream.encode(None))
    container.close()
    (tmp_path / "cut.mp4").write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    assert 5 <= len(list(access_units(tmp_path / "cut.mp4"))) < 20 == len(list(access_units(whole)))
