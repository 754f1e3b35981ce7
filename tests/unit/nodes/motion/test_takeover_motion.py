"""What the arm does when a hand takes it from a policy in mid-motion: it brakes, and then follows the hand as closely
as in a trial of the hand's own.

Both nodes, the teleoperation controller with a leader, and the simulated FR3, in its time.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.robots.hand_to_robot import Device, followed

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.devices import ActionChunk, Actions, Observation, Pace, Setpoints, load
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Caps, Reading
from labctl.messages.driving import Prepare
from labctl.messages.motion import Lease
from labctl.nodes import controller as module
from labctl.nodes.controller import ControllerNode
from labctl.nodes.robot import RobotNode
from labctl.testing.given import CELL, FIXTURE, SIMULATED

TICK = 20 * MILLISECOND
TASK = Prepare("p", {}, "policy", 5, "Move.", "e", hand={"driver": "teleop", "options": {}})
SPEED, JOINT = 0.5, 3  # of the policy, rad/s


class Policy:
    """Turns joint 4 at a steady speed, by targets for two seconds."""

    kind, load_s, warm_s, pace = "sim", 0.0, 0.0, Pace()

    def __init__(self, hz: int, speed: float) -> None:
        self._hz, self._speed = hz, speed

    def load(self) -> None: ...
    def warm(self, observation: Observation) -> None: ...
    def reset(self, seed: int) -> None: ...
    def close(self) -> None: ...

    def infer(self, observation: Observation) -> ActionChunk:
        n = 2 * self._hz
        q = np.tile(observation.arrays["q"], (n, 1))
        q[:, JOINT] += self._speed * np.arange(1, n + 1) / self._hz
        return ActionChunk("joint_position", q, np.full(n, 0.08), 1 / self._hz, n)


class Lab:
    """A leader that stands where the arm is until its clutch is closed, and then moves by `turn` (dof,) rad."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, policy: Policy) -> None:
        self.clock = ManualClock(5 * SECOND)
        self.robot = load("sim_fr3", {}, cell=CELL, fixture=FIXTURE)
        self.arm = RobotNode(self.robot, tick_ns=TICK, stale_ns=SECOND // 2)
        self.arm.step(self.clock.now_ns(), [])
        self.robot.stage({"object": "towels", "layout": "layout-1", "items": 3}, 1, self.clock.now_ns())
        self.arm._hold_here()
        self._q, self.turn, self.engaged = self.robot.observe()["q"], np.zeros(self.robot.dof), False
        hand = Teleop(Device(leader=True), "leader", Caps(), axes=np.eye(6), opening_m=(0.0, 0.08), clock=self.clock)
        # type: ignore[assignment]
        hand._poller = SimpleNamespace(newest=self._newest, start=lambda: None, stop=lambda: None)
        monkeypatch.setattr(module, "load", lambda name, options, **given: policy if name == "p" else hand)
        self.node, self._work, self._to_arm = ControllerNode(**SIMULATED), list[Work](), list[Message]()
        self.began_ns = 0  # when the hand took the arm last, or gave it back
        self.targets = list[tuple[int, int]]()  # each: when it was sent, and due so long after, ns
        self._acts, self._follow = list[Actions](), self.robot.follow
        monkeypatch.setattr(self.robot, "follow", self._followed)
        self._send(Message("controller", "open", {"episode": "e"}), TASK.to("controller"))
        self.go(0.08)
        self._send(Message("controller", "start", {"episode": "e", "epoch": 1}))

    def _newest(self) -> Reading:
        return Reading(self.clock.now_ns(), joints=self._q + self.turn, engaged=self.engaged, grip=1.0)

    def _followed(self, wanted: Setpoints) -> Actions:
        self._acts.append(self._follow(wanted))
        return self._acts[-1]

    def _send(self, *messages: Message) -> None:
        step = self.node.step(self.clock.now_ns(), list(messages))
        self._work += step.work
        self._to_arm += [message for message in step.out if message.to == "arm"]
        for message in step.out:
            if message.kind == "touch":
                self.began_ns = self.clock.now_ns()
            elif message.kind == "target":
                self.targets.append((self.clock.now_ns(), message.body["dt_ns"]))

    def tick(self) -> None:
        now_ns = self.clock.now_ns() + TICK
        self.clock.sleep_until(now_ns)
        mail, self._to_arm = [Lease(1, "e", now_ns + SECOND).to("@lease"), *self._to_arm], []
        for seen in self.arm.step(now_ns, mail).out:
            if seen.kind == "obs":
                if not self.engaged:
                    self._q = seen.arrays["q"].copy()
                self._send(Message("@obs", "obs", seen.body, seen.arrays))
        while self._work:
            work = self._work.pop(0)
            self._send(Message("controller", work.kind, {"result": work.call(), "tag": ""}))

    def go(self, seconds: float) -> None:
        for _ in range(round(seconds * SECOND) // TICK):
            self.tick()

    def way(self, joint: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Since the hand took the arm: times in s, what was asked of a joint and what was sent, rad, all (n,)."""
        t_ns = np.concatenate([one.t_ns for one in self._acts])
        rows = [np.concatenate([getattr(one, name)[:, joint] for one in self._acts]) for name in ("requested", "sent")]
        since = t_ns >= self.began_ns
        return (t_ns[since] - self.began_ns) / SECOND, rows[0][since], rows[1][since]


@pytest.mark.parametrize("hz", [10, 15, 30, 50])
def test_an_arm_that_is_taken_in_motion_goes_no_faster_and_no_farther_than_to_its_rest(monkeypatch, hz):
    lab = Lab(monkeypatch, Policy(hz, SPEED))
    lab.go(0.4)
    lab.engaged = True
    lab.go(0.8)
    t_s, requested, sent = lab.way(JOINT)
    speeds = np.diff(sent) / np.diff(t_s)
    assert speeds[0] == pytest.approx(SPEED, rel=0.05) and speeds.max() < 1.05 * SPEED, "it never speeds up"
    assert requested.max() - requested[0] < SPEED * 0.03, "what was to come does not come at once"
    assert sent.max() - sent[0] < 0.03, "0.081 to 0.097 rad when a hand's first target was due after 0.15 s"
    assert np.ptp(sent[t_s > 0.5]) < 1e-3 and abs(sent[-1] - sent[0]) < 1e-3, "it stands where it was taken"


def test_a_leader_that_took_the_arm_is_asked_at_each_observation_and_followed_as_in_its_own_trial(monkeypatch):
    lab = Lab(monkeypatch, Policy(15, 0.0))
    lab.go(0.4)
    lab.engaged = True
    lab.go(0.7)
    begins_ns, (*_, sent) = lab.clock.now_ns(), lab.way(6)
    start = sent[-1]
    for _ in range(50):
        lab.turn[6] = SPEED * (lab.clock.now_ns() + TICK - begins_ns) / SECOND
        lab.tick()
    asked = np.array([at for at, _ in lab.targets if at >= lab.began_ns])
    assert (np.diff(asked) == TICK).all(), "every 160 ms when a target was due after the time since the last question"
    t_s, _, sent = lab.way(6)
    t_s = t_s - (begins_ns - lab.began_ns) / SECOND
    found = followed(t_s, sent - start, SPEED, 1.0)
    assert found.late_s < 0.14 and found.speed == pytest.approx(1.0, abs=0.05), "0.26 s behind it, in jerks"


def test_the_first_target_of_every_grip_is_due_with_the_next_observation(monkeypatch):
    lab = Lab(monkeypatch, Policy(15, 0.0))
    for _ in range(2):
        lab.go(0.4)
        lab.engaged = True
        lab.go(0.1)
        (due_ns,) = [dt_ns for at, dt_ns in lab.targets if at == lab.began_ns]
        assert due_ns == 30 * MILLISECOND, "0.15 s, as long as the policy would have gone on, when it was long ago"
        lab.engaged = False
