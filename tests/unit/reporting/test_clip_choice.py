"""Clips are chosen by their stated rules and cut to the measured times of the frames."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import SECOND
from labctl.reporting.clips import cutting
from labctl.reporting.clips.choice import choose
from labctl.reporting.clips.cutting import LONGEST_S, RATE_HZ, Cutting, Planned, Source, best_part, cut, window
from labctl.store.video import VideoWriter


def row(episode: str, moved: int, took: float | None, end: str = "budget", arm: str = "a") -> dict[str, Any]:
    return {"arm": arm, "episode": episode, "moved": moved, "staged": 4, "end_reason": end, "duration_s": took}


ROWS = [
    row("e-1", 4, 30.0, "all_done"),
    row("e-2", 2, 120.0),
    row("e-3", 2, 90.0, "operator"),
    row("e-4", 0, 40.0, "safety_stop"),
    row("e-5", 0, 80.0, "safety_stop"),
    row("e-6", 3, None),
    row("e-7", 1, 100.0, "all_done", arm="b"),
]


def chosen(rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {(choice.arm, choice.kind): choice.episode for choice in choose(rows)}


def test_the_rules_choose():
    """Of a: medians 2 items and 80 s, so e-3 (10 s away) before e-2 (40 s); e-5 nothing for longest; e-4 first."""
    assert chosen(ROWS) == {
        ("a", "typical"): "e-3",
        ("a", "worst"): "e-5",
        ("a", "stop"): "e-4",
        ("b", "typical"): "e-7",
        ("b", "worst"): "e-7",
    }


def test_an_operators_stop_counts_when_the_robot_never_stopped_itself():
    assert chosen(ROWS[:3])[("a", "stop")] == "e-3"


def test_every_choice_says_why():
    said = {choice.kind: choice.why for choice in choose(ROWS) if choice.arm == "a"}
    assert said["typical"] == "2 of 4 moved in 90.0 s; the medians of its 5 episodes are 2 and 80.0 s"
    assert said["worst"] == "0 of 4 moved in 80.0 s; of the fewest moved the longest"
    assert said["stop"] == "0 of 4 moved in 40.0 s; the first of 2 ended by safety stop"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 120)), min_size=1, max_size=12))
def test_nothing_is_nearer_than_the_typical_nor_worse_than_the_worst(episodes: list[tuple[int, int]]):
    rows = [row(f"e-{i}", moved, float(took)) for i, (moved, took) in enumerate(episodes)]
    found = {choice.kind: rows[int(choice.episode[2:])] for choice in choose(rows)}
    middle = median(r["moved"] for r in rows)
    assert abs(found["typical"]["moved"] - middle) == min(abs(r["moved"] - middle) for r in rows)
    fewest = min(r["moved"] for r in rows)
    assert found["worst"]["duration_s"] == max(r["duration_s"] for r in rows if r["moved"] == fewest)


def test_items_of_one_task_and_the_scores_of_another_are_compared_by_their_shares():
    """A drawer opened to 0.9 was the arm's worst beside 5 of 8 items, and the median of both was 3."""
    rows = [{**row(f"e-items{moved}", moved, 60.0), "staged": 8} for moved in (5, 6, 7)]
    rows += [{**row(f"e-drawer{i}", 0, 20.0), "score": score} for i, score in enumerate((0.9, 1.0, 1.0))]
    said = {choice.kind: (choice.episode, choice.why) for choice in choose(rows)}
    typical = "7 of 8 moved in 60.0 s; the medians of its 6 episodes are a share done of 0.89 and 40.0 s"
    assert said["typical"] == ("e-items7", typical)
    assert said["worst"] == ("e-items5", "5 of 8 moved in 60.0 s; of the smallest share done the longest")
    alike = {choice.kind: choice.why for choice in choose(rows[3:])}
    assert alike["typical"] == "score 1.00 in 20.0 s; the medians of its 3 episodes are 1 and 20.0 s"
    assert alike["worst"] == "score 0.90 in 20.0 s; of the lowest score the longest"


def test_no_episode_no_clip():
    assert choose([]) == [] and choose([row("e-1", 0, None)]) == []


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """60 s at 5 Hz, each frame brighter than the one before; received 1 s after the host's clock began."""
    writer = VideoWriter(tmp_path / "v.mp4", 640, 480, rate_hz=5.0)
    pts_us = np.arange(300) * 200_000
    for i, pts in enumerate(pts_us):
        writer.write(np.full((480, 640, 3), i * 200 // 300, dtype=np.uint8), int(pts))
    writer.close()
    return Source(tmp_path / "v.mp4", pts_us, pts_us * 1000 + SECOND)


def pictures(clip: bytes) -> tuple[Any, list[float]]:
    """The clip's stream and how bright the middle of each picture is."""
    with av.open(io.BytesIO(clip)) as container:
        stream = container.streams.video[0]
        shades = [
            float(frame.to_ndarray(format="gray")[100:140, 100:140].mean()) for frame in container.decode(video=0)
        ]
        return (stream.codec_context.name, stream.width, stream.height, stream.average_rate), shades


def test_a_clip_is_short_small_h264_and_shows_the_frame_of_its_time(source: Source):
    start, end, speed = window("typical", 11 * SECOND, 51 * SECOND, source.t_ns)
    assert (start, end, speed) == (11 * SECOND, 51 * SECOND, 4)
    clip = cut(source, start, end, speed)
    (codec, width, height, rate), shades = pictures(clip)
    assert (codec, width, height, rate) == ("h264", 320, 240, RATE_HZ)
    assert len(shades) == LONGEST_S * RATE_HZ and len(clip) < 100_000
    at = np.linspace(10, 50, len(shades))  # seconds into the video
    np.testing.assert_allclose(shades, np.floor(at * 5 + 1e-9) * 200 // 300, atol=3)


def test_a_stop_is_shown_as_fast_as_it_happened_and_within_the_record(source: Source):
    assert window("stop", SECOND, 31 * SECOND, source.t_ns) == (25 * SECOND, 33 * SECOND, 1)
    late = window("stop", SECOND, 60 * SECOND, source.t_ns)
    assert late == (54 * SECOND, int(source.t_ns[-1]), 1)


def of_seconds(first: float, last: float) -> Source:
    """A video whose frames are from so many to so many seconds, five in each."""
    t_ns = np.arange(round(first * 5), round(last * 5) + 1) * SECOND // 5
    return Source(Path(f"{first:g}-{last:g}.mp4"), t_ns // 1000, t_ns)


@pytest.mark.parametrize("kind", ["typical", "worst", "stop"])
def test_a_clip_is_of_the_first_camera_whose_video_reaches_to_the_end(kind: Any):
    """The first one was lost ten seconds into the episode: a stop was a picture from long before it."""
    filmed = [("top", of_seconds(0, 10)), ("wrist", of_seconds(0, 60)), ("side", of_seconds(0, 60))]
    part = best_part(kind, 0, 60 * SECOND, filmed)
    assert part is not None and (part.camera, part.end_ns, part.lacks) == ("wrist", 60 * SECOND, ())
    assert part.start_ns == (54 * SECOND if kind == "stop" else 0)


def test_a_video_that_lacks_a_part_says_so_and_one_that_shows_none_is_no_clip():
    lost = [("top", of_seconds(0, 10)), ("wrist", of_seconds(5, 57))]
    part = best_part("typical", 0, 60 * SECOND, lost)
    assert part is not None and part.camera == "wrist"
    assert part.lacks == ("the video begins 5.0 s after go", "the video ends 3.0 s before the episode")
    stop = best_part("stop", 0, 60 * SECOND, lost)
    assert stop is not None and (stop.camera, stop.start_ns) == ("wrist", 54 * SECOND)
    assert stop.lacks == ("the video ends 3.0 s before the episode",)
    assert best_part("stop", 0, 60 * SECOND, lost[:1]) is None and best_part("stop", 0, 60 * SECOND, []) is None
    short = best_part("stop", 58 * SECOND, 60 * SECOND, [("top", of_seconds(57.5, 60))])
    assert short is not None and short.lacks == (), "an episode that was shorter than a stop's clip lacks nothing"


@pytest.mark.thorough
def test_the_same_video_gives_the_same_bytes(source: Source):
    """Whatever the memory holds that the encoder is given: with x264's macroblock tree one of these ten was another."""
    memory = np.random.default_rng(0)
    made = set()
    for _ in range(10):
        for size in memory.integers(1, 3_000_000, 5):
            memory.bytes(size)
        made.add(cut(source, 2 * SECOND, 8 * SECOND, 1))
    assert len(made) == 1


def test_a_clip_is_cut_by_when_its_pictures_were_taken(tmp_path: Path):
    """By when they were received: it showed the scene of a camera's latency before go."""
    names = ("host_ns", "pts_us")
    index = np.array([[10 * SECOND, 0], [11 * SECOND, 1_000_000]])
    store: Any = SimpleNamespace(
        streams=lambda _: [SimpleNamespace(name="camera/wrist", columns=names)],
        read=lambda *_: (index[:, 0], index),
    )
    campaign: Any = SimpleNamespace(
        folder=tmp_path, cell=SimpleNamespace(camera=[SimpleNamespace(name="wrist", latency_s=0.3)])
    )
    (tmp_path / "v.mp4").touch()
    episode: Any = SimpleNamespace(id="e-1", videos={"wrist": {"frames": 2, "file": "v.mp4"}})
    (camera, source), *others = cutting._sources(campaign, store, episode)
    assert camera == "wrist" and not others
    assert source.t_ns.tolist() == [9_700_000_000, 10_700_000_000] and source.pts_us.tolist() == [0, 1_000_000]


class Beside(Executor):
    """Does what it is asked when it is told to, in order."""

    def __init__(self) -> None:
        self.asked: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.done: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.asked.append((future, lambda: fn(*args, **kwargs)))
        return future

    def do(self, count: int) -> None:
        for number, (future, work) in list(enumerate(self.asked))[len(self.done) :][:count]:
            future.set_running_or_notify_cancel()
            future.set_result(work())
            self.done.append(number)


@pytest.fixture
def five(monkeypatch: pytest.MonkeyPatch) -> list[Planned]:
    """Five clips, of which each is cut as its own number."""
    monkeypatch.setattr("labctl.reporting.clips.cutting.cut", lambda source, *_: str(source).encode())
    said = {"arm": "a", "kind": "typical", "episode": "e-1", "why": "", "camera": "wrist", "speed": 1}
    planned: list[Any] = [Planned({**said, "file": f"{n}.mp4"}, n, 0, 1) for n in range(5)]
    return planned


def test_clips_that_nobody_beside_has_begun_are_cut_by_whoever_waits_for_them(five: list[Planned]):
    """One process cut all of them, and drew no figure meanwhile; the other waited."""
    beside = Beside()
    cutting = Cutting(five, beside, shared=True)
    assert len(beside.asked) == 3  # what else it is to do comes before the rest
    beside.do(2)
    clips = cutting.done()
    assert [clip["file"] for clip in clips] == [f"{n}.mp4" for n in range(5)]
    assert [clip.get("data") for clip in clips] == [b"0", b"1", b"2", b"3", b"4"]
    assert beside.done == [0, 1] and all(future.cancelled() for future, _ in beside.asked[2:])


def test_clips_that_are_asked_for_at_last_are_cut_beside_too(five: list[Planned]):
    beside = Beside()
    cutting = Cutting(five, beside, shared=True)
    cutting.go_on()
    beside.do(5)
    assert [clip.get("data") for clip in cutting.done()] == [b"0", b"1", b"2", b"3", b"4"] and len(beside.done) == 5


def test_a_thread_of_this_process_is_left_all_clips_at_once(five: list[Planned]):
    """Two encoders of one process are one more than its core has time for."""
    beside = Beside()
    cutting = Cutting(five, beside, shared=False)
    assert len(beside.asked) == 5
    beside.do(5)
    assert len(cutting.done()) == 5 and len(beside.done) == 5
