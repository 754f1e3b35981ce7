"""Who is there, and who is not any more."""

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.liveness import BEAT_LIMIT_NS, NO_PICTURE_YET, Liveness


def hello(name: str) -> Message:
    return Message("run", "hello", sender=name)


def beats(*names: str) -> Message:
    return Message("run", "beats", {"names": list(names)})


def obs(mode: str = "idle", reason: str = "") -> Message:
    return Message("run", "obs", {"t_ns": 0, "mode": mode, "reason": reason, "clipped": ""}, sender="arm")


def test_a_node_is_there_from_its_hello():
    liveness = Liveness(["arm", "recorder"])
    assert liveness.missing() == ["arm", "recorder"]
    liveness.hear(hello("arm"), 10)
    assert liveness.alive("arm") and liveness.missing() == ["recorder"]
    assert liveness.age("arm", 25) == 15 and liveness.age("recorder", 25) is None


def test_a_node_that_was_asked_for_is_not_asked_again():
    liveness = Liveness(["arm"], asked={"arm": 5})
    assert liveness.missing() == []


def test_a_node_is_silent_after_the_limit_and_not_before():
    liveness = Liveness(["arm"])
    liveness.hear(hello("arm"), 0)
    assert liveness.silent(BEAT_LIMIT_NS) == []
    assert liveness.silent(BEAT_LIMIT_NS + 1) == ["arm"]
    liveness.hear(beats("arm"), BEAT_LIMIT_NS)
    assert liveness.silent(BEAT_LIMIT_NS + 1) == []


def test_a_late_beat_does_not_bring_a_dead_node_back():
    liveness = Liveness(["arm", "recorder"])
    for name in ("arm", "recorder"):
        liveness.hear(hello(name), 0)
        liveness.gone(name)
    liveness.hear(beats("arm", "recorder"), 1)
    liveness.hear(obs(), 2)
    assert not liveness.alive("arm") and not liveness.alive("recorder")
    assert liveness.missing() == ["arm", "recorder"] and liveness.silent(10 * BEAT_LIMIT_NS) == []


def test_a_dead_arms_last_observation_is_forgotten():
    liveness = Liveness(["arm"])
    liveness.hear(hello("arm"), 0)
    liveness.hear(obs("safety_stop", "reflex"), 5)
    assert (liveness.obs_age(9), liveness.mode, liveness.mode_reason) == (4, "safety_stop", "reflex")
    liveness.gone("arm")
    assert liveness.obs_age(9) is None


def test_an_observation_is_a_heartbeat_of_the_arm():
    liveness = Liveness(["arm"])
    liveness.hear(hello("arm"), 0)
    liveness.hear(obs(), BEAT_LIMIT_NS)
    assert liveness.silent(BEAT_LIMIT_NS + 1) == []


def test_the_limit_that_shapes_the_motion_is_shown_for_a_second():
    liveness = Liveness(["arm"])
    liveness.hear(Message("run", "hello", sender="arm"), 0)
    body = {"t_ns": 0, "mode": "moving", "reason": "", "clipped": "joint 4 speed"}
    liveness.hear(Message("run", "obs", body, sender="arm"), 5 * SECOND)
    liveness.hear(Message("run", "obs", {**body, "clipped": ""}, sender="arm"), 5 * SECOND + SECOND // 2)
    assert liveness.clip(5 * SECOND + SECOND // 2) == "joint 4 speed"
    assert liveness.clip(6 * SECOND + 1) == ""


def test_a_camera_sees_from_its_own_word_on_and_forgets_it_with_its_process():
    liveness = Liveness(["camera:wrist"])
    assert liveness.unseeing("camera:wrist") == "", "that its process is not there is another matter"
    liveness.hear(hello("camera:wrist"), 0)
    assert liveness.unseeing("camera:wrist") == NO_PICTURE_YET
    for lost in ("", "the cable is out"):
        liveness.hear(Message("run", "camera", {"name": "camera:wrist", "lost": lost}), 1)
        assert liveness.unseeing("camera:wrist") == lost
    liveness.gone("camera:wrist")
    liveness.hear(hello("camera:wrist"), 2)
    assert liveness.unseeing("camera:wrist") == NO_PICTURE_YET
