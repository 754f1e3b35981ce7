"""Who is there, and who is not any more."""

import pytest

from labctl.clock import SECOND
from labctl.core.liveness import BEAT_LIMIT_NS, LOADING_NS, NO_PICTURE_YET, START_NS, Liveness
from labctl.messages.motion import Obs
from labctl.messages.pictures import CameraState
from labctl.messages.processes import Beats
from labctl.messages.sensing import SensorState


def obs(mode: str = "idle", reason: str = "", clipped: str = "") -> Obs:
    return Obs(t_ns=0, mode=mode, reason=reason, clipped=clipped)


def test_a_node_is_there_from_its_hello():
    liveness = Liveness(["arm", "recorder"])
    assert liveness.missing() == ["arm", "recorder"]
    liveness.greeted("arm", 10)
    assert liveness.alive("arm") and liveness.missing() == ["recorder"]
    assert liveness.age("arm", 25) == 15 and liveness.age("recorder", 25) is None


def test_a_node_that_was_asked_for_is_not_asked_again():
    liveness = Liveness(["arm"], asked={"arm": 5})
    assert liveness.missing() == []


def test_a_node_is_silent_after_the_limit_and_not_before():
    liveness = Liveness(["arm"])
    liveness.greeted("arm", 0)
    assert liveness.silent(BEAT_LIMIT_NS) == []
    assert liveness.silent(BEAT_LIMIT_NS + 1) == ["arm"]
    liveness.beaten(Beats(["arm"]), BEAT_LIMIT_NS)
    assert liveness.silent(BEAT_LIMIT_NS + 1) == []


def test_a_late_beat_does_not_bring_a_dead_node_back():
    liveness = Liveness(["arm", "recorder"])
    for name in ("arm", "recorder"):
        liveness.greeted(name, 0)
        liveness.gone(name)
    liveness.beaten(Beats(["arm", "recorder"]), 1)
    liveness.observed(obs(), 2)
    assert not liveness.alive("arm") and not liveness.alive("recorder")
    assert liveness.missing() == ["arm", "recorder"] and liveness.silent(10 * BEAT_LIMIT_NS) == []


def test_a_dead_arms_last_observation_is_forgotten():
    liveness = Liveness(["arm"])
    liveness.greeted("arm", 0)
    liveness.observed(obs("safety_stop", "reflex"), 5)
    assert (liveness.obs_age(9), liveness.mode, liveness.mode_reason) == (4, "safety_stop", "reflex")
    liveness.gone("arm")
    assert liveness.obs_age(9) is None


def test_an_observation_is_a_heartbeat_of_the_arm():
    liveness = Liveness(["arm"])
    liveness.greeted("arm", 0)
    liveness.observed(obs(), BEAT_LIMIT_NS)
    assert liveness.silent(BEAT_LIMIT_NS + 1) == []


def test_the_limit_that_shapes_the_motion_is_shown_for_a_second():
    liveness = Liveness(["arm"])
    liveness.greeted("arm", 0)
    liveness.observed(obs("moving", clipped="joint 4 speed"), 5 * SECOND)
    liveness.observed(obs("moving"), 5 * SECOND + SECOND // 2)
    assert liveness.clip(5 * SECOND + SECOND // 2) == "joint 4 speed"
    assert liveness.clip(6 * SECOND + 1) == ""


def test_a_camera_sees_from_its_own_word_on_and_forgets_it_with_its_process():
    liveness = Liveness(["camera:wrist"])
    assert liveness.unseeing("camera:wrist") == "", "that its process is not there is another matter"
    liveness.greeted("camera:wrist", 0)
    assert liveness.unseeing("camera:wrist") == NO_PICTURE_YET
    for lost in ("", "the cable is out"):
        liveness.sees(CameraState("camera:wrist", lost))
        assert liveness.unseeing("camera:wrist") == lost
    liveness.gone("camera:wrist")
    liveness.greeted("camera:wrist", 2)
    assert liveness.unseeing("camera:wrist") == NO_PICTURE_YET


def began(name: str) -> Liveness:
    """A process that has said hello a second after its start, and nothing since."""
    liveness = Liveness([name])
    liveness.ask(name, 0)
    liveness.greeted(name, SECOND)
    return liveness


@pytest.mark.parametrize("name", ["arm", "camera:wrist", "sensor:force"])
def test_one_that_still_connects_to_its_device_has_the_time_that_a_start_has(name: str) -> None:
    """A robot's node waits for its connection, 5 s at an FR3: it was killed after 1.5 of them, again and again."""
    liveness = began(name)
    assert liveness.silent(START_NS - 1) == []
    assert liveness.silent(START_NS) == [name]


def test_one_that_has_given_something_is_silent_after_the_limit_however_young_it_is() -> None:
    arm, camera, sensor = began("arm"), began("camera:wrist"), began("sensor:force")
    arm.observed(obs(), 2 * SECOND)
    camera.sees(CameraState("camera:wrist", ""))
    sensor.measures(SensorState("sensor:force", ""))
    assert arm.silent(2 * SECOND + BEAT_LIMIT_NS + 1) == ["arm"]
    assert camera.silent(SECOND + BEAT_LIMIT_NS + 1) == ["camera:wrist"]
    assert sensor.silent(SECOND + BEAT_LIMIT_NS + 1) == ["sensor:force"]


def test_one_without_a_device_is_silent_after_the_limit() -> None:
    assert began("recorder").silent(SECOND + BEAT_LIMIT_NS + 1) == ["recorder"]


def test_a_controller_may_be_silent_while_it_loads_and_not_once_it_is_ready() -> None:
    """A policy that held its process for 3 s while it loaded was "no heartbeat" in each of its trials."""
    made = began("controller")
    assert made.silent(SECOND + LOADING_NS) == []
    assert made.silent(SECOND + LOADING_NS + 1) == ["controller"]
    made.readied()
    assert made.silent(SECOND + BEAT_LIMIT_NS + 1) == ["controller"]
    made.gone("controller")
    made.greeted("controller", 0)
    assert made.silent(LOADING_NS) == [], "the next trial's loads anew"
