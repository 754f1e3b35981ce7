"""Drives a robot through its setpoints as the robot's node does: in simulated time, or tick by tick on the host's
clock.

May not: know a driver, or wait for longer than a minute of its clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from labctl.axes import axes_of, hand_of
from labctl.clock import MILLISECOND, SECOND, ManualClock, MonotonicClock
from labctl.config.cell_schema import Cell
from labctl.devices import Actions, Batch, Robot, Setpoints, load
from labctl.errors import DeviceRefused
from labctl.plain import Json
from labctl.streams import STATE
from labctl.testing.given import FIXTURE

SCENE = {"object": "towels", "layout": "layout-1", "items": 3}
TICK_NS = 20 * MILLISECOND
PATIENCE_NS = 60 * SECOND
STILL_S, STILL = 0.2, 1e-4  # of the robot's own time; rad/s or m/s of an axis that stands
UNITS = {"velocity": "rad_s", "acceleration": "rad_s2"}


class RobotRig:
    """A connected and staged robot with its clock. `live` robots run on the host's monotonic clock."""

    def __init__(self, driver: str, options: Mapping[str, Json], cell: Cell, *, live: bool) -> None:
        self.cell, self.live = cell, live
        self.clock = MonotonicClock() if live else ManualClock(5 * SECOND)
        self.robot: Robot = load(driver, options, cell=cell, fixture=FIXTURE)
        self.batches: list[Batch] = []

    @property
    def fastest(self) -> np.ndarray:
        """How much of each axis that is led may come or go in a second (dof,), by the cell: its highest speed, of a
        base's speed its highest acceleration.
        """
        return self._limits("velocity", self.cell.robot.limits.velocity_rad_s)

    @property
    def hardest(self) -> np.ndarray:
        """The highest acceleration of each (dof,); of a base's speed there is nothing beyond its acceleration."""
        return self._limits("acceleration", self.cell.robot.limits.acceleration_rad_s2)

    def _limits(self, what: str, of_joints: Sequence[float]) -> np.ndarray:
        if self.cell.second_robot is not None:
            of_joints = [value for one in self.cell.robots for value in getattr(one.limits, f"{what}_{UNITS[what]}")]
        joints, led = iter(of_joints), [axis for axis in axes_of(self.robot) if not axis.hand]
        others = {axis.name: getattr(axis, what) for axis in led}  # the driver's own, where the cell says nothing
        others |= {axis.name: limit for axis in self.cell.robot.axis if (limit := getattr(axis, what)) is not None}
        for axis in self.cell.robot.axis:
            if axis.kind == "twist":
                others[axis.name] = axis.acceleration if what == "velocity" else np.inf
        return np.array([next(joints) if axis.kind == "revolute" else others[axis.name] for axis in led], float)

    @property
    def joints(self) -> int:
        """How many axes `arm/state` has: all that are led, or the first robot's of two."""
        state = next(spec for spec in self.robot.streams if spec.name == STATE)
        return sum(column.startswith("q.") for column in state.columns)

    def connect(self) -> None:
        """Connect, recover as an operator would if need be, and wait until the robot is where episodes begin."""
        self.robot.connect(self.now_ns)
        self.recover()
        self.stage()

    def recover(self) -> None:
        """Ask until the robot agrees, as the robot's node does after an operator's word."""
        self.until(self._recovered)

    def _recovered(self) -> bool:
        try:
            self.robot.recover()
        except DeviceRefused:
            return False
        return True

    def stage(self) -> None:
        self.robot.stage(SCENE, 1, self.now_ns)
        self.until(self.robot.staged)

    @property
    def now_ns(self) -> int:
        return self.clock.now_ns()

    def wait(self, ns: int) -> None:
        """Let time pass, drained as the robot's node drains."""
        end_ns = self.now_ns + ns
        while self.now_ns < end_ns:
            self.clock.sleep_until(min(end_ns, self.now_ns + TICK_NS))
            self.drain()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; fails after a minute."""
        over_ns = self.now_ns + PATIENCE_NS
        while not condition():
            assert self.now_ns < over_ns, f"waited for a minute in vain: {self.robot.status()}"
            self.wait(TICK_NS)

    def drain(self) -> list[Batch]:
        found = self.robot.drain(self.now_ns)
        self.batches += found
        return found

    def follow(self, q: np.ndarray, opening: float = 0.08) -> Actions:
        """Hand over setpoints (n, dof), a tick's worth at a time, from now on; returns all of them answered. opening:
        of the hand's one axis, or of each of them.
        """
        h = len(hand_of(axes_of(self.robot)))
        hand = np.full(len(q) if h == 1 else (len(q), h), opening)
        period_ns = round(SECOND / self.robot.control_hz)
        t_ns = self.now_ns + np.arange(1, len(q) + 1) * period_ns
        answered: list[Actions] = []
        given = 0
        while given < len(q):
            self.clock.sleep_until(min(self.now_ns + TICK_NS, int(t_ns[-1])))
            due = int(np.searchsorted(t_ns, self.now_ns, side="right"))
            if due > given:
                rows = slice(given, due)
                answered.append(self.robot.follow(Setpoints(t_ns[rows], q[rows], hand[rows])))
                given = due
        nothing = Setpoints(t_ns[:0], q[:0], hand[:0])
        over_ns = self.now_ns + PATIENCE_NS
        while sum(int(np.isfinite(some.requested[:, 0]).sum()) for some in answered) < len(q) and self.live:
            assert self.now_ns < over_ns, "setpoints were not answered"
            self.clock.sleep_until(self.now_ns + TICK_NS)
            answered.append(self.robot.follow(nothing))
        return joined(answered)

    def at_rest(self) -> None:
        """Wait until the robot stands still: by its states of some time from now on, since what was given to it before
        may not have moved it yet on a machine that lets nobody run.
        """
        if not self.live:
            self.wait(SECOND)
            return
        self.drain()
        heard = len(self.batches)
        self.until(lambda: self._stood(heard) and np.abs(self.robot.observe()["dq"]).max() < STILL)

    def _stood(self, heard: int) -> bool:
        """Whether the states of the batches from `heard` on reach back for STILL_S in which nothing moved."""
        columns = next(spec for spec in self.robot.streams if spec.name == STATE).columns
        states = [batch for batch in self.batches[heard:] if batch.stream == STATE]
        if not states:
            return False
        values = np.concatenate([batch.values for batch in states])
        t_s = np.concatenate([batch.t_ns for batch in states]) / SECOND
        t_s = values[:, columns.index("device_s")] if "device_s" in columns else t_s
        speeds = values[:, [i for i, column in enumerate(columns) if column.startswith("dq.")]]
        return bool(t_s[-1] - t_s[0] >= STILL_S and np.abs(speeds[t_s >= t_s[-1] - STILL_S]).max(initial=0.0) < STILL)


def joined(parts: list[Actions]) -> Actions:
    """Several answers as one."""
    rows = [[getattr(part, name) for part in parts] for name in ("t_ns", "requested", "limited", "sent", "delay_s")]
    return Actions(*(np.concatenate(row) for row in rows))


def turned(robot: Robot, by_rad: float = 0.1, n: int = 60) -> np.ndarray:
    """A smooth path of n setpoints (n, dof) that turns the first joint by `by_rad`."""
    s = (1 - np.cos(np.linspace(0, np.pi, n))) / 2
    return robot.observe()["q"] + by_rad * s[:, None] * np.eye(robot.dof)[0]
