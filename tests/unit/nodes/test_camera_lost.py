"""A lost camera is a gap with its cause; it is asked for again, and its video goes on when it is back."""

import json

import numpy as np
import pytest
from support.cameras.camera_bench import PERIOD, Bench, Camera, absent, close, open_

from labctl.clock import MILLISECOND, SECOND
from labctl.errors import DeviceLost
from labctl.store.video import count_frames, frame_times, read_frames


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


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
