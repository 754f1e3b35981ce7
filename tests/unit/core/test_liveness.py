"""Who is there, and who is not any more."""

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.liveness import BEAT_LIMIT_NS, NO_PICTURE_YET, Presence


def hello(name: str) -> Message:
    return Message("run", "hello", sender=name)


def beats(*names: str) -> Message:
    return Message("run", "beats", {"names": list(names)})


def obs(mode: str = "idle", reason: str = "") -> Message:
    return Message("run", "obs", {"t_ns": 0, "mode": mode, "reason": reason, "clipped": ""}, sender="arm")


def test_a_node_is_there_from_its_hello():
    presence = Presence(["arm", "recorder"])
    assert presence.missing() == ["arm", "recorder"]
    presence.hear(hello("arm"), 10)
    assert presence.alive("arm") and presence.missing() == ["recorder"]
    assert presence.age("arm", 25) == 15 and presence.age("recorder", 25) is None


def test_a_node_that_was_asked_for_is_not_asked_again():
    presence = Presence(["arm"], asked={"arm": 5})
    assert presence.missing() == []


def test_a_node_is_silent_after_the_limit_and_not_before():
    presence = Presence(["arm"])
    presence.hear(hello("arm"), 0)
    assert presence.silent(BEAT_LIMIT_NS) == []
    assert presence.silent(BEAT_LIMIT_NS + 1) == ["arm"]
    presence.hear(beats("arm"), BEAT_LIMIT_NS)
    assert presence.silent(BEAT_LIMIT_NS + 1) == []


def test_a_late_beat_does_not_bring_a_dead_node_back():
    presence = Presence(["arm", "recorder"])
    for name in ("arm", "recorder"):
        presence.hear(hello(name), 0)
        presence.gone(name)
    presence.hear(beats("arm", "recorder"), 1)
    presence.hear(obs(), 2)
    assert not presence.alive("arm") and not presence.alive("recorder")
    assert presence.missing() == ["arm", "recorder"] and presence.silent(10 * BEAT_LIMIT_NS) == []


def test_a_dead_arms_last_observation_is_forgotten():
    presence = Presence(["arm"])
    presence.hear(hello("arm"), 0)
    presence.hear(obs("safety_stop", "reflex"), 5)
    assert (presence.obs_age(9), presence.mode, presence.mode_reason) == (4, "safety_stop", "reflex")
    presence.gone("arm")
    assert presence.obs_age(9) is None


def test_an_observation_is_a_heartbeat_of_the_arm():
    presence = Presence(["arm"])
    presence.hear(hello("arm"), 0)
    presence.hear(obs(), BEAT_LIMIT_NS)
    assert presence.silent(BEAT_LIMIT_NS + 1) == []


def test_the_limit_that_shapes_the_motion_is_shown_for_a_second():
    presence = Presence(["arm"])
    presence.hear(Message("run", "hello", sender="arm"), 0)
    body = {"t_ns": 0, "mode": "moving", "reason": "", "clipped": "joint 4 speed"}
    presence.hear(Message("run", "obs", body, sender="arm"), 5 * SECOND)
    presence.hear(Message("run", "obs", {**body, "clipped": ""}, sender="arm"), 5 * SECOND + SECOND // 2)
    assert presence.clip(5 * SECOND + SECOND // 2) == "joint 4 speed"
    assert presence.clip(6 * SECOND + 1) == ""


def test_a_camera_sees_from_its_own_word_on_and_forgets_it_with_its_process():
    presence = Presence(["camera:wrist"])
    assert presence.unseeing("camera:wrist") == "", "that its process is not there is another matter"
    presence.hear(hello("camera:wrist"), 0)
    assert presence.unseeing("camera:wrist") == NO_PICTURE_YET
    for lost in ("", "the cable is out"):
        presence.hear(Message("run", "camera", {"name": "camera:wrist", "lost": lost}), 1)
        assert presence.unseeing("camera:wrist") == lost
    presence.gone("camera:wrist")
    presence.hear(hello("camera:wrist"), 2)
    assert presence.unseeing("camera:wrist") == NO_PICTURE_YET
