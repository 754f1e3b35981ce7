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
from labctl.devices import Actions, Batch, Robot, Setpoints, load, options_type
from labctl.errors import DeviceRefused, InputError
from labctl.plain import Json
from labctl.streams import STATE
from labctl.testing.given import FIXTURE

SCENE = {"object": "towels", "layout": "layout-1", "items": 3}
TICK_NS = 20 * MILLISECOND
PATIENCE_NS = 60 * SECOND
STILL_S, STILL = 0.2, 1e-4  # of the robot's own time; rad/s or m/s of an axis that stands
STEP_SHARE = 1.1  # of a speed that a robot pulled to a target by a law may pass for a moment
UNTOLD_M_S = 0.5
TRIES = 10  # of a way that a busy machine may starve
BEYOND_M = 0.05
"""So far outside of the cell's box a real robot is sent at most: with a driver that keeps no box it goes there."""
UNITS = {"velocity": "rad_s", "acceleration": "rad_s2"}


class RobotRig:
    """A connected and staged robot with its clock. `live` robots run on the host's monotonic clock. Of them a real one
    is led less far, once, and never without a home to go back to.
    """

    def __init__(self, driver: str, options: Mapping[str, Json], cell: Cell, *, live: bool) -> None:
        self.cell, self.live = cell, live
        several = [(one.driver, one.options) for one in cell.robots] if cell.second_robot is not None else []
        self._built = [(driver, options), *several]
        self.clock = MonotonicClock() if live else ManualClock(5 * SECOND)
        self.robot: Robot = load(driver, options, cell=cell, fixture=FIXTURE)
        self.declared = tuple(self.robot.streams)  # before anything connects
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

    def outside_m(self, tool: np.ndarray) -> np.ndarray:
        """How far places (n, 3) of the first robot's tool are outside of the cell's box (n,), m; below 0 inside."""
        limits = self.cell.robot.limits
        return np.maximum(limits.box_min_m - tool, tool - limits.box_max_m).max(axis=1)

    @property
    def joints(self) -> int:
        """How many axes `arm/state` has: all that are led, or the first robot's of two."""
        state = next(spec for spec in self.robot.streams if spec.name == STATE)
        return sum(column.startswith("q.") for column in state.columns)

    @property
    def real(self) -> bool:
        """Does something move that can hit somebody? Such a one is led gently."""
        return self.live and self.robot.kind == "real"

    @property
    def tries(self) -> int:
        """How often a way is led that something stopped: what stopped a real robot is for a person to look at."""
        return 1 if self.real else TRIES

    @property
    def homeless(self) -> bool:
        """Does the robot stay where it is when it is staged, since its options leave `home_rad` out?"""
        return any(
            "home_rad" in getattr(options_type(driver), "model_fields", {}) and options.get("home_rad") is None
            for driver, options in self._built
        )

    def connect(self) -> None:
        """Connect, recover as an operator would if need be, and wait until the robot is where episodes begin. Raises
        InputError, before anything moves, for a real robot that would be led on from wherever a test left it.
        """
        if self.real and self.homeless:
            said = "these tests move a real robot and bring it back before each of them; give its options a home_rad"
            raise InputError(f"home_rad is left out: {said}")
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

    def forget(self) -> None:
        """Drop what was reported until now."""
        self.drain()
        self.batches.clear()

    @property
    def states(self) -> np.ndarray:
        """The rows of `arm/state` (n, columns) that were drained so far."""
        return np.concatenate([batch.values for batch in self.batches if batch.stream == STATE])

    @property
    def tools(self) -> np.ndarray:
        """Where they say that the first robot's tool was (n, 3), m."""
        first = next(spec for spec in self.robot.streams if spec.name == STATE).columns.index("tcp.x")
        return self.states[:, first : first + 3]

    def tool_speeds(self, sent: np.ndarray) -> np.ndarray:
        """How fast the first robot's tool was led by setpoints that put it at sent (n, 3), m/s. Those of a robot that
        takes steps jump, and lead it nowhere at once: how fast it went then, less what a law may overshoot.
        """
        if not getattr(self.robot, "takes_steps", False):
            return np.linalg.norm(np.diff(sent, axis=0), axis=1) * self.robot.control_hz
        states = [batch for batch in self.batches if batch.stream == STATE]
        return np.linalg.norm(np.diff(self.tools, axis=0), axis=1) / np.diff(self._seconds(states)) / STEP_SHARE

    def given(self, did: Actions) -> np.ndarray:
        """Which answers (n,) are of motion. On this machine's clock a setpoint that came too late is answered with
        where the robot is, and was not given to it.
        """
        return (did.delay_s > 0) | np.isnan(did.requested[:, 0]) | np.array(not self.live)

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
        values, t_s = np.concatenate([batch.values for batch in states]), self._seconds(states)
        speeds = values[:, [i for i, column in enumerate(columns) if column.startswith("dq.")]]
        return bool(t_s[-1] - t_s[0] >= STILL_S and np.abs(speeds[t_s >= t_s[-1] - STILL_S]).max(initial=0.0) < STILL)

    def _seconds(self, states: list[Batch]) -> np.ndarray:
        """When states were (n,), s: by the robot's own clock, where it tells."""
        columns = next(spec for spec in self.robot.streams if spec.name == STATE).columns
        if "device_s" in columns:
            return np.concatenate([batch.values for batch in states])[:, columns.index("device_s")]
        return np.concatenate([batch.t_ns for batch in states]) / SECOND


def joined(parts: list[Actions]) -> Actions:
    """Several answers as one."""
    rows = [[getattr(part, name) for part in parts] for name in ("t_ns", "requested", "limited", "sent", "delay_s")]
    return Actions(*(np.concatenate(row) for row in rows))


def turned(robot: Robot, by_rad: float = 0.1, n: int = 60) -> np.ndarray:
    """A smooth path of n setpoints (n, dof) that turns the first joint by `by_rad`."""
    s = (1 - np.cos(np.linspace(0, np.pi, n))) / 2
    return robot.observe()["q"] + by_rad * s[:, None] * np.eye(robot.dof)[0]


def astray(rig: RobotRig, by_rad: float = 1.5) -> np.ndarray:
    """Setpoints (n, dof) at the highest speed of the first robot's joints, all to that side, of those that its tool
    goes to, where it would leave the cell's box furthest; of a real robot soonest, and no further than BEYOND_M. In a
    cell that says nothing of its tool's speed a robot may stop itself for that: there they lead it at UNTOLD_M_S.
    """
    robot, fastest = rig.robot, rig.fastest
    start = robot.observe()["q"]
    axes = [axis for axis in axes_of(robot) if not axis.hand]
    turning = np.array([axis.kind == "revolute" and i < rig.joints for i, axis in enumerate(axes)])
    leads = tools(robot, start + 1e-4 * np.eye(robot.dof)) - robot.to_pose(start)[:3]
    sides = np.where(np.abs(leads) < 1e-7, 0.0, np.sign(leads)) * turning[:, None]
    share = np.linspace(0.0, by_rad / fastest[turning].max(), 100)[:, None]
    ways = [start + share * side * fastest for side in (*sides.T, *-sides.T)]
    way = max(ways, key=lambda way: float(rig.outside_m(tools(robot, way[-1:]))[0]))
    if rig.real:
        ends = [rig.outside_m(tools(robot, way)) > BEYOND_M for way in ways]
        out = [way[: int(end.argmax()) + 1] for way, end in zip(ways, ends, strict=True) if end.any()]
        way = min(out, key=len, default=way)
    seconds = share[len(way) - 1, 0]
    if rig.cell.robot.limits.tool_speed_m_s is None:
        steps_m = np.linalg.norm(np.diff(tools(robot, way), axis=0), axis=1)
        seconds = max(seconds, len(steps_m) * steps_m.max() / UNTOLD_M_S)
    return start + np.linspace(0.0, 1.0, round(seconds * robot.control_hz))[:, None] * (way[-1] - start)


def tools(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Where joints (n, dof) put the first robot's tool (n, 3), m."""
    return np.array([robot.to_pose(row)[:3] for row in q])
