"""Practice: nothing moves before the hand has hold of the robot, and whatever ends it stops the robot first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labctl.bus import Message
from labctl.cli.teleop import text_of
from labctl.clock import MILLISECOND, SECOND
from labctl.nodes.practice import MESSAGES, PRACTICE, Phase, PracticeNode, View

LEASE_NS = 300 * MILLISECOND


class Desk:
    """A PracticeNode on a clock by hand: what it was told, what it sent, what it showed."""

    def __init__(self, **given: Any) -> None:
        self.views: list[View] = []
        self.node = PracticeNode(LEASE_NS, self.views.append, **given)
        self.now_ns = 0
        self.step()

    def step(self, *mail: Message, after_ms: int = 0) -> list[Message]:
        self.now_ns += after_ms * MILLISECOND
        step = self.node.step(self.now_ns, list(mail))
        assert not step.refused, step.refused
        return step.out

    def obs(self, mode: str = "idle", *, dq: float = 0.0, reason: str = "", after_ms: int = 20) -> list[Message]:
        body = {"t_ns": self.now_ns, "mode": mode, "reason": reason, "clipped": ""}
        arrays = {"q": np.zeros(7), "dq": np.full(7, dq), "tcp": np.full(7, 0.4), "gripper": np.array([0.08])}
        return self.step(Message("@obs", "obs", body, arrays, "arm"), after_ms=after_ms)

    def hello(self, name: str) -> list[Message]:
        return self.step(Message("run", "hello", sender=name))

    def ready(self) -> list[Message]:
        return self.step(Message("run", "ready", {"episode": PRACTICE, "private": {}}, sender="controller"))

    def drive(self) -> list[Message]:
        """The robot is there, then the hand: up to the start."""
        self.hello("arm"), self.hello("controller"), self.obs(), self.obs()
        return self.ready()


def kinds(out: list[Message]) -> list[tuple[str, str]]:
    return [(message.to, message.kind) for message in out]


def leases(out: list[Message]) -> list[dict[str, Any]]:
    return [dict(message.body) for message in out if message.kind == "lease"]


def test_it_asks_for_a_robot_and_a_hand_and_for_nothing_else():
    node = PracticeNode(LEASE_NS, lambda view: None)
    spawned = [message.body["name"] for message in node.step(0, []).out if message.kind == "spawn"]
    assert spawned == ["arm", "controller"], "no recorder, no camera"


def test_there_is_no_lease_before_the_hand_is_ready():
    desk = Desk()
    sent = desk.hello("arm") + desk.hello("controller")
    for _ in range(50):
        sent += desk.obs()
    assert kinds(sent).count(("controller", "prepare")) == 1
    assert leases(sent) == [] and ("controller", "start") not in kinds(sent)
    out = desk.ready()
    assert kinds(out) == [("@lease", "lease"), ("controller", "start")]
    assert leases(out)[0]["until_ns"] == desk.now_ns + LEASE_NS


def test_a_hand_is_asked_for_once_the_robot_is_there():
    desk = Desk()
    assert kinds(desk.hello("controller") + desk.step(after_ms=100)) == []
    desk.hello("arm")
    assert ("controller", "prepare") in kinds(desk.obs() + desk.step())


def test_the_lease_is_renewed_three_times_per_duration():
    desk = Desk()
    sent = desk.drive()
    for _ in range(30):
        sent += desk.obs(mode="moving")
    assert len(leases(sent)) == 1 + 600 // 100


@pytest.mark.parametrize("still_ms", [40, 400])
def test_ctrl_c_stops_the_arm_and_waits_until_it_stands(still_ms: int):
    desk = Desk()
    desk.drive()
    desk.obs(mode="moving", dq=0.4, after_ms=1000)
    out = desk.step(Message("run", "shutdown", sender="@host"))
    assert [lease["until_ns"] for lease in leases(out)] == [0]
    assert ("arm", "stop") in kinds(out) and ("controller", "close") in kinds(out)
    for _ in range(still_ms // 20):
        assert leases(desk.obs(mode="moving", dq=0.2)) == [] and not desk.node.finished
    desk.obs(mode="stopped")
    assert desk.node.finished and desk.node.ended.at_rest and not desk.node.ended.failed
    assert desk.node.ended.driven_s == pytest.approx(1.0)


def test_an_arm_that_does_not_come_to_rest_is_said():
    desk = Desk()
    desk.drive()
    desk.step(Message("run", "shutdown"))
    for _ in range(110):
        desk.obs(mode="moving", dq=0.2)
    assert desk.node.finished and not desk.node.ended.at_rest


def test_what_the_arm_was_seen_to_do_before_it_was_stopped_does_not_count_as_rest():
    desk = Desk()
    desk.drive()
    desk.step(Message("run", "shutdown"))
    assert not desk.node.finished


def test_a_device_that_is_gone_ends_it_and_says_why():
    desk = Desk()
    desk.drive()
    failed = {"name": "controller", "episode": PRACTICE, "private": "gamepad is gone: it was unplugged"}
    out = desk.step(Message("run", "failed", failed, sender="controller"))
    assert ("arm", "stop") in kinds(out) and leases(out)[0]["until_ns"] == 0
    desk.obs(mode="stopped")
    assert desk.node.finished and desk.node.ended.failed
    assert desk.node.ended.why == "gamepad is gone: it was unplugged"
    assert "gamepad is gone: it was unplugged" in desk.views[-1].state


def test_a_robot_that_stops_itself_ends_it():
    desk = Desk()
    desk.drive()
    event = {"kind": "safety_stop", "t_ns": 0, "body": {"reason": "collision"}}
    desk.step(Message("run", "event", event, sender="arm"))
    assert desk.node.ended.failed and desk.node.ended.why == "the robot stopped itself: collision"


@pytest.mark.parametrize("mode", ["safety_stop", "fault"])
def test_a_robot_found_stopped_is_not_driven_unless_a_person_has_looked(mode):
    desk = Desk()
    desk.hello("arm")
    desk.obs(mode, reason="user stop")
    assert desk.node.ended.failed and desk.node.ended.why.endswith("user stop; look at it, then add --recover")
    desk = Desk(recover=True)
    desk.hello("arm"), desk.hello("controller")
    news = {"kind": mode, "t_ns": 0, "body": {"reason": "user stop"}}
    desk.step(Message("run", "event", news, sender="arm"))
    assert ("arm", "recover") in kinds(desk.obs(mode, reason="user stop"))
    assert ("arm", "recover") not in kinds(desk.obs(mode, reason="user stop")), "once"
    desk.obs("idle"), desk.obs("idle")
    assert leases(desk.ready()), "the hand drives"


def test_home_comes_first_under_a_lease_of_its_own_and_the_hand_after_it():
    condition = {"object": "towels", "layout": "layout-1", "items": 4}
    desk = Desk(home=condition)
    desk.hello("arm"), desk.hello("controller")
    (stage,) = [message for message in desk.obs() if message.kind == "stage"]
    assert stage.body["condition"] == condition and stage.body["until_ns"] == desk.now_ns + LEASE_NS
    sent = []
    for _ in range(30):
        sent += desk.obs(mode="moving")
    assert {lease["epoch"] for lease in leases(sent)} == {stage.body["epoch"]}
    assert ("controller", "prepare") not in kinds(sent), "a leader is aligned with where the robot begins"
    out = desk.step(Message("run", "staged", {"trial": PRACTICE}, sender="arm"))
    assert ("controller", "prepare") in kinds(out) and leases(out)[-1]["until_ns"] == 0
    out = desk.ready()
    assert ("controller", "start") in kinds(out)
    assert leases(out)[-1]["epoch"] > stage.body["epoch"]


def test_a_process_that_dies_ends_it_with_its_last_words():
    desk = Desk()
    desk.drive()
    desk.step(
        Message("run", "failing", {"name": "arm", "reason": "no state for 0.3 s"}, sender="arm"),
        Message("run", "exited", {"name": "arm", "reason": "ended with exit code 1", "asked": False}, sender="@host"),
    )
    desk.step()
    assert desk.node.finished and not desk.node.ended.at_rest
    assert desk.node.ended.why == "the robot's process is gone: no state for 0.3 s"


def test_a_robot_that_never_answers_is_given_up():
    desk = Desk()
    desk.step(after_ms=31_000)
    assert desk.node.ended.failed and "says nothing for 30 s" in desk.node.ended.why


def test_the_line_says_device_clutch_arm_gripper_limit_and_news():
    desk = Desk()
    desk.drive()
    hand = {"device": "gamepad", "waits": "hold the clutch", "grip": 1.0}
    desk.step(Message("run", "hand", {"hand": hand}, sender="controller"))
    assert text_of(desk.views[-1]) == "gamepad: hold the clutch | robot idle | gripper 80 mm | tool 0.40 0.40 0.40 m"
    desk.step(Message("run", "hand", {"hand": {**hand, "waits": ""}}, sender="controller"))
    note = {"kind": "note", "t_ns": 0, "body": {"text": "targets went stale"}}
    clipped = {"t_ns": 0, "mode": "moving", "reason": "", "clipped": "tool speed"}
    arrays = {"dq": np.zeros(7), "tcp": np.full(7, 0.4), "gripper": np.array([0.02])}
    desk.step(Message("run", "event", note, sender="arm"), Message("@obs", "obs", clipped, arrays, "arm"), after_ms=100)
    says = (
        "gamepad: the hand drives | robot moving | gripper 20 mm | held back by tool speed | note: targets went stale"
    )
    assert text_of(desk.views[-1]).startswith(says)
    desk.step(after_ms=1400)
    desk.step(Message("run", "beats", {"names": ["arm", "controller"]}), after_ms=1)
    assert "held back" not in text_of(desk.views[-1]), "a limit is shown for a second"
    axes = [["rail", "m"], ["fr3_joint1", "rad"], ["vacuum", "1"]]
    arrays = {"dq": np.zeros(2), "q": np.array([0.25, 1.0]), "tcp": np.full(7, 0.4), "gripper": np.array([0.5])}
    desk.step(Message("@obs", "obs", {**clipped, "axes": axes}, arrays, "arm"), after_ms=100)
    assert "| rail 0.25 m | vacuum 0.50 | held back" in text_of(desk.views[-1])


ENDS = ("exited", "failed", "done", "shutdown", "suspended", "event")
# What leads on, by hand; everything else leaves the phase as it is.
LEADS = {
    (Phase.STARTING, "obs"): Phase.WAITING,
    (Phase.HOMING, "staged"): Phase.WAITING,
    (Phase.HOMING, "unstaged"): Phase.ENDING,
    (Phase.WAITING, "ready"): Phase.DRIVING,
} | {(phase, kind): Phase.ENDING for phase in Phase for kind in ENDS}
LEADS[Phase.STARTING, "event"] = Phase.STARTING  # of the time before: the mode says whether it still stands


def desk_in(phase: Phase) -> Desk:
    desk = Desk(home={"object": "towels", "layout": "layout-1", "items": 4} if phase == Phase.HOMING else None)
    if phase in (Phase.HOMING, Phase.WAITING):
        desk.hello("arm"), desk.obs()
    elif phase != Phase.STARTING:
        desk.drive()
    if phase == Phase.ENDING:
        desk.step(Message("run", "shutdown"))
    return desk


@pytest.mark.parametrize("kind", [*MESSAGES, "no such kind"])
@pytest.mark.parametrize("phase", list(Phase))
def test_a_message_leads_where_the_table_says_and_else_nowhere(phase, kind):
    bodies: dict[str, dict[str, Any]] = {
        "beats": {"names": ["arm", "controller"]},
        "hand": {"hand": {"device": "gamepad", "waits": "", "grip": 1.0}},
        "event": {"kind": "safety_stop", "t_ns": 0, "body": {"reason": "collision"}},
        "failing": {"name": "arm", "reason": "no state for 0.3 s"},
        "exited": {"name": "arm", "reason": "ended with exit code 1", "asked": False},
        "suspended": {"for_ns": 600 * SECOND},
        "failed": {"name": "controller", "private": "it was unplugged"},
    }
    desk = desk_in(phase)
    assert desk.node.phase == phase
    if kind == "obs":
        desk.obs()
    else:
        desk.step(Message("run", kind, bodies.get(kind, {"trial": PRACTICE, "episode": PRACTICE}), sender="arm"))
    assert desk.node.phase == LEADS.get((phase, kind), phase)


def test_an_observation_that_does_not_fit_is_refused_in_one_line_and_the_practice_goes_on():
    node = PracticeNode(LEASE_NS, lambda view: None)
    step = node.step(0, [Message("@obs", "obs", {"t_ns": 0, "mode": 7, "reason": "", "clipped": ""}, sender="arm")])
    assert step.refused == ["message obs: mode is 7, not str; refused, from arm"]
    assert not node.finished
