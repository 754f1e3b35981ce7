"""A camera node records every frame with its times, and a camera that stops answering is told, not hidden."""

import numpy as np
import pytest

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Frame
from labctl.errors import DeviceLost
from labctl.nodes.camera import CameraNode
from labctl.video import count_frames, read_frames

PERIOD = 100 * MILLISECOND
VIDEO = {"codec": "libx264", "preset": "ultrafast", "crf": 23, "keyframe_s": 1.0}


class Camera:
    """Gives a frame whenever asked, unless told to be silent or to raise."""

    kind = "sim"
    width, height, rate_hz = 64, 48, 10.0

    def __init__(self) -> None:
        self.silent = False
        self.error: Exception | None = None
        self.sensed: list[float] = []
        self.connected = self.closed = False
        self.number = 0

    def connect(self, now_ns: int) -> None:
        self.connected = True

    def sense(self, observation) -> None:
        self.sensed.append(float(observation["x"][0]))

    def grab(self, now_ns: int) -> Frame | None:
        if self.error:
            raise self.error
        if self.silent:
            return None
        self.number += 1
        image = np.full((48, 64, 3), self.number, dtype=np.uint8)
        return Frame(image, now_ns + 1234, now_ns / 1e6 + 0.5, self.number)

    def close(self) -> None:
        self.closed = True


class Bench:
    """Steps a node at its due times and keeps all it says."""

    def __init__(self, folder) -> None:
        self.camera = Camera()
        self.node = CameraNode("wrist", self.camera, VIDEO, folder)
        self.now_ns = 5 * SECOND
        self.said: list[Message] = []
        self.due_ns: int | None = None
        self.send()

    def send(self, *messages: Message) -> None:
        step = self.node.step(self.now_ns, list(messages))
        self.said += step.out
        self.due_ns = step.due_ns

    def run(self, seconds: float) -> None:
        end_ns = self.now_ns + round(seconds * SECOND)
        while self.due_ns is not None and self.due_ns <= end_ns:
            self.now_ns = self.due_ns
            self.send()
        self.now_ns = end_ns

    def of(self, kind: str) -> list[Message]:
        return [message for message in self.said if message.kind == kind]

    def rows(self) -> np.ndarray:
        return np.concatenate([chunk.arrays["values"] for chunk in self.of("chunk")])


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def open_(episode: str) -> Message:
    return Message("camera:wrist", "open", {"episode": episode})


def close(episode: str) -> Message:
    return Message("camera:wrist", "close", {"episode": episode})


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
    assert rows.shape == (30, 4)
    assert (np.diff(rows[:, 0]) == 1).all()
    assert (np.diff(rows[:, 2]) == PERIOD).all()
    assert rows[:, 3].tolist() == [pts for pts, _ in read_frames(tmp_path / "video/e1/wrist.mp4")]


def test_the_index_keeps_device_time_beside_host_time(bench):
    bench.send(open_("e1"))
    start_ns = bench.now_ns
    bench.send(close("e1"))
    (row,) = bench.rows()
    assert row[1:].tolist() == [start_ns // 1000 + 500, start_ns + 1234, 0]
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


def test_the_preview_is_small_and_at_most_twice_a_second(bench):
    bench.send(open_("e1"))
    bench.run(5.0)
    previews = bench.of("preview")
    assert all(message.to == "@preview" for message in previews)
    assert 9 <= len(previews) <= 11
    assert previews[0].arrays["image"].shape == (48, 64, 3)


def test_between_episodes_only_the_preview_asks_for_pictures(bench):
    bench.run(10.0)
    assert bench.camera.number <= 22
    assert bench.of("chunk") == bench.of("video") == []


def test_a_camera_that_raises_has_failed_and_its_video_is_still_closed(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(0.55)
    bench.camera.error = DeviceLost("the cable is out")
    bench.run(1.0)
    (failed,) = bench.of("failed")
    assert failed.to == "run"
    assert failed.body["name"] == "camera:wrist"
    assert "cable" in failed.body["reason"]
    assert bench.due_ns is None
    bench.send(close("e1"))
    assert bench.of("video")[0].body["frames"] == 6
    assert count_frames(tmp_path / "video/e1/wrist.mp4") == 6


def test_a_silent_camera_has_failed_after_three_periods_and_says_since_when(bench):
    bench.send(open_("e1"))
    bench.run(1.0)
    last_ns = bench.now_ns
    bench.camera.silent = True
    bench.run(0.30)
    assert bench.of("failed") == []
    bench.run(0.2)
    assert len(bench.of("failed")) == 1
    note = bench.of("event")[0].body
    assert note["kind"] == "note"
    assert (note["body"]["stream"], note["body"]["from_ns"]) == ("camera/wrist", last_ns)


def test_a_camera_that_failed_is_tried_again_in_the_next_episode(bench):
    bench.send(open_("e1"))
    bench.camera.error = DeviceLost("gone")
    bench.run(1.0)
    bench.send(close("e1"))
    bench.camera.error = None
    bench.send(open_("e2"))
    bench.run(0.95)
    bench.send(close("e2"))
    assert bench.of("video")[-1].body["frames"] == 10


def test_a_frame_that_is_a_little_late_is_asked_for_again(bench):
    bench.send(open_("e1"))
    bench.camera.silent = True
    bench.run(0.11)
    bench.camera.silent = False
    bench.run(0.89)
    bench.send(close("e1"))
    assert bench.of("failed") == []
    assert bench.of("video")[0].body["frames"] >= 9


def test_opening_the_same_episode_twice_does_not_cut_its_video(bench):
    bench.send(open_("e1"))
    bench.run(0.95)
    bench.send(open_("e1"))
    bench.run(0.95)
    bench.send(close("e1"), close("e1"))
    assert [message.body["frames"] for message in bench.of("video")] == [20]


def test_a_video_that_cannot_be_written_fails_the_camera(tmp_path):
    (tmp_path / "video").write_text("in the way")
    bench = Bench(tmp_path)
    bench.send(open_("e1"))
    assert "cannot be written" in bench.of("failed")[0].body["reason"]
    bench.send(close("e1"))
    assert bench.of("video") == []


def test_unacknowledged_chunks_are_sent_again_on_request(bench):
    bench.send(open_("e1"))
    bench.run(1.15)
    (chunk,) = bench.of("chunk")
    bench.send(Message("camera:wrist", "resend"))
    assert [m.body["seq"] for m in bench.of("chunk")] == [0, 0]
    bench.send(Message("camera:wrist", "ack", {key: chunk.body[key] for key in ("episode", "stream", "seq")}))
    bench.said.clear()
    bench.send(Message("camera:wrist", "resend"))
    assert bench.of("chunk") == []


def test_a_shutdown_closes_the_video_and_the_device(bench):
    bench.send(open_("e1"))
    bench.run(0.45)
    bench.send(Message("camera:wrist", "shutdown"))
    assert bench.of("video")[0].body["frames"] == 5
    assert bench.camera.closed
    assert bench.node.finished
