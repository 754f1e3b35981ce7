"""A camera node films every frame with its times; what is missing is told, and a lost camera is asked for again."""

import json

import numpy as np
import pytest

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Frame
from labctl.errors import DeviceLost
from labctl.host import finish_work
from labctl.nodes.camera import CameraNode
from labctl.nodes.film import QUEUE_S, Terms
from labctl.nodes.holes import AGAIN, BEHIND, DROPPED
from labctl.video import count_frames, frame_times, read_depth, read_frames

PERIOD = 100 * MILLISECOND
VIDEO = {"codec": "libx264", "preset": "ultrafast", "crf": 23, "keyframe_s": 1.0}


class Camera:
    """Gives a frame whenever asked, unless told to be silent or to raise."""

    kind = "sim"
    width, height, rate_hz = 64, 48, 10.0

    def __init__(self) -> None:
        self.silent = self.with_depth = False
        self.error: Exception | None = None
        self.sensed: list[float] = []
        self.connections = self.closings = 0
        self.tried_ns: list[int] = []
        self.number = 0
        self.serial = "one"
        self.domain = "device"
        self.size = (48, 64, 3)

    def connect(self, now_ns: int) -> None:
        self.tried_ns.append(now_ns)
        if self.error:
            raise self.error
        self.connections += 1

    def sense(self, observation) -> None:
        self.sensed.append(float(observation["x"][0]))

    def grab(self, now_ns: int) -> Frame | None:
        if self.error:
            raise self.error
        if self.silent:
            return None
        self.number += 1
        image = np.full(self.size, self.number % 250, dtype=np.uint8)
        depth = np.full((48, 64), self.number, dtype=np.uint16) if self.with_depth else None
        return Frame(image, now_ns + 1234, now_ns / 1e6 + 0.5, self.number, depth, self.domain)

    def about(self) -> dict:
        return {"model": "test", "serial": self.serial, "depth_scale_m": 0.001}

    def close(self) -> None:
        self.closings += 1


class Bench:
    """Steps a node at its due times and keeps all it says. Work is done at once unless it is `held`."""

    def __init__(self, folder, *, camera=None, real_time=False, **terms) -> None:
        self.camera = camera or Camera()
        self.node = CameraNode(
            self.camera,
            Terms(folder, "wrist", VIDEO, driver="test", latency_s=0.05, durable=False, **terms),
            real_time=real_time,
        )
        self.now_ns = 5 * SECOND
        self.said: list[Message] = []
        self.held: list[Work] | None = None
        self.due_ns: int | None = None
        self.send()

    def send(self, *messages: Message) -> None:
        step = self.node.step(self.now_ns, list(messages))
        self.said += step.out
        self.due_ns = step.due_ns
        if self.held is not None:
            self.held += step.work
        elif step.work:
            self.send(*(finish_work(work)[0] for work in step.work))

    def release(self) -> None:
        """Do the work that was held, and all that follows from it."""
        held, self.held = self.held or [], None
        self.send(*(finish_work(work)[0] for work in held))

    def run(self, seconds: float) -> None:
        end_ns = self.now_ns + round(seconds * SECOND)
        while self.due_ns is not None and self.due_ns <= end_ns:
            self.now_ns = max(self.now_ns, self.due_ns)
            self.send()
        self.now_ns = end_ns

    def of(self, kind: str) -> list[Message]:
        return [message for message in self.said if message.kind == kind]

    def words(self) -> list[str]:
        """What run was told of the camera, in order."""
        return [message.body["lost"] for message in self.of("camera")]

    def rows(self) -> np.ndarray:
        return np.concatenate([chunk.arrays["values"] for chunk in self.of("chunk")])


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def absent(why: str) -> Camera:
    """A camera that is not there."""
    camera = Camera()
    camera.error = DeviceLost(why)
    return camera


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
    assert found["video"] == {**VIDEO, "width": 64, "height": 48, "rate_hz": 10.0}
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


# -- a camera that is lost


@pytest.mark.parametrize("how", ["raises", "silent"])
def test_a_lost_camera_is_a_gap_and_its_video_goes_on_when_it_is_back(bench, tmp_path, how):
    bench.send(open_("e1"))
    bench.run(1.05)
    last_ns = bench.now_ns - 50 * MILLISECOND + 1234
    bench.camera.error = DeviceLost("the cable is out") if how == "raises" else None
    bench.camera.silent = how == "silent"
    bench.run(2.0)
    why = "the cable is out" if how == "raises" else "it gives no pictures"
    assert bench.words() == ["", why]
    bench.camera.error, bench.camera.silent = None, False
    bench.camera.number = 0  # it was switched off and on: its count begins anew
    bench.run(3.0)
    bench.send(close("e1"))
    assert bench.words() == ["", why, ""]
    (gap,) = [message.body for message in bench.of("gap")]
    assert (gap["stream"], gap["episode"], gap["why"], gap["from_ns"]) == ("camera/wrist", "e1", why, last_ns)
    rows = bench.rows()
    hole = int(np.diff(rows[:, 2]).argmax())
    assert (rows[hole, 2], rows[hole + 1, 2]) == (gap["from_ns"], gap["to_ns"]), "times are measured, not counted"
    assert gap["lost"] == round((gap["to_ns"] - gap["from_ns"]) / PERIOD) - 1
    assert 2.0 * SECOND < gap["to_ns"] - gap["from_ns"] < 4.5 * SECOND
    assert frame_times(tmp_path / "video/e1/wrist.mp4").tolist() == rows[:, 3].tolist()
    assert (rows[:, 3] == (rows[:, 2] - rows[0, 2]) // 1000).all()
    about = json.loads((tmp_path / "video/e1/wrist.json").read_text())
    assert [entry["about"]["serial"] for entry in about["reconnected"]] == ["one"]


def test_a_silent_camera_is_closed_before_it_is_connected_to_again_and_one_that_raised_is_not(bench):
    bench.run(1.0)
    bench.camera.error = DeviceLost("gone")
    bench.run(1.0)
    bench.camera.error = None
    bench.run(2.0)
    assert (bench.camera.connections, bench.camera.closings) == (2, 0)
    bench.camera.silent = True
    bench.run(2.6)
    assert (bench.camera.connections, bench.camera.closings) == (3, 1)


def test_attempts_to_connect_grow_rarer_and_never_end(bench):
    bench.run(1.0)
    bench.camera.error = DeviceLost("gone")
    bench.run(60.0)
    pauses = [round(pause / SECOND, 1) for pause in np.diff(bench.camera.tried_ns[1:])]
    assert pauses[:3] == [1.0, 2.0, 5.0] and set(pauses[3:]) == {5.0} and sum(pauses) > 50
    assert len(bench.of("camera")) == 2, "run is told once"


def test_a_connection_that_never_returns_costs_the_process_not_the_campaign(bench):
    """The driver hangs in its library: only a new process can try again."""
    bench.run(1.0)
    bench.camera.error = DeviceLost("gone")
    bench.run(0.1)
    bench.held = []
    bench.run(50.0)
    assert len(bench.held) == 1, "it is not asked twice"
    with pytest.raises(DeviceLost, match="has not returned for 60 s"):
        bench.run(30.0)


def test_the_words_are_those_of_the_latest_attempt_and_the_gap_keeps_the_cause(bench):
    bench.send(open_("e1"))
    bench.run(1.0)
    bench.camera.error = DeviceLost("it was pulled out")
    bench.run(0.2)
    bench.camera.error = DeviceLost("no such device")
    bench.run(2.0)
    bench.camera.error = None
    bench.run(5.0)
    assert bench.words() == ["", "it was pulled out", "no such device", ""]
    bench.send(close("e1"))
    assert [gap.body["why"] for gap in bench.of("gap")] == ["it was pulled out"]


def test_a_camera_that_is_lost_to_the_end_leaves_its_tail_to_whoever_seals(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(0.55)
    bench.camera.error = DeviceLost("the cable is out")
    bench.run(10.0)
    bench.send(close("e1"))
    assert bench.of("video")[0].body["frames"] == count_frames(tmp_path / "video/e1/wrist.mp4") == 6
    assert bench.of("gap") == [], "how long the episode went on is not this node's to know"
    assert bench.of("end")


def test_an_episode_that_opens_without_a_picture_has_a_gap_from_its_opening(tmp_path):
    bench = Bench(tmp_path, camera=absent("gone"))
    bench.run(1.0)
    bench.send(open_("e1"))
    opened_ns = bench.now_ns
    bench.run(3.0)
    bench.camera.error = None
    bench.run(7.0)
    bench.send(close("e1"))
    (gap,) = [message.body for message in bench.of("gap")]
    assert gap["from_ns"] == opened_ns and gap["to_ns"] == bench.rows()[0, 2]
    assert bench.rows()[0, 3] == 0


def test_a_camera_that_has_never_answered_says_why(tmp_path):
    bench = Bench(tmp_path, camera=absent("no camera 123 here"))
    bench.run(2.0)
    assert bench.words() == ["no camera 123 here"]


def test_a_camera_just_connected_may_take_its_time_for_the_first_picture(tmp_path):
    camera = Camera()
    camera.silent = True
    bench = Bench(tmp_path, camera=camera)
    bench.run(4.0)
    bench.camera.silent = False
    bench.run(1.0)
    assert bench.words() == [""] and bench.camera.connections == 1


def test_pictures_of_another_size_are_a_loss_and_never_reach_the_video(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(1.0)
    bench.camera.size = (24, 32, 3)
    bench.run(1.0)
    assert "(24, 32, 3), not (48, 64, 3)" in bench.words()[-1]
    bench.camera.size = (48, 64, 3)
    bench.run(3.0)
    bench.send(close("e1"))
    assert bench.words()[-1] == "" and len(bench.of("gap")) == 1
    assert {image.shape for _, image in read_frames(tmp_path / "video/e1/wrist.mp4")} == {(48, 64, 3)}


def test_a_frame_that_is_a_little_late_is_asked_for_again(bench):
    bench.send(open_("e1"))
    bench.camera.silent = True
    bench.run(0.11)
    bench.camera.silent = False
    bench.run(0.89)
    bench.send(close("e1"))
    assert bench.words() == [""]
    assert bench.of("video")[0].body["frames"] >= 9


# -- frames that are missing


def test_what_the_device_dropped_or_gave_twice_is_told(bench):
    bench.send(open_("e1"))
    bench.run(0.5)
    bench.camera.number += 4
    bench.run(0.5)
    bench.camera.number -= 1
    bench.run(0.5)
    bench.send(close("e1"))
    assert [(gap.body["why"], gap.body["lost"]) for gap in bench.of("gap")] == [(DROPPED, 4), (AGAIN, 0)]
    assert (np.diff(bench.rows()[:, 0]) > 0).all()


def test_an_encoder_that_is_behind_slows_no_grabbing_and_what_it_missed_is_told(bench, tmp_path):
    bench.run(1.0)
    grabbed = bench.camera.number
    bench.send(open_("e1"))
    bench.held = []
    bench.run(QUEUE_S + 1.95)
    assert bench.camera.number - grabbed >= 30, "frames were taken all the while"
    assert len(bench.held) == 1, "one encoding at a time"
    bench.release()
    bench.run(1.0)
    bench.send(close("e1"))
    rows = bench.rows()
    (gap,) = [message.body for message in bench.of("gap")]
    assert gap["why"] == BEHIND
    assert len(rows) + gap["lost"] == rows[-1, 0] - rows[0, 0] + 1
    assert gap["lost"] >= 16, "what came in the two seconds beyond, but for a few"
    assert frame_times(tmp_path / "video/e1/wrist.mp4").tolist() == rows[:, 3].tolist()


def test_frames_that_waited_for_the_encoder_at_the_close_are_in_the_video(bench, tmp_path):
    bench.send(open_("e1"))
    bench.held = []
    bench.run(0.45)
    bench.send(close("e1"))
    assert bench.of("video") == bench.of("end") == [], "not before they are"
    bench.release()
    assert bench.of("video")[0].body["frames"] == count_frames(tmp_path / "video/e1/wrist.mp4") == len(bench.rows())
    kinds = [message.kind for message in bench.said if message.kind in ("chunk", "end", "video", "gap")]
    assert kinds == ["chunk", "end", "video"]


def test_a_frame_is_indexed_once_it_is_surely_in_the_file_and_not_before(bench, tmp_path):
    """What a killed process leaves: every frame of the index is in the file."""
    bench.send(open_("e1"))
    for _ in range(25):
        bench.run(0.1)
        indexed = [int(row[3]) for chunk in bench.of("chunk") for row in chunk.arrays["values"]]
        assert indexed == frame_times(tmp_path / "video/e1/wrist.mp4").tolist()[: len(indexed)]
    assert len(indexed) >= 10
    bench.send(close("e1"))


def test_a_new_episode_waits_for_the_film_of_one_that_was_given_up(bench, tmp_path):
    bench.send(open_("e1"))
    bench.held = []
    bench.run(0.45)
    bench.send(open_("e2"))
    assert bench.of("video") == []
    bench.release()
    bench.run(0.45)
    bench.send(close("e2"))
    found = {message.body["episode"]: message.body["frames"] for message in bench.of("video")}
    assert found["e1"] == count_frames(tmp_path / "video/e1/wrist.mp4") >= 4
    assert found["e2"] == count_frames(tmp_path / "video/e2/wrist.mp4") >= 4


def test_a_disk_that_refuses_in_mid_episode_is_told_and_the_next_episode_tries_again(bench, monkeypatch):
    bench.send(open_("e1"))
    bench.run(1.0)

    def full(self, picture, time, base):
        raise self._refused(OSError(28, "No space left on device"))

    with monkeypatch.context() as patch:
        patch.setattr("labctl.video._Writer._add", full)
        bench.run(1.0)
    assert "No space left on device" in bench.words()[-1]
    bench.run(1.0)
    bench.send(close("e1"))
    assert bench.words()[-1] == "", "the camera itself sees"
    assert bench.of("video")[0].body["frames"] <= 11
    bench.send(open_("e2"))
    bench.run(0.95)
    bench.send(close("e2"))
    assert bench.of("video")[1].body["frames"] == 10


def test_a_bug_in_the_encoding_ends_the_process_and_is_not_taken_for_a_recording(bench):
    bench.send(open_("e1"))
    with pytest.raises(RuntimeError, match="KeyError"):
        bench.send(Message("camera:wrist", "encoded", {"error": "KeyError: 'x'"}))


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
    failed = bench.of("failed")[0].body
    assert "cannot be written" in failed["reason"] and failed["name"] == "camera:wrist"
    bench.send(close("e1"))
    assert bench.of("video") == [] and len(bench.of("end")) == 1


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
    assert bench.camera.closings == 1
    assert bench.node.finished


def test_a_shutdown_waits_for_the_encoder(bench):
    bench.send(open_("e1"))
    bench.held = []
    bench.run(0.45)
    bench.send(Message("camera:wrist", "shutdown"))
    assert not bench.node.finished and bench.camera.closings == 0
    bench.release()
    assert bench.node.finished and bench.camera.closings == 1


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
