"""Who is there, and who is not any more."""

from labctl.clock import SECOND
from labctl.core.liveness import BEAT_LIMIT_NS, NO_PICTURE_YET, Liveness
from labctl.messages.motion import Obs
from labctl.messages.pictures import CameraState
from labctl.messages.processes import Beats


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
