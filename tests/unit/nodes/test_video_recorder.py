"""When the frames of a film are encoded: in real time a few at once, and at its end all of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.config.cell_schema import Video
from labctl.devices import Frame
from labctl.nodes.video_recorder import Terms, VideoRecorder
from labctl.store.video import read_frames

VIDEO = Video(codec="libx264", preset="ultrafast", crf=23, keyframe_s=1.0)
CAMERA = SimpleNamespace(width=32, height=24, rate_hz=10.0, kind="sim")
PERIOD_NS = SECOND // 10


def film_of(folder: Path, gather_s: float) -> VideoRecorder:
    return VideoRecorder(
        Terms(folder, "wrist", VIDEO, gather_s=gather_s, durable=False), "e-1", CAMERA, None, ["device"]
    )


def frame(number: int) -> Frame:
    return Frame(np.full((24, 32, 3), 40 + number, np.uint8), number * PERIOD_NS, float(number), number, None)


def encode(film: VideoRecorder, now_ns: int) -> int:
    """Do what is due; how many frames are in the file then."""
    for work in film.work(now_ns):
        film.take(work.call())
    return film.frames


@pytest.mark.parametrize(("gather_s", "after_each"), [(0.0, [1, 2, 3, 4, 5, 6]), (0.25, [0, 0, 0, 4, 4, 4])])
def test_frames_wait_for_others_as_long_as_the_terms_say(tmp_path, gather_s, after_each) -> None:
    film = film_of(tmp_path, gather_s)
    counts = []
    for number in range(6):
        assert film.put(frame(number))
        counts.append(encode(film, number * PERIOD_NS))
    assert counts == after_each
    film.close()
    assert encode(film, 5 * PERIOD_NS) == 6 and film.closed
    means = np.array([image.mean() for _, image in read_frames(tmp_path / film.file)])
    assert np.abs(means - np.arange(40, 46)).max() < 1.5  # in order; a video rounds


def test_frames_that_no_other_follows_are_encoded_all_the_same(tmp_path) -> None:
    film = film_of(tmp_path, 0.25)
    film.put(frame(0))
    assert encode(film, PERIOD_NS) == 0
    assert encode(film, 3 * PERIOD_NS) == 1


def test_a_camera_that_came_after_its_episode_had_begun_says_the_scale_of_its_depth(tmp_path) -> None:
    film = film_of(tmp_path, 0.0)
    film.connected_again(0, {"depth_scale_m": 0.001})
    film.put(Frame(np.zeros((24, 32, 3), np.uint8), 0, 0.0, 0, np.ones((24, 32), np.uint16)))
    encode(film, 0)
    film.close()
    encode(film, 0)
    note = json.loads((tmp_path / "video/e-1/wrist.json").read_text("utf-8"))
    assert note["depth"]["depth_scale_m"] == 0.001
