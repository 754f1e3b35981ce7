"""A controller is shown what was seen, with its own times, and never a picture that is older than it may be."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named, changed

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Pace
from labctl.nodes.observation_buffer import ObservationBuffer


def obs(t_ns: int) -> Message:
    return Message("@obs", "obs", {"t_ns": t_ns}, {"q": np.zeros(7)})


def frame(t_ns: int, camera: str = "wrist") -> Message:
    image = np.full((2, 2, 3), t_ns // MILLISECOND % 256, np.uint8)
    return Message("@frames", "frame", {"camera": camera, "t_ns": t_ns}, {"image": image})


def buffer(**pace) -> ObservationBuffer:
    made = ObservationBuffer({"wrist": 0.02})
    made.pace = Pace(**{"cameras": ("wrist",), "max_age_s": 0.1, **pace})
    return made


def test_a_picture_is_dated_when_its_light_fell_and_not_when_it_came():
    seen = buffer()
    seen.see(obs(SECOND))
    seen.see(frame(SECOND))
    assert seen.image_ns() == SECOND - 20 * MILLISECOND
    assert seen.observation("Move.").images["wrist"][-1].t_ns == SECOND - 20 * MILLISECOND


def test_it_is_ready_with_a_state_and_a_fresh_picture_of_every_camera():
    seen = buffer(cameras=("wrist", "front"))
    assert not seen.ready(SECOND)
    seen.see(obs(SECOND))
    seen.see(frame(SECOND))
    assert not seen.ready(SECOND), "one camera has not been seen"
    seen.see(frame(SECOND, "front"))
    assert seen.ready(SECOND)
    assert seen.ready(SECOND + 80 * MILLISECOND)
    assert not seen.ready(SECOND + 81 * MILLISECOND), "the wrist's light fell 101 ms ago"


def test_the_oldest_of_the_newest_pictures_counts():
    seen = buffer(cameras=("wrist", "front"))
    seen.see(frame(SECOND, "front"))
    seen.see(frame(2 * SECOND, "front"))
    seen.see(frame(SECOND))
    assert seen.image_ns() == SECOND - 20 * MILLISECOND


def test_a_controller_without_cameras_needs_none():
    seen = buffer(cameras=())
    seen.see(obs(1))
    seen.see(frame(1))
    assert seen.ready(10 * SECOND) and seen.image_ns() == -1 and seen.observation("").images == {}


@pytest.mark.parametrize(("history_s", "kept"), [(0.0, 1), (1.0, 26)])
def test_pictures_are_kept_as_far_back_as_asked_for_and_no_further(history_s: float, kept: int):
    """At 20 Hz: 1 s back, a margin of a quarter second, and the newest."""
    seen = buffer(history_s=history_s)
    seen.see(obs(1))
    for i in range(200):
        seen.see(frame(i * SECOND // 20))
    assert len(seen.observation("").images["wrist"]) == kept


def test_an_episode_begins_with_the_newest_picture_alone():
    seen = buffer(history_s=1.0)
    seen.see(obs(1))
    for i in range(20):
        seen.see(frame(i * SECOND // 20))
    seen.forget()
    (only,) = seen.observation("").images["wrist"]
    assert only.t_ns == 19 * SECOND // 20 - 20 * MILLISECOND


def test_what_is_delayed_comes_later_with_its_own_times_and_is_not_too_old_for_that():
    seen = buffer(max_age_s=0.1)
    seen.delay_ns = SECOND // 5
    seen.see(obs(SECOND))
    seen.see(frame(SECOND))
    seen.let_in(SECOND + SECOND // 5 - 1)
    assert seen.t_ns is None and not seen.ready(SECOND)
    seen.let_in(SECOND + SECOND // 5)
    assert seen.t_ns == SECOND
    assert seen.ready(SECOND + SECOND // 5), "0.22 s old, 0.2 s of it by declaration"
    assert not seen.ready(SECOND + SECOND // 3)


def test_what_moves_the_robot_counts_from_its_newest_state_delayed_or_not():
    seen = buffer()
    seen.delay_ns = SECOND // 5
    for t_ns in (SECOND, 2 * SECOND):
        seen.see(Message("@obs", "obs", {"t_ns": t_ns}, {"q": np.full(7, t_ns / SECOND)}))
        seen.let_in(t_ns)
    assert seen.t_ns == SECOND and seen.live_ns == 2 * SECOND
    assert seen.measured()["q"][0] == 2.0
    assert seen.undelayed(2 * SECOND) == seen.t_ns == 2 * SECOND


def test_what_is_waited_for_longer_than_a_second_is_told_once_each_time():
    """A void as not_ready sends whoever may know the arms into the controller's log: it has to be there."""
    told: list[str] = []
    seen = ObservationBuffer({"wrist": 0.35}, told.append)
    seen.pace = Pace(cameras=("wrist",), max_age_s=0.3)
    for i in range(30):
        seen.see(obs(i * SECOND // 10))
        seen.see(frame(i * SECOND // 10))
        assert not seen.ready(i * SECOND // 10)
    assert told == ["waits for a picture of camera wrist no older than 0.3 s: the newest is 0.35 s old"]
    seen.pace = Pace(cameras=("wrist",), max_age_s=0.4)
    assert seen.ready(3 * SECOND - SECOND // 10)
    assert not seen.ready(4 * SECOND) and not seen.ready(5 * SECOND)
    assert len(told) == 2, "it waits anew"


@pytest.mark.parametrize(("clock", "lines"), [("manual", 0), ("monotonic", 1)])
def test_in_simulated_time_nothing_is_told(clock: str, lines: int, caplog: pytest.LogCaptureFixture):
    """There the controller has no log of its own: a line would be read by people who may not know the arms."""
    seen = ObservationBuffer.of(changed(cell_named("sim_fr3"), {"cell": {"clock": clock}}))
    seen.pace = Pace(cameras=("wrist",), max_age_s=0.3)
    assert not any(seen.ready(i * SECOND) for i in range(3))
    assert len(caplog.records) == lines
