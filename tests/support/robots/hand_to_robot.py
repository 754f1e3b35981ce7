"""A hand that moves by a script, through the teleoperation controller, the controller's and the robot's node, to a
robot: how fast the robot follows, and how late.

One thread and one loop, in simulated time or in this machine's: what a lab's processes add to it is not in it. Times
are taken from the samples that the robot measured. A rate device pushes, a leader turns the robot's last joint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import ActionChunk, Batch, Observation
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Caps, Reading
from labctl.messages.driving import Prepare, Ready, Start
from labctl.messages.motion import Lease
from labctl.nodes.controller import ControllerNode
from labctl.nodes.robot import RobotNode
from labctl.runtime.hosting.simulated_host import LoopHost
from labctl.testing.given import SIMULATED
from labctl.testing.robot import RobotRig

LEASE_NS = SECOND // 2
LEAD_S = 0.7  # the clutch is held so long before the hand moves: the ramp is over
TASK = Prepare(
    driver="support.robots.hand_to_robot:build", options={}, kind="human", seed=0, instruction="", episode="practice"
)
_NOW: list[Teleop] = []  # what `build` hands to the controller node: one at a time


ANSWER_S = 0.002  # what an answer takes in simulated time


def build(options: Mapping[str, Any], *, cell: Cell, fixture: Fixture) -> Teleop:
    return _NOW[-1]


class Person(Teleop):
    """A Teleop whose answers take a moment, also in simulated time."""

    def infer(self, observation: Observation) -> ActionChunk:
        return replace(super().infer(observation), delay_s=ANSWER_S)


class Device:
    """What a Teleop asks of a device; it is never opened: `Drive` says what it reads."""

    quiet = False

    def __init__(self, leader: bool) -> None:
        self.leader = leader

    def open(self) -> None: ...
    def poll(self) -> Reading | None: ...
    def close(self) -> None: ...


class Lessor:
    """In the place of run: a lease from the time the controller is ready."""

    name, topics, finished = "run", (), True

    def __init__(self) -> None:
        self.started_ns: int | None = None

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        step = Step(due_ns=now_ns + LEASE_NS // 4)
        for message in inbox:
            assert message.kind != "failed", message.body
            if message.kind == Ready.KIND and self.started_ns is None:
                self.started_ns = now_ns
                step.out.append(Start("practice", 1).to("controller"))
        if self.started_ns is not None:
            step.out.append(Lease(1, None, now_ns + LEASE_NS).to("@lease"))
        return step


@dataclass
class Way:
    """What a robot did: t_s (n,) since the hand began to move, q (n, dof) rad, tcp (n, 3) m."""

    t_s: np.ndarray
    q: np.ndarray
    tcp: np.ndarray


class Drive:
    """A person at `rig`'s robot. `wish(t_s)` gives the reading's fields for a time since the hand began to move, which
    it does `LEAD_S` after go; until then the clutch is held and nothing is asked.
    """

    def __init__(
        self,
        rig: RobotRig,
        caps: Caps,
        wish: Callable[[float], Mapping[str, Any]],
        *,
        leader: bool,
        tick_ns: int = 20 * MILLISECOND,
    ) -> None:
        self.rig, self._wish = rig, wish
        self.samples: list[Batch] = []
        self._drain = rig.robot.drain
        rig.robot.drain = self._drained  # type: ignore[method-assign]
        self.hand = Person(Device(leader), "hand", caps, axes=np.eye(6), opening_m=(0.0, 0.08), clock=rig.clock)
        # type: ignore[assignment]
        self.hand._poller = SimpleNamespace(newest=self._newest, start=lambda: None, stop=lambda: None)
        self.lessor = Lessor()
        self.q0 = rig.robot.observe()["q"].copy()
        _NOW.append(self.hand)
        self.host = LoopHost(rig.clock, lambda name: self.lessor)  # type: ignore[arg-type]
        self.host.add(self.lessor)
        self.arm = RobotNode(rig.robot, tick_ns=tick_ns, stale_ns=SECOND // 2, connected=True)
        self.arm._last_ns = self.arm._grid_ns = rig.now_ns
        self.arm._hold_here()
        self.host.add(self.arm)
        self.host.add(ControllerNode(**SIMULATED))
        self.host.post(TASK.to("controller"))

    @property
    def begins_ns(self) -> int | None:
        """When the hand begins to move."""
        started = self.lessor.started_ns
        return None if started is None else started + round(LEAD_S * SECOND)

    def _drained(self, now_ns: int) -> list[Batch]:
        found = self._drain(now_ns)
        self.samples += [batch for batch in found if batch.stream == "arm/state"]
        return found

    def _newest(self) -> Reading:
        now_ns = self.rig.now_ns
        t_s = 0.0 if self.begins_ns is None else max(0.0, (now_ns - self.begins_ns) / SECOND)
        return Reading(now_ns, **{"engaged": True, **self._wish(t_s)})

    def go(self, seconds: float) -> Way:
        """Drive until `seconds` after the hand began to move."""
        over = self.rig.now_ns + 60 * SECOND
        self.host.run(lambda: self.begins_ns is not None and self._past(seconds), limit_ns=over)
        assert self.begins_ns is not None, "the hand was never ready"
        self._drained(self.rig.now_ns)
        robot = self.rig.robot
        columns = next(spec for spec in robot.streams if spec.name == "arm/state").columns
        place = [columns.index(f"tcp.{axis}") for axis in "xyz"]
        values = np.concatenate([batch.values for batch in self.samples])
        t_s = (np.concatenate([batch.t_ns for batch in self.samples]) - self.begins_ns) / SECOND
        return Way(t_s, values[:, : robot.dof], values[:, place])

    def _past(self, seconds: float) -> bool:
        assert self.begins_ns is not None
        return self.rig.now_ns > self.begins_ns + round(seconds * SECOND)

    def end(self) -> None:
        """Give the robot back as it was."""
        _NOW.remove(self.hand)
        self.rig.robot.drain = self._drain  # type: ignore[method-assign]
        self.rig.robot.stop()


def sweep(rig: RobotRig, speed: float, turn_s: float) -> Callable[[float], dict[str, Any]]:
    """A leader whose last joint goes one way at `speed`, rad/s, for `turn_s`, then stands."""
    q0, way = rig.robot.observe()["q"].copy(), np.eye(rig.robot.dof)[-1]
    return lambda t_s: {"joints": q0 + way * speed * min(t_s, turn_s)}


def push(axis: int, share: float) -> Callable[[float], dict[str, Any]]:
    """A stick that is pushed at once."""
    return lambda t_s: {"axes": np.eye(6)[axis] * (share if t_s > 0 else 0.0)}


@dataclass(frozen=True)
class Followed:
    """speed: of the robot in its steady stretch as a share of the hand's. late_s: how far behind the hand it is then,
    s. half_s: from the hand's first motion to half of its speed.
    """

    speed: float
    late_s: float
    half_s: float


def followed(t_s: np.ndarray, at: np.ndarray, speed: float, turn_s: float) -> Followed:
    """How a robot followed a hand that went at `speed` for turn_s: at (n,) is its way since the start, same sign."""
    steady = (t_s > 0.6 * turn_s) & (t_s <= turn_s)
    slope, _ = np.polyfit(t_s[steady], at[steady], 1)
    late = float(np.mean(t_s[steady] - at[steady] / speed))
    grid = np.arange(0.0, turn_s, 0.005)
    rate = (np.interp(grid + 0.02, t_s, at) - np.interp(grid - 0.02, t_s, at)) / 0.04
    over = np.flatnonzero(rate >= speed / 2)
    return Followed(float(slope) / speed, late, float(grid[over[0]]) if len(over) else float("inf"))
