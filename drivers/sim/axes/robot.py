"""A simulated FR3 whose axes are more than its joints: it stands on a rail, or holds with something else than fingers.

May not: choose motions, sleep or read a clock. Behaves; proves nothing about hardware.

The rail runs along the base frame's y; the FR3 of `SimRobot` stands on its carriage, and the box of [robot.limits]
and the tool's speed are those on the carriage. The rail follows the tool when it leaves the middle, so that what is far
becomes near.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labctl.axes import Axis, hand_of
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Actions, Batch, Setpoints, StreamSpec
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.simulated_axes import ON_A_RAIL, WITH_A_HAND, to_openings
from labctl.drivers.common.sweep import Sweep
from labctl.drivers.sim.axes.limiter import AxisLimiter
from labctl.drivers.sim.options import SimHandOptions, SimRailOptions
from labctl.drivers.sim.robot import SimRobot
from labctl.drivers.sim.world import World
from labctl.plain import Json

MIDDLE_M = 0.1  # a tool that is farther than this beside its carriage makes the rail follow


class RailedWorld(World):
    """The scene, seen from a carriage that stands aside. carriage_m (n,) or one: where it is along y, m."""

    carriage_m: np.ndarray | float = 0.0

    def contact(self, sweep: Sweep) -> tuple[int, str] | None:
        return super().contact(_shifted(sweep, self.carriage_m))

    def advance(self, t_ns: np.ndarray, sweep: Sweep, wanted: np.ndarray, period_s: float) -> np.ndarray:
        return super().advance(t_ns, _shifted(sweep, self.carriage_m), wanted, period_s)


def _shifted(sweep: Sweep, beside: np.ndarray | float) -> Sweep:
    """The same way of the tool in the base frame."""
    last = float(np.ravel(beside)[-1])
    if not np.any(beside):
        return sweep
    exact = sweep.positions.copy()
    exact[1] += np.broadcast_to(beside, exact.shape[1]) if np.size(beside) in (1, exact.shape[1]) else last
    x, y, *rest = sweep.end
    return Sweep(sweep.chain, sweep.q, (x, y + last, *rest), sweep.travel + float(np.ptp(exact[1])) + 1e-9, exact)


class AxesRobot(SimRobot):
    """See `labctl.devices.Robot` and `SimRobot`. axes: the robot's, as its cell limits them."""

    def __init__(self, axes: tuple[Axis, ...], cell: Cell, fixture: Fixture) -> None:
        limits = {table.name: table for table in cell.robot.axis}
        inside = [limits[axis.name].narrowed(axis) if axis.name in limits else axis for axis in axes]
        self.axes, self._hand_axes = axes, hand_of(inside)
        self._rail_axes = [axis for axis in inside if axis.kind == "prismatic"]
        period_s = 1.0 / cell.robot.control_hz
        self._rail, self._hand = AxisLimiter(self._rail_axes, period_s), AxisLimiter(self._hand_axes, period_s)
        super().__init__(FR3, cell, fixture)
        self.world: RailedWorld = RailedWorld(fixture)
        self.dof += len(self._rail_axes)
        self._rail_moves = False
        self.joint_names = tuple(axis.name for axis in axes if not axis.hand)
        state, *others = self.streams
        self.streams = (self._state_spec(state), *others)

    def _state_spec(self, inner: StreamSpec) -> StreamSpec:
        """As of any robot: q, dq and tau of each axis of the inner, the tool, then what the hand's axes read."""
        own = [axis for axis in self.axes if not axis.hand]
        names = [axis.name for axis in own]
        units = {"q": [axis.unit for axis in own], "dq": [f"{axis.unit}/s" for axis in own]}
        units["tau"] = ["N" if axis.unit == "m" else "N.m" for axis in own]
        columns = tuple(f"{what}.{name}" for what in units for name in names)
        pose = tuple(column for column in inner.columns if column.startswith("tcp."))
        hand = tuple(axis.name for axis in self.axes if axis.hand)
        unit = [*(one for each in units.values() for one in each), *["m", "m", "m", "1", "1", "1", "1"]]
        unit += [axis.unit for axis in self.axes if axis.hand]
        k = len(own)
        public, private = (*columns[:k], *pose, *hand), columns[k:]
        every = (*columns, *pose, *hand)
        return StreamSpec(
            inner.name, every, " ".join(unit), inner.rate_hz, private_columns=private, public_columns=public
        )

    def _begin(self, now_ns: int) -> None:
        super()._begin(now_ns)
        self._more = [(np.array([now_ns]), np.concatenate([self._rail.at, self._hand.at])[None, :])]

    def stage(self, condition: Mapping[str, Json], seed: int, now_ns: int) -> None:
        """As `SimRobot`; the rail goes to its middle and the hand opens at once."""
        self._rail.reset(np.zeros(len(self._rail_axes)))
        self._hand.reset(np.zeros(len(self._hand_axes)))
        self.world.carriage_m = 0.0
        super().stage(condition, seed, now_ns)

    @property
    def clipped(self) -> str:
        """The limit that shaped the last setpoints, "" when none did."""
        return ", ".join(text for text in (self._limiter.clipped, self._rail.clipped, self._hand.clipped) if text)

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for the led axes (dof,)."""
        rail, inner = self._parts(q[None, :])
        pose = super().to_pose(inner[0]).copy()
        pose[1] += rail[0].sum()
        return pose

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """The led axes (n, dof) for tool poses (n, 7), continuing from q_seed (dof,)."""
        if not self._rail_axes:
            return super().to_joints(poses, q_seed)
        low, high = self._rail_axes[0].lower, self._rail_axes[0].upper
        at, shifted, rail = float(q_seed[0]), np.array(poses, float), np.empty((len(poses), 1))
        for i, y in enumerate(poses[:, 1].tolist()):
            at = min(max(at, y - MIDDLE_M, low), y + MIDDLE_M, high) if low < y + MIDDLE_M else low
            at = min(max(at, low), high)
            rail[i], shifted[i, 1] = at, y - at
        return np.column_stack([rail, super().to_joints(shifted, q_seed[1:])])

    def _parts(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = len(self._rail_axes)
        return q[:, :k], q[:, k:]

    def follow(self, wanted: Setpoints) -> Actions:
        """As `SimRobot`; a rail comes to rest when the joints have to."""
        n = len(wanted.t_ns)
        rail, inner = self._parts(np.asarray(wanted.q))
        hand = np.reshape(wanted.gripper, (n, -1)) if n else np.empty((0, len(self._hand_axes)))
        late = int(np.searchsorted(wanted.t_ns, self._t_ns, side="right")) if n else 0
        halted = self._halted()
        moved_from = self._rail.at.copy()
        moved = np.repeat(moved_from[None, :], n, axis=0)
        held = np.repeat(self._hand.at[None, :], n, axis=0)
        if late < n:
            moved[late:] = self._rail.brake(n - late) if halted else self._rail.follow(rail[late:])
            self._rail_moves = bool((moved[late:] != moved_from).any())
            held[late:] = self._hand.brake(n - late) if halted else self._hand.follow(hand[late:])
            self.world.carriage_m = moved[late:].sum(axis=1) if self._rail_axes else 0.0
            self._more.append((np.array(wanted.t_ns[late:]), np.column_stack([moved, held])[late:]))
        inside = super().follow(Setpoints(wanted.t_ns, inner, to_openings(held, self._hand_axes)))
        asked = np.column_stack([rail, inner, hand])
        limited, sent = (np.column_stack([moved, rows[:, : FR3.dof], held]) for rows in (inside.limited, inside.sent))
        return Actions(wanted.t_ns, asked, limited, sent, inside.delay_s)

    def _halt(self, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self._more or t_ns[-1] > self._more[-1][0][-1]:  # the robot brakes by itself, between two ticks
            rows = np.column_stack([self._rail.brake(len(t_ns)), self._hand.brake(len(t_ns))])
            self.world.carriage_m = rows[:, : len(self._rail_axes)].sum(axis=1) if self._rail_axes else 0.0
            self._more.append((np.array(t_ns), rows))
        return super()._halt(t_ns)

    def _sample(self, t_ns: np.ndarray) -> Batch:
        """The joints' samples with the other axes between those that were reached."""
        inner = super()._sample(t_ns)
        times = np.concatenate([one for one, _ in self._more])
        rows = np.concatenate([row for _, row in self._more])
        between = np.column_stack([np.interp(t_ns, times, rows[:, i]) for i in range(rows.shape[1])])
        before = np.column_stack([np.interp(t_ns - self._period_ns, times, rows[:, i]) for i in range(rows.shape[1])])
        self._more = [(times[-1:], rows[-1:])]
        k, d = len(self._rail_axes), FR3.dof
        rail, hand = between[:, :k], between[:, k:]
        speed = (rail - before[:, :k]) * self.control_hz
        q, dq, tau, tcp, _ = np.split(inner.values, [d, 2 * d, 3 * d, 3 * d + 7], axis=1)
        tcp[:, 1] += rail.sum(axis=1)
        values = np.column_stack([rail, q, speed, dq, np.zeros_like(rail), tau, tcp, hand])
        return Batch(inner.stream, inner.t_ns, values)

    def observe(self) -> dict[str, np.ndarray]:
        """As `SimRobot`, of all of the led axes: q, dq (dof,); tcp (7,) in the base frame; gripper (h,); and what
        `SimCamera.sense` draws.
        """
        seen = super().observe()
        tcp = seen["tcp"].copy()
        tcp[1] += self._rail.at.sum()
        q = np.concatenate([self._rail.at, seen["q"]])
        dq = np.concatenate([self._rail.move * self.control_hz, seen["dq"]])
        drawn = {"links": seen["q"], "fingers": seen["gripper"], "stands": np.array([0.0, self._rail.at.sum(), 0.0])}
        return {**seen, **drawn, "q": q, "dq": dq, "tcp": tcp, "gripper": self._hand.at.copy()}

    def _carried(self) -> bool:
        return self._rail_moves

    def _still(self) -> bool:
        return super()._still() and self._rail.still and self._hand.still


def on_a_rail(options: SimRailOptions, *, cell: Cell, fixture: Fixture) -> AxesRobot:
    """Driver "sim_rail": on a rail, with a vacuum cup. Raises InputError for a limit or a fixture it cannot take."""
    return AxesRobot(ON_A_RAIL, cell, fixture)


def with_a_hand(options: SimHandOptions, *, cell: Cell, fixture: Fixture) -> AxesRobot:
    """Driver "sim_hand": with a hand of five axes. Raises InputError for a limit or a fixture it cannot take."""
    return AxesRobot(WITH_A_HAND, cell, fixture)
