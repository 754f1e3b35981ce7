"""Clips are chosen by their stated rules and cut to the measured times of the frames."""

from __future__ import annotations

import io
from pathlib import Path
from statistics import median
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import SECOND
from labctl.reporting.clips.choice import choose
from labctl.reporting.clips.cutting import LONGEST_S, RATE_HZ, Source, cut, window
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
