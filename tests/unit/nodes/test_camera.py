"""A camera node films every frame with its times, and writes beside the pictures what is to be known of them."""

import json

import numpy as np
import pytest
from support.cameras.camera_bench import PERIOD, VIDEO, Bench, close, open_

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.store.video import count_frames, read_depth, read_frames


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_every_frame_of_an_episode_is_encoded_and_indexed(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(2.95)
    bench.send(close("e1"))
    (video,) = bench.of("video")
    assert video.to == "run"
    assert video.body == {"episode": "e1", "camera": "wrist", "file": "video/e1/wrist.mp4", "frames": 30}
    assert count_frames(tmp_path / "video/e1/wrist.mp4") == 30
    rows = bench.rows()
    assert rows.dtype == np.dtype("<i8")
    assert rows.shape == (30, 6)
    assert (np.diff(rows[:, 0]) == 1).all()
    assert (np.diff(rows[:, 2]) == PERIOD).all()
    assert rows[:, 3].tolist() == [pts for pts, _ in read_frames(tmp_path / "video/e1/wrist.mp4")]
    assert (rows[:, 5] == -1).all(), "no depth"
    assert bench.of("gap") == []


def test_the_index_keeps_device_time_beside_host_time(bench):
    bench.send(open_("e1"))
    start_ns = bench.now_ns
    bench.send(close("e1"))
    (row,) = bench.rows()
    assert row[1:].tolist() == [start_ns // 1000 + 500, start_ns + 1234, 0, 0, -1]
    (chunk,) = bench.of("chunk")
    assert chunk.arrays["t_ns"].tolist() == [start_ns + 1234]


def test_the_index_is_declared_before_the_first_frame_and_ended_after_the_last(bench):
    bench.send(open_("e1"))
    bench.run(1.5)
    bench.send(close("e1"))
    kinds = [message.kind for message in bench.said if message.to == "recorder"]
    assert kinds == ["declare", "chunk", "chunk", "end"]
    assert bench.of("declare")[0].body["specs"][0]["name"] == "camera/wrist"


def test_the_camera_senses_what_the_arm_observed(bench):
    for value in (1.0, 2.0):
        bench.send(Message("@obs", "obs", {}, {"x": np.array([value])}))
    assert bench.camera.sensed == [1.0, 2.0]


def test_the_preview_is_small_and_ten_a_second_in_real_time(tmp_path):
    bench = Bench(tmp_path, real_time=True)
    bench.run(5.0)
    previews = bench.of("preview")
    assert all(message.to == "@preview" for message in previews)
    assert 49 <= len(previews) <= 51
    assert previews[0].arrays["image"].shape == (48, 64, 3)


def test_a_preview_of_a_large_picture_is_a_part_of_its_pixels(tmp_path):
    bench = Bench(tmp_path, real_time=True)
    bench.camera.height, bench.camera.width = 480, 640
    bench.camera.size = (480, 640, 3)
    bench.run(0.2)
    image = bench.of("preview")[-1].arrays["image"]
    assert image.shape == (240, 320, 3) and image.flags.c_contiguous


def test_in_simulated_time_only_the_preview_asks_for_pictures_between_episodes(bench):
    bench.run(10.0)
    assert bench.camera.number <= 22
    assert bench.of("chunk") == bench.of("video") == []


def test_in_real_time_frames_are_asked_for_as_they_come_at_all_times(tmp_path):
    """What a device has queued between episodes would be the first frames of the next one."""
    bench = Bench(tmp_path, real_time=True)
    bench.run(2.0)
    assert bench.camera.number >= 2.0 / PERIOD * SECOND


def test_what_is_to_be_known_beside_the_pictures_is_written_before_the_first(bench, tmp_path):
    bench.run(1.0)
    bench.held = []
    bench.send(open_("e1"))
    found = json.loads((tmp_path / "video/e1/wrist.json").read_text())
    assert found["schema"] == "labctl.camera/1"
    assert (found["camera"], found["driver"], found["kind"], found["episode"]) == ("wrist", "test", "sim", "e1")
    assert found["about"] == {"model": "test", "serial": "one", "depth_scale_m": 0.001}
    assert found["video"] == {**VIDEO.model_dump(), "width": 64, "height": 48, "rate_hz": 10.0}
    assert (found["latency_s"], found["depth"], found["clock_domains"]) == (0.05, None, ["device"])
    bench.release()
    bench.send(close("e1"))
    assert [path.name for path in sorted((tmp_path / "video/e1").iterdir())] == ["wrist.json", "wrist.mp4"]


def test_a_clock_that_is_new_in_mid_episode_gets_a_number_of_its_own(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(1.0)
    bench.camera.domain = "system_time"
    bench.run(1.0)
    bench.send(close("e1"))
    assert json.loads((tmp_path / "video/e1/wrist.json").read_text())["clock_domains"] == ["device", "system_time"]
    assert (np.diff(bench.rows()[:, 4]) >= 0).all() and set(bench.rows()[:, 4]) == {0, 1}


def test_depth_is_kept_bit_for_bit_under_the_same_index(bench, tmp_path):
    bench.camera.with_depth = True
    bench.send(open_("e1"))
    bench.run(1.95)
    bench.send(close("e1"))
    rows, found = bench.rows(), list(read_depth(tmp_path / "video/e1/wrist.depth.mkv"))
    assert len(rows) == len(found) == 20
    assert rows[:, 5].tolist() == [us // 1000 for us, _ in found]
    assert all((depth == number).all() for number, (_, depth) in zip(rows[:, 0], found, strict=True))
    about = json.loads((tmp_path / "video/e1/wrist.json").read_text())
    assert about["depth"] == {"codec": "ffv1", "width": 64, "height": 48, "depth_scale_m": 0.001}


def test_full_pictures_are_published_from_open_to_close_when_the_campaign_wants_them(bench):
    bench.run(1.0)
    bench.send(open_("e1"))
    bench.run(1.0)
    bench.send(close("e1"))
    assert not bench.of("frame"), "nobody reads pictures in this campaign"
    bench.send(Message("camera:wrist", "open", {"episode": "e2", "frames": True}))
    bench.run(1.0)
    bench.send(close("e2"))
    frames = bench.of("frame")
    assert 9 <= len(frames) <= 11 and {message.to for message in frames} == {"@frames"}
    assert frames[-1].arrays["image"].shape == (48, 64, 3)
    bench.run(1.0)
    assert bench.of("frame") == frames
