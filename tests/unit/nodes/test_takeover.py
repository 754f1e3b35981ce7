"""A hand takes the robot from a policy while its dead-man is held, and gives it back; the run process is told both."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.devices import ActionChunk, Observation, Pace
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Caps, Reading
from labctl.errors import DeviceLost
from labctl.messages.driving import Prepare
from labctl.nodes import controller as module
from labctl.nodes.controller import ControllerNode
from labctl.nodes.policy_stream import POLICY
from labctl.testing.given import SIMULATED

DOF = 7
POSE = np.array([0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])
HELD_M = 0.03  # the policy holds an item
PUSH = np.array([1.0, 0, 0, 0, 0, 0])


class Policy:
    """Wants to stay where it is, for a long time."""

    kind, load_s, warm_s, pace = "sim", 0.0, 0.0, Pace()

    def __init__(self) -> None:
        self.saw: list[Observation] = []
        self.closed = 0

    def load(self) -> None: ...
    def warm(self, observation: Observation) -> None: ...
    def reset(self, seed: int) -> None: ...

    def infer(self, observation: Observation) -> ActionChunk:
        self.saw.append(observation)
        return ActionChunk("tcp_pose", np.tile(POSE, (20, 1)), np.full(20, HELD_M), 0.1, 20)

    def close(self) -> None:
        self.closed += 1


class Stick:
    """A device of two axes and a dead-man that says what it is told to."""

    leader, quiet = False, True

    def __init__(self) -> None:
        self.engaged, self.gone, self.grip = False, False, 1.0

    def open(self) -> None: ...
    def poll(self) -> Reading | None: ...
    def close(self) -> None: ...


TASK = Prepare("p", {}, "policy", 5, "Move.", "e", hand={"driver": "teleop", "options": {}})


class Stage:
    """A controller node with a policy and a real `Teleop` behind its gate; the device is read when asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.policy, self.stick, self.clock = Policy(), Stick(), ManualClock(SECOND)
        self.hand = Teleop(self.stick, "stick", Caps(), axes=np.eye(6), opening_m=(0.0, 0.08), clock=self.clock)
        # type: ignore[assignment]
        self.hand._poller = SimpleNamespace(newest=self.newest, start=lambda: None, stop=lambda: None)
        monkeypatch.setattr(module, "load", lambda name, options, **given: self.policy if name == "p" else self.hand)
        self.node, self.said, self.work = ControllerNode(**SIMULATED), [], []
        self.send(Message("controller", "open", {"episode": "e"}), TASK.to("controller"))
        self.send(self.obs())
        self.finish()
        self.finish()
        self.after(1)
        self.send(Message("controller", "start", {"episode": "e", "epoch": 3}))
        self.tick(1)

    def newest(self) -> Reading | None:
        if self.stick.gone:
            raise DeviceLost("stick is gone")
        return Reading(self.clock.now_ns(), axes=PUSH, engaged=self.stick.engaged, grip=self.stick.grip)

    def after(self, ms: int) -> None:
        self.clock.sleep_until(self.clock.now_ns() + ms * MILLISECOND)

    def send(self, *messages: Message) -> list[Message]:
        step = self.node.step(self.clock.now_ns(), list(messages))
        self.said += step.out
        self.work: list[Work] = [*self.work, *step.work]
        return step.out

    def obs(self) -> Message:
        return Message("@obs", "obs", {"t_ns": self.clock.now_ns()}, {"q": np.zeros(DOF), "tcp": POSE, "gripper": 0.04})

    def tick(self, ms: int = 10) -> list[Message]:
        self.after(ms)
        return self.send(self.obs())

    def finish(self) -> list[Message]:
        work = self.work.pop(0)
        return self.send(Message("controller", work.kind, {"result": work.call(), "tag": ""}))

    def told(self, kind: str) -> list[Message]:
        return [message for message in self.said if message.kind == kind]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_the_hand_drives_from_the_grip_to_the_release_and_the_policy_is_asked_anew(stage):
    stage.finish()  # the policy's answer: a chunk of two seconds is on its way
    assert [message.body["space"] for message in stage.told("target")] == ["tcp_pose"]
    stage.stick.engaged = True
    begun = [message for message in stage.tick() if message.kind == "touch"]
    assert [m.body["phase"] for m in begun] == ["begin"] and begun[0].body["t_ns"] == stage.clock.now_ns()
    for _ in range(50):
        stage.tick()
    hand = [message for message in stage.told("target") if message.body["space"] == "tcp_velocity"]
    assert len(hand) == 51, "at once, and with every observation"
    assert all(message.body["epoch"] == 3 and message.body["episode"] == "e" for message in hand)
    assert not stage.work, "a policy is not asked while a hand drives"
    stage.stick.engaged = False
    released = stage.tick()
    assert [m.body["phase"] for m in released if m.kind == "touch"] == ["end"]
    rest = [m for m in released if m.kind == "target"]
    assert [m.body["space"] for m in rest] == ["tcp_velocity"] and not rest[0].arrays["values"].any(), "rest, at once"
    assert len(stage.work) == 1, "and is asked with what is seen after the release"
    stage.finish()
    assert stage.policy.saw[-1].t_ns == stage.clock.now_ns()
    assert stage.told("target")[-1].body["space"] == "tcp_pose"


def test_screens_hear_of_the_hand_while_it_drives_five_times_a_second_and_that_it_let_go(stage):
    """The page of the hand said that nobody drives, while somebody did."""
    stage.finish()
    stage.tick()
    assert not stage.told("hand"), "nobody drives"
    stage.stick.engaged = True
    (first,) = [message.body for message in stage.tick() if message.kind == "hand"]
    assert (first["episode"], first["hand"]["device"], first["hand"]["waits"]) == ("e", "stick", "")
    for _ in range(100):
        stage.tick()
    assert len(stage.told("hand")) == 1 + 5
    assert stage.told("hand")[-1].body["hand"]["ramp"] == 1.0
    stage.stick.engaged = False
    assert [m.body for m in stage.tick() if m.kind == "hand"] == [{"episode": "e"}], "at once"
    for _ in range(100):
        stage.tick()
    assert len(stage.told("hand")) == 1 + 5 + 1


def test_a_hand_is_ramped_in_again_after_every_grip(stage):
    stage.finish()
    speeds = []
    for _ in range(2):
        stage.stick.engaged = True
        stage.tick()
        speeds.append(float(stage.told("target")[-1].arrays["values"][0, 0]))
        for _ in range(60):
            stage.tick()
        assert stage.told("target")[-1].arrays["values"][0, 0] == pytest.approx(Caps().linear_m_s)
        stage.stick.engaged = False
        stage.tick()
    assert speeds == [0.0, 0.0]


def test_who_takes_over_from_an_arm_that_holds_an_item_does_not_drop_it(stage):
    stage.finish()
    stage.stick.engaged = True
    stage.tick()
    assert stage.told("target")[-1].arrays["gripper"] == pytest.approx(HELD_M), "the device says open, and always did"
    stage.stick.grip = 0.0
    stage.tick(60)
    assert stage.told("target")[-1].arrays["gripper"] == pytest.approx(0.0), "the hand closed it"
    stage.stick.grip = 1.0
    stage.tick(60)
    assert stage.told("target")[-1].arrays["gripper"] == pytest.approx(0.08), (
        "and opened it: from now on it is the hand's"
    )


def test_an_answer_that_was_asked_for_before_the_grip_is_never_used(stage):
    stage.stick.engaged = True
    stage.tick()
    stage.stick.engaged = False
    stage.tick()
    before = len(stage.told("target"))
    assert len(stage.work) == 1, "the first question is still open: a second may not run beside it"
    stage.finish()
    assert len(stage.told("target")) == before, "two from the hand, none of this answer"
    stage.tick()
    assert len(stage.work) == 1
    stage.finish()
    assert stage.told("target")[-1].body["space"] == "tcp_pose"
    stage.send(Message("controller", "close", {"episode": "e"}))
    chunks = [message.arrays["values"] for message in stage.told("chunk")]
    executed = [int(row[POLICY.columns.index("executed")]) for rows in chunks for row in rows]
    assert executed == [0, 20]


def test_what_was_seen_since_the_release_is_asked_about_in_the_visit_in_which_the_former_answer_comes(stage):
    stage.stick.engaged = True
    stage.tick()
    stage.stick.engaged = False
    stage.tick()
    stage.tick()
    assert len(stage.work) == 1, "the question of before the grip is still open"
    stage.after(5)
    stage.finish()
    assert len(stage.work) == 1, "the next one, without another state"


def test_a_device_that_goes_away_gives_the_arm_back(stage):
    stage.finish()
    stage.stick.engaged = True
    stage.tick()
    stage.stick.gone = True
    assert [m.body["phase"] for m in stage.tick() if m.kind == "touch"] == ["end"]
    assert len(stage.work) == 1 and not stage.told("failed")
    assert [m.body["reason"] for m in stage.told("hand_lost")] == ["stick is gone"]
    stage.send(Message("controller", "close", {"episode": "e"}))
    assert stage.policy.closed == 1


def test_a_device_that_goes_away_while_the_policy_drives_is_told_once(stage):
    """Whoever stands by with it would squeeze a clutch that nobody reads."""
    stage.finish()
    stage.stick.gone = True
    for _ in range(3):
        stage.tick()
    assert [m.body for m in stage.told("hand_lost")] == [{"episode": "e", "reason": "stick is gone"}]
    assert not stage.told("touch") and not stage.told("failed")


def test_without_a_hand_in_the_task_nothing_is_looked_at(monkeypatch):
    stage = Stage(monkeypatch)
    stage.node._hand = None
    stage.finish()
    stage.stick.engaged = True
    stage.tick()
    assert not stage.told("touch")


def test_a_device_that_is_not_there_before_go_is_a_controller_that_failed(monkeypatch):
    def gone(self):
        raise DeviceLost("no stick is plugged in")

    monkeypatch.setattr(Teleop, "load", gone)
    policy, hand = Policy(), Teleop(Stick(), "stick", Caps(), axes=np.eye(6), opening_m=(0.0, 0.08))
    monkeypatch.setattr(module, "load", lambda name, options, **given: policy if name == "p" else hand)
    node = ControllerNode(**SIMULATED)
    (work,) = node.step(SECOND, [TASK.to("controller")]).work
    with pytest.raises(DeviceLost, match="no stick"):
        work.call()
    said = node.step(SECOND, [Message("controller", "loaded", {"error": "no stick is plugged in", "tag": ""})]).out
    assert [m.kind for m in said if m.to == "run"] == ["failed"]
    assert policy.closed == 1
