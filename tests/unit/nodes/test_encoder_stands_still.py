"""An encoder that never comes back costs its camera a gap; the seal, the next episode and the file are not its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.cameras.camera_bench import PERIOD, Bench, close, open_

from labctl.bus import Message, Work
from labctl.clock import SECOND
from labctl.nodes.recorder import PATIENCE_NS
from labctl.nodes.video_recorder import ENCODED, LOOK_NS, STILL_NS, STOOD_STILL
from labctl.runtime.hosting.simulated_host import finish_work
from labctl.store.footage import footage
from labctl.store.video import frame_times


class Hanging(Bench):
    """A bench whose encoder works until it is `stuck`; what else is due is done at once."""

    def __init__(self, folder: Path) -> None:
        self.stuck = False
        self.hung: list[Work] = []
        super().__init__(folder, real_time=True)

    def send(self, *messages) -> None:
        step = self.node.step(self.now_ns, list(messages))
        self.said += step.out
        self.due_ns = step.due_ns
        for work in step.work:
            if self.stuck and work.kind == ENCODED:
                assert work.alone, "it would take the place of the next episode's"
                self.hung.append(work)
            else:
                self.send(finish_work(work)[0])

    def gaps(self) -> list:
        return [message.body for message in self.of("gap") if message.body["why"] == STOOD_STILL]


@pytest.fixture
def bench(tmp_path: Path) -> Hanging:
    made = Hanging(tmp_path)
    made.run(0.5)
    return made


def test_frames_that_an_encoder_never_gave_back_are_a_gap_with_that_reason(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(2.0)
    bench.stuck = True
    bench.run(8.0)
    bench.send(close("e1"))
    (video,) = bench.of("video")
    rows, filmed = bench.rows(), frame_times(tmp_path / "video/e1/wrist.mp4")
    assert video.body["frames"] == len(filmed) == len(rows) > 10, "what had reached the file is in it, and indexed"
    gaps = bench.gaps()
    seen = bench.camera.number
    assert gaps[0]["from_ns"] == rows[-1, 2] and bench.now_ns - gaps[-1]["to_ns"] <= 2 * PERIOD
    told = [message.body["lost"] for message in bench.of("gap")]  # some when its queue was full
    assert sum(told) == seen - rows[-1, 0], "every frame is in the file or told as lost"
    assert bench.words() == [""], "the camera sees: nothing ends an episode for its encoder"
    assert [message.kind for message in bench.said if message.to == "recorder"][-1] == "end"


def test_an_encoder_that_hangs_at_its_end_is_waited_for_less_than_a_seal_waits(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(2.0)
    bench.stuck = True
    bench.send(close("e1"))
    bench.run(STILL_NS / SECOND - 0.3)
    assert not bench.of("video")
    bench.run(PATIENCE_NS / SECOND - STILL_NS / SECOND)
    assert [message.body["episode"] for message in bench.of("video")] == ["e1"]
    assert len(bench.gaps()) == 1


def test_the_next_episode_is_filmed_by_an_encoder_of_its_own(bench, tmp_path):
    bench.send(open_("e1"))
    bench.stuck = True
    bench.run(1.0)
    bench.send(open_("e2"))
    while not bench.of("video") and bench.now_ns < 20 * SECOND:
        bench.run(0.02)
    bench.stuck = False
    bench.run(2.0)
    bench.send(close("e2"))
    assert [(m.body["episode"], m.body["frames"] > 5) for m in bench.of("video")] == [("e1", False), ("e2", True)]


def test_an_encoder_that_comes_back_after_it_was_given_up_changes_nothing(bench, tmp_path):
    bench.send(open_("e1"))
    bench.run(2.0)
    bench.stuck = True
    bench.run(STILL_NS / SECOND + 1)
    bench.send(close("e1"))
    sealed = footage(tmp_path, "e1", ["wrist"]).videos
    bench.stuck = False
    bench.send(open_("e2"))
    said = len(bench.said)
    (late,) = bench.hung
    bench.send(finish_work(late)[0])
    assert footage(tmp_path, "e1", ["wrist"]).videos == sealed
    assert bench.said[said:] == []
    bench.run(1.0)
    bench.send(close("e2"))
    assert bench.of("video")[-1].body["frames"] > 5


def test_what_holds_up_the_whole_node_is_not_held_against_its_encoder(bench):
    bench.send(open_("e1"))
    bench.run(1.0)
    bench.stuck = True
    bench.run(1.0)
    for _ in range(3):
        bench.now_ns += 60 * SECOND  # the machine slept, or had no core for this process
        bench.send()
    assert 3 * LOOK_NS < STILL_NS and not bench.gaps()
    bench.stuck = False
    bench.send(finish_work(bench.hung.pop())[0])
    bench.run(1.0)
    bench.send(close("e1"))
    assert not bench.gaps() and len(bench.rows()) == bench.of("video")[0].body["frames"]
    assert np.all(np.diff(bench.rows()[:, 2]) > 0)


EDIT = {"edit": "brightness", "cameras": [], "amount": 0.2}  # nothing is dropped: each raw frame has an edited one
SEEN = "camera/wrist.seen"


def seen_rows(bench: Hanging) -> np.ndarray:
    of_seen = [chunk for chunk in bench.of("chunk") if chunk.body["stream"] == SEEN]
    return np.concatenate([chunk.arrays["values"] for chunk in of_seen])


def edited(bench: Hanging) -> None:
    """An episode whose policies see edited pictures, of which the encoder hangs after two seconds."""
    bench.send(Message("camera:wrist", "open", {"episode": "e1", "inputs": [EDIT], "seed": 1}))
    bench.run(2.0)
    bench.stuck = True


def test_edited_frames_that_an_encoder_never_gave_back_are_a_gap_of_what_the_policy_saw(bench, tmp_path):
    edited(bench)
    bench.run(8.0)
    bench.send(close("e1"))
    assert sorted(message.body["camera"] for message in bench.of("video")) == ["wrist", "wrist.seen"]
    rows, filmed = seen_rows(bench), frame_times(tmp_path / "video/e1/wrist.seen.mp4")
    assert len(rows) == len(filmed) > 10
    told = [message.body["lost"] for message in bench.of("gap") if message.body["stream"] == SEEN]
    assert sum(told) == bench.camera.number - rows[-1, 0], "every frame is in the file or told as lost"


def test_an_encoder_of_edited_frames_that_comes_back_too_late_changes_nothing(bench, tmp_path):
    edited(bench)
    bench.run(STILL_NS / SECOND + 1)
    sealed = footage(tmp_path, "e1", ["wrist.seen"]).videos
    bench.stuck = False
    said = len(bench.said)
    for late in bench.hung:
        bench.send(finish_work(late)[0])
    assert bench.said[said:] == []
    bench.send(close("e1"))
    (frames,) = [message.body["frames"] for message in bench.of("video") if message.body["camera"] == "wrist.seen"]
    assert frames == len(seen_rows(bench)) == len(frame_times(tmp_path / "video/e1/wrist.seen.mp4"))
    assert footage(tmp_path, "e1", ["wrist.seen"]).videos == sealed
