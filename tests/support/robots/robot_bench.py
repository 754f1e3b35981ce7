"""The robot's node on a bench: a robot of two joints that goes where it is told, visited every tick in simulated
time.
"""

from __future__ import annotations

import numpy as np

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Actions, Batch, DeviceEvent, RobotStatus, Setpoints, StreamSpec
from labctl.errors import DeviceRefused
from labctl.messages.motion import Lease, Target
from labctl.nodes.robot import RobotNode

TICK = 10 * MILLISECOND
STALE = 200 * MILLISECOND
LEASE = 300 * MILLISECOND


class Robot:
    """Two joints that are wherever they were last told; joint 2 is limited to 0.5 rad."""

    kind, dof, joint_names, control_hz, clipped = "sim", 2, ("j1", "j2"), 100.0, ""
    streams = (StreamSpec("arm/state", ("q1", "q2"), "rad", 100.0),)

    def __init__(self, takes_steps: bool) -> None:
        self.takes_steps = takes_steps
        self.q, self.gripper = np.zeros(2), np.zeros(1)
        self.followed: list[int] = []
        self.stops = 0
        self.mode, self.reason = "idle", ""
        self.happened: list[DeviceEvent] = []
        self.refusals = 0
        self.closed = False
        self.stagings: list[int] = []
        self.at_home = True

    def connect(self, now_ns: int) -> None:
        pass

    def stage(self, condition: dict, seed: int, now_ns: int) -> None:
        self.stagings.append(seed)

    def staged(self) -> bool:
        return self.at_home

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        return poses[:, :2]

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        return np.array([*q, 0.0, 1.0, 0.0, 0.0, 0.0])

    def follow(self, wanted: Setpoints) -> Actions:
        self.followed += wanted.t_ns.tolist()
        requested = np.column_stack([wanted.q, wanted.gripper])
        limited = np.minimum(requested, [9.0, 0.5, 1.0])
        sent = np.round(limited, 3)
        if len(sent):
            self.q, self.gripper = sent[-1, :2].copy(), sent[-1, 2:].copy()
        return Actions(wanted.t_ns, requested, limited, sent, np.zeros(len(sent)))

    def drain(self, now_ns: int) -> list[Batch]:
        return [Batch("arm/state", np.array([now_ns]), self.q[None, :])]

    def observe(self) -> dict[str, np.ndarray]:
        return {"q": self.q.copy(), "dq": np.zeros(2), "gripper": self.gripper.copy()}

    def events(self) -> list[DeviceEvent]:
        found, self.happened = self.happened, []
        return found

    def status(self) -> RobotStatus:
        return RobotStatus(self.mode, self.reason)

    def stop(self) -> None:
        self.stops += 1

    def recover(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise DeviceRefused("still moving")
        self.mode = "idle"

    def close(self) -> None:
        self.closed = True


class Bench:
    """Visits the robot every tick, in simulated time."""

    def __init__(self, *, takes_steps: bool = False) -> None:
        self.robot = Robot(takes_steps)
        self.node = RobotNode(self.robot, tick_ns=TICK, stale_ns=STALE)
        self.now_ns = SECOND
        self.said: list[Message] = []
        self.send()

    def send(self, *messages: Message) -> None:
        step = self.node.step(self.now_ns, list(messages))
        assert not step.refused, step.refused
        self.said += step.out

    def run(self, ns: int) -> None:
        for _ in range(ns // TICK):
            self.now_ns += TICK
            self.send()

    def lease(self, epoch: int = 1, ns: int = LEASE) -> Message:
        return Lease(epoch, "e", self.now_ns + ns).to("@lease")

    def target(self, epoch: int = 1, *, to: float = 1.0, ns: int = 100 * MILLISECOND, expires_ns: int = 0) -> Message:
        t_ns = self.now_ns + np.array([ns // 2, ns], np.int64)
        arrays = {"t_ns": t_ns, "values": np.array([[to / 2, to / 2], [to, to]]), "gripper": np.array([0.02, 0.04])}
        return Target(epoch, "e", "joint_position", ns // 2, expires_ns or int(t_ns[-1])).to("arm", arrays)

    def moved_within(self, ns: int) -> bool:
        before = len(self.robot.followed)
        self.run(ns)
        return len(self.robot.followed) > before
