"""Frames that are missing are told; those that wait for the encoder are in the video before it is closed."""

import numpy as np
import pytest
from support.cameras.camera_bench import PERIOD, Bench, close, open_

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.nodes import video_recorder
from labctl.nodes.frame_gaps import AGAIN, BEHIND, DROPPED, NOT_COME
from labctl.nodes.video_recorder import QUEUE_S
from labctl.store.video import count_frames, frame_times


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


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


@pytest.mark.parametrize("counted", [True, False])
def test_what_a_camera_without_a_count_did_not_give_in_time_is_told_and_a_loss_is_told_once(bench, counted):
    bench.camera.counted = counted
    bench.send(open_("e1"))
    bench.run(1.0)
    bench.camera.silent = True
    bench.run(0.4)
    bench.camera.silent = False
    bench.run(3.0)
    bench.camera.silent = True
    bench.run(4.0)
    bench.camera.silent = False
    bench.run(3.0)
    bench.send(close("e1"))
    *short, loss = [gap.body for gap in bench.of("gap")]
    assert loss["why"] == "it gives no pictures"
    taken = bench.rows()[:, 2]
    pauses = [round(pause / PERIOD) - 1 for pause in np.diff(taken) if pause > 1.5 * PERIOD]
    assert [(gap["why"], gap["lost"]) for gap in short] == ([] if counted else [(NOT_COME, pauses[0])])
    assert pauses[0] in (3, 4) and loss["lost"] == pauses[1] > 30


def test_an_encoder_that_is_behind_slows_no_grabbing_and_what_it_missed_is_told(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(video_recorder, "STILL_NS", 60 * SECOND)  # held as one piece here, it still comes to its end
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
        patch.setattr("labctl.store.video._Writer._add", full)
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
        bench.send(Message("camera:wrist", "encoded", {"error": "KeyError: 'x'", "tag": "e1/wrist"}))


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
