"""A video's coded pictures put onto a uniform grid as they are; only where the grid leaves one out or shows one twice
are a few coded anew, with the recording's own settings, so that all of it is one stream.

May not: know an episode, or copy a picture without the ones it is decoded from.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labctl.store.video import AT_ONCE, TIME_BASE, open_video, place_us

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer, OutputContainer

SHORTEST = 3  # pictures that are worth copying between such as are coded anew
ENOUGH = 0.5  # of all: where less can be copied, all are coded anew
CODEC = "h264"


@dataclass(frozen=True, slots=True)
class Coding:
    """How a recording was coded, as its cell says."""

    codec: str
    preset: str
    crf: int
    keyframe_s: float
    rate_hz: float


@dataclass(frozen=True, slots=True)
class Run:
    """Frames `first` to before `end` of the grid, copied or coded anew."""

    first: int
    end: int
    copied: bool


@dataclass(frozen=True, slots=True)
class Packets:
    """What a file holds, in its order: places (n,) us, and which of them are keyframes (n,)."""

    places_us: np.ndarray
    keyframe: np.ndarray


def packets_of(container: InputContainer) -> Packets | None:
    """The packets of an open video; None when they cannot be copied: another codec, or pictures out of order."""
    import av.error

    stream = container.streams.video[0]
    if stream.codec_context.codec.canonical_name != CODEC or stream.codec_context.pix_fmt != "yuv420p":
        return None
    places: list[int] = []
    keyframe: list[bool] = []
    try:
        for packet in container.demux(stream):
            if packet.size:
                if packet.pts is None or packet.pts != packet.dts:
                    return None
                places.append(place_us(packet.pts, stream.time_base))
                keyframe.append(packet.is_keyframe)
    except av.error.InvalidDataError:  # the fragment that was being written when its writer died
        pass
    return Packets(np.array(places, np.int64), np.array(keyframe, bool))


def runs(packets: Packets, chosen: np.ndarray) -> list[Run]:
    """Which frames of a grid that shows the packets `chosen` (n,), never going back, are copied: stretches that begin
    at a keyframe and take every packet after it once.
    """
    follows = np.append(np.diff(chosen) == 1, False)
    ends = np.flatnonzero(~follows) + 1  # of the stretches of one packet after the other
    found: list[Run] = []
    at = 0
    for begin in np.flatnonzero(packets.keyframe[chosen]).tolist():
        end = int(ends[np.searchsorted(ends, begin, "right")])
        if begin < at or end - begin < SHORTEST:
            continue
        if begin > at:
            found.append(Run(at, begin, copied=False))
        found.append(Run(begin, end, copied=True))
        at = end
    return found if at == len(chosen) else [*found, Run(at, len(chosen), copied=False)]


def worth_copying(found: Sequence[Run]) -> bool:
    """Whether enough of a grid can be copied."""
    copied = sum(run.end - run.first for run in found if run.copied)
    return copied >= ENOUGH * (found[-1].end if found else 1)


def copy(
    source: Path,
    packets: Packets,
    chosen: np.ndarray,
    found: Sequence[Run],
    target: OutputContainer,
    video: Coding,
    fps: int,
) -> bool:
    """Mux the runs into an open container, frame k at k / fps; false, with nothing muxed, when what has to be coded
    anew cannot be made to fit: another encoder than the recording's, or a picture that cannot be decoded.

    video: codec, preset, crf, keyframe_s and rate_hz of the recording.
    """
    with open_video(source) as container:
        template = container.streams.video[0]
        anew = {
            run.first: _coded(source, packets, chosen[run.first : run.end], video) for run in found if not run.copied
        }
        head = template.codec_context.extradata
        short = any(len(anew[run.first].packets) < run.end - run.first for run in found if not run.copied)
        if short or any(one.extradata != head for one in anew.values()):
            return False
        stream = target.add_stream_from_template(template)
        stream.time_base = Fraction(1, fps)
        import av

        def put(frame: int, data: bytes, keyframe: bool) -> None:
            packet = av.Packet(data)
            packet.stream, packet.time_base = stream, Fraction(1, fps)
            packet.pts = packet.dts = frame
            packet.duration, packet.is_keyframe = 1, keyframe
            target.mux(packet)

        recorded = enumerate(packet for packet in container.demux(template) if packet.size)
        number, data = next(recorded)
        for run in found:
            for frame in range(run.first, run.end):
                if not run.copied:
                    put(frame, *anew[run.first].packets[frame - run.first])
                    continue
                while number < chosen[frame]:
                    number, data = next(recorded)
                put(frame, bytes(data), bool(packets.keyframe[number]))
    return True


@dataclass(frozen=True, slots=True)
class _Coded:
    extradata: bytes | None
    packets: tuple[tuple[bytes, bool], ...]


def _coded(source: Path, packets: Packets, chosen: np.ndarray, video: Coding) -> _Coded:
    """Some pictures coded as the recording's encoder would have, the first a keyframe."""
    import av

    rate = Fraction(video.rate_hz).limit_denominator(1000)
    buffer = BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        options = {"preset": video.preset, "crf": str(video.crf), **AT_ONCE.get(video.codec, {})}
        stream = out.add_stream(video.codec, rate=rate, options=options)
        assert isinstance(stream, av.VideoStream), f"{video.codec} codes no pictures"
        first = None
        for number, picture in enumerate(_decoded(source, packets, chosen)):
            if first is None:
                first, context = picture, stream.codec_context
                context.width, context.height, context.pix_fmt = picture.width, picture.height, "yuv420p"
                context.max_b_frames, context.thread_count = 0, 1
                context.gop_size = max(1, round(video.keyframe_s * video.rate_hz))
                stream.time_base = context.time_base = TIME_BASE
            picture.pts, picture.time_base, picture.pict_type = round(number / rate / TIME_BASE), TIME_BASE, 0
            out.mux(stream.encode(picture))
        out.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer, "r") as back:
        data = tuple((bytes(one), one.is_keyframe) for one in back.demux(video=0) if one.size)
        return _Coded(back.streams.video[0].codec_context.extradata, data)


def _decoded(source: Path, packets: Packets, chosen: np.ndarray) -> Iterator[VideoFrame]:
    """The pictures of the packets `chosen`, one as often as it is named, from the keyframe before the first on."""
    wanted = packets.places_us[chosen].tolist()
    with open_video(source) as container:
        stream = container.streams.video[0]
        before = np.flatnonzero(packets.keyframe[: chosen[0] + 1])
        begin = int(before[-1]) if len(before) else 0
        coded = itertools.islice((packet for packet in container.demux(stream) if packet.size), begin, None)
        at = 0
        for packet in itertools.chain(coded, [None]):  # None: what the decoder holds back
            for picture in stream.codec_context.decode(packet):
                place = place_us(picture.pts, stream.time_base)
                while at < len(wanted) and wanted[at] == place:
                    at += 1
                    yield picture
            if at == len(wanted):
                return
