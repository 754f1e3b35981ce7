"""Cuts short clips of chosen episodes from their videos: small, playable in any browser, the same bytes every time.

May not: choose (`choice` does), be asked before unblinding, or change a recording.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labctl.analysis.report.lab_facts import Clip, EpisodeEntry
from labctl.clock import SECOND
from labctl.core.record import Episode, Record
from labctl.core.recorded.projection import capture_ns, previous_index
from labctl.core.trial import Phase
from labctl.errors import StateError, Unreachable
from labctl.reporting.clips.choice import ClipKind, choose
from labctl.store.campaign import Campaign
from labctl.store.media.reading import local_file
from labctl.store.traces import TraceStore
from labctl.store.verifying.verified import in_passing, samples_of
from labctl.store.video import read_frames

if TYPE_CHECKING:
    from av.video.stream import VideoStream

LONGEST_S = 10
WIDTH = 320
RATE_HZ = 12
BEFORE_STOP_S, AFTER_STOP_S = 6.0, 2.0
SHORT_S = 1.5  # a video that ends so long before its episode, or longer, does not show all of it
BAR_PX = 3
# x264's macroblock tree makes other bytes of the same pictures now and then, even with one thread. Slower presets take
# two to three times as long for a tenth less.
SETTINGS = {"preset": "veryfast", "crf": "30", "x264-params": "threads=1:mbtree=0"}
_BAR, _PASSED = (52, 55, 62), (250, 204, 60)


@dataclass(frozen=True, slots=True)
class Source:
    """A video, and for each of its frames its place in the file (us) and its measured time (ns)."""

    path: Path
    pts_us: np.ndarray
    t_ns: np.ndarray


@dataclass(frozen=True, slots=True)
class Part:
    """What a clip shows of a camera's video, from start to end (ns), and what the video lacks of it, in words."""

    camera: str
    source: Source
    start_ns: int
    end_ns: int
    speed: int
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A clip that is not cut yet: what is said of it, and what it shows of a video, from start to end (ns)."""

    clip: Clip
    source: Source
    start_ns: int
    end_ns: int

    def cut(self) -> bytes:
        """As `cut`."""
        return cut(self.source, self.start_ns, self.end_ns, self.clip["speed"])


class Cutting:
    """The clips of a report, shared by two: whoever is beside begins with the first of them, and comes to the second
    half once it has done what it was asked in between; whoever waits for them begins with the last.
    """

    def __init__(self, planned: Sequence[Planned], beside: Executor, *, shared: bool) -> None:
        """shared: else all of them are left to whoever is beside, who is begun on them at once."""
        self._planned, self._beside, self._shared = planned, beside, shared
        half = -(-len(planned) // 2) if shared else len(planned)
        self._asked = [beside.submit(one.cut) for one in planned[:half]]

    def go_on(self) -> None:
        """Ask for those that were left."""
        self._asked += [self._beside.submit(one.cut) for one in self._planned[len(self._asked) :]]

    def done(self) -> list[Clip]:
        """All of them, as `clips`; those that nobody has begun are cut here. Raises StorageError."""
        self.go_on()
        here: dict[int, bytes] = {}
        for number in reversed(range(len(self._asked))) if self._shared else ():
            if self._asked[number].cancel():
                here[number] = self._planned[number].cut()
        return [
            {**one.clip, "data": here[number] if number in here else self._asked[number].result()}
            for number, one in enumerate(self._planned)
        ]


def clips(folder: Path, rows: Sequence[EpisodeEntry], *, without: Collection[str]) -> list[Clip]:
    """Those of an unblinded campaign's episodes; `rows` as in `choice.choose`.

    file: a name for the clip below a report's folder; data: its bytes, an mp4 of at most ten seconds.
    speed: how many times faster than it happened. Typical and worst show the whole episode, a stop its last seconds.
    Each is of the first camera whose video reaches from its beginning to its end, else of the one that has most of it,
    and then `why` says what is missing. An episode no video of which shows any of it, or `without` a recording, has no
    clip. Raises StateError before unblinding, StorageError for a video that cannot be read.
    """
    with in_passing(folder) as campaign:
        store = samples_of(campaign, held=True)
        try:
            found = planned(campaign, campaign.record(), store, rows, without=without)
            return [{**one.clip, "data": one.cut()} for one in found]
        finally:
            store.close()


def planned(
    campaign: Campaign, record: Record, samples: TraceStore, rows: Sequence[EpisodeEntry], *, without: Collection[str]
) -> list[Planned]:
    """Which clips `clips` cuts of a campaign, with its record and samples, in this order. Raises StateError before
    unblinding.
    """
    name, phase = campaign.folder.name, campaign.state.phase
    if phase != Phase.UNBLINDED:
        raise StateError(f"campaign {name} is {phase}; clips name arms, so unblind it first")
    found: list[Planned] = []
    for number, choice in enumerate(choose(rows)):
        if choice.episode in without:
            continue
        episode = record.episodes[choice.episode]
        if episode.go_ns is None or episode.end_ns is None:
            continue
        filmed = _sources(campaign, samples, episode)
        if (part := best_part(choice.kind, episode.go_ns, episode.end_ns, filmed)) is None:
            continue
        clip: Clip = {
            "arm": choice.arm,
            "kind": choice.kind,
            "episode": choice.episode,
            "why": "; ".join([choice.why, *part.lacks]),
            "camera": part.camera,
            "speed": part.speed,
            "file": f"clips/{number:02d}-{choice.kind}-{choice.episode}.mp4",
        }
        found.append(Planned(clip, part.source, part.start_ns, part.end_ns))
    return found


def _sources(campaign: Campaign, store: TraceStore, episode: Episode) -> Iterator[tuple[str, Source]]:
    """The episode's videos, each with its camera, in the cell's order; none from the first on that is out of reach."""
    for camera in campaign.cell.camera:
        entry = episode.videos.get(camera.name)
        if entry and entry["frames"]:
            spec = next(spec for spec in store.streams(episode.id) if spec.name == f"camera/{camera.name}")
            _, values = store.read(episode.id, spec.name)
            column = {name: values[:, i] for i, name in enumerate(spec.columns)}
            if len(values):
                try:
                    path = local_file(campaign.folder, entry)
                except Unreachable:  # said on the page of episodes
                    return
                yield camera.name, Source(path, column["pts_us"], capture_ns(column["host_ns"], camera.latency_s))


def best_part(kind: ClipKind, go_ns: int, end_ns: int, filmed: Iterable[tuple[str, Source]]) -> Part | None:
    """What a clip shows: of the first video that has all of it, else of the one that has most; None if none has any."""
    best: Part | None = None
    for camera, source in filmed:
        start, end, speed = window(kind, go_ns, end_ns, source.t_ns)
        if end <= start:
            continue
        begin = go_ns if kind != "stop" else max(go_ns, end_ns - round(BEFORE_STOP_S * SECOND))
        lacks: list[str] = []
        if start - begin > SHORT_S * SECOND:
            lacks.append(f"the video begins {(start - go_ns) / SECOND:.1f} s after go")
        if end_ns - end > SHORT_S * SECOND:
            lacks.append(f"the video ends {(end_ns - end) / SECOND:.1f} s before the episode")
        part = Part(camera, source, start, end, speed, tuple(lacks))
        if not lacks:
            return part
        if best is None or end - start > best.end_ns - best.start_ns:
            best = part
    return best


def window(kind: ClipKind, go_ns: int, end_ns: int, t_ns: np.ndarray) -> tuple[int, int, int]:
    """From when to when (ns) a clip shows an episode, within its frames t_ns (n,), and how many times faster."""
    if kind == "stop":
        go_ns, end_ns = end_ns - round(BEFORE_STOP_S * SECOND), end_ns + round(AFTER_STOP_S * SECOND)
    start, end = max(go_ns, int(t_ns[0])), min(end_ns, int(t_ns[-1]))
    return start, end, max(1, math.ceil((end - start) / SECOND / LONGEST_S))


def cut(source: Source, start_ns: int, end_ns: int, speed: int) -> bytes:
    """An mp4 of a video from start to end: each picture is the last one taken by then. Raises StorageError."""
    count = max(1, round((end_ns - start_ns) / SECOND / speed * RATE_HZ))
    at = np.linspace(start_ns, end_ns, count, dtype=np.int64)
    shown = np.maximum(previous_index(source.t_ns, at, max_gap_ns=2**62), 0)
    return _encode(_pictures(source, shown), count)


def _pictures(source: Source, shown: np.ndarray) -> Iterator[np.ndarray]:
    """The frames at these ascending places of the index, repeated as asked."""
    times = source.pts_us[shown].tolist()
    wanted = iter(times)
    due = next(wanted, None)
    picture: np.ndarray | None = None
    for pts_us, image in read_frames(source.path, frozenset(times)):
        while due is not None and due < pts_us and picture is not None:
            yield picture
            due = next(wanted, None)
        if due is None:
            return
        picture = image
    while due is not None and picture is not None:
        yield picture
        due = next(wanted, None)


def _encode(pictures: Iterator[np.ndarray], count: int) -> bytes:
    import av

    buffer = io.BytesIO()
    options = {"fflags": "+bitexact"}
    with av.open(buffer, "w", format="mp4", options=options) as container:
        stream: VideoStream | None = None
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            width = min(WIDTH, frame.width) // 2 * 2
            height = round(frame.height * width / frame.width) // 2 * 2
            small = frame.reformat(width=width, height=height, format="rgb24").to_ndarray()
            _bar(small, number / max(1, count - 1))
            if stream is None:
                stream = container.add_stream("libx264", rate=Fraction(RATE_HZ), options=SETTINGS)
                stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
                stream.codec_context.thread_count = 1
            out = av.VideoFrame.from_ndarray(small, format="rgb24")
            out.pts = number
            out.time_base = Fraction(1, RATE_HZ)
            container.mux(stream.encode(out))
        if stream is not None:
            container.mux(stream.encode(None))
    return buffer.getvalue()


def _bar(picture: np.ndarray, share: float) -> None:
    """How much of what is shown has passed, along the lower edge."""
    picture[-BAR_PX:] = _BAR
    picture[-BAR_PX:, : round(share * picture.shape[1])] = _PASSED
