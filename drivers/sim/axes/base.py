"""Driver "sim_base": a simulated FR3 on a base that drives in every direction. Behaves; proves nothing about hardware.

May not: choose motions, sleep or read a clock; drive home, or go on at a speed that no setpoint asks for.

Poses are in the frame of the place where the base was staged, by its odometry, which here is exact; the box of
[robot.limits] is the base's own. Nothing stands in its way: it drives through totes, and the tool is held against their
walls only while the arm moves too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from labctl.axes import Axis, hand_of
from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Actions, Batch, RobotStatus, Setpoints
from labctl.drivers.common.driving import SpeedLimiter, driven, from_floor, off_place, onto_floor
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.simulated_axes import ON_A_BASE, OPEN_M
from labctl.drivers.common.sweep import Sweep
from labctl.drivers.sim.axes.limiter import AxisLimiter
from labctl.drivers.sim.options import SimBaseOptions
from labctl.drivers.sim.robot import SimRobot
from labctl.drivers.sim.world import World
from labctl.plain import Json
from labctl.streams import ODOMETRY, POSE, SPEEDS, StreamSpec, odometry_spec

D = FR3.dof


@dataclass(slots=True)
class DrivenSweep(Sweep):
    """The way of a tool whose base drives. turned (n,): by how much the base is turned, rad."""

    turned: np.ndarray | None = None

    def yaw(self, i: int) -> float:
        turned = 0.0 if self.turned is None else float(self.turned[i])
        return Sweep.yaw(self, i) + turned


class DrivenWorld(World):
    """The scene, seen from a base that stands elsewhere. places (n, 3): where it is at each setpoint, or (1, 3)."""

    places: np.ndarray = np.zeros((1, 3))

    def contact(self, sweep: Sweep) -> tuple[int, str] | None:
        return super().contact(self._driven(sweep))

    def advance(self, t_ns: np.ndarray, sweep: Sweep, wanted: np.ndarray, period_s: float) -> np.ndarray:
        return super().advance(t_ns, self._driven(sweep), wanted, period_s)

    def _driven(self, sweep: Sweep) -> Sweep:
        """The same way of the tool on the floor."""
        if not self.places.any():
            return sweep
        n = len(sweep.q)
        places = self.places if len(self.places) == n else np.repeat(self.places[-1:], n, axis=0)
        c, s = np.cos(places[:, 2]), np.sin(places[:, 2])
        x, y, z = sweep.positions
        exact = np.stack([places[:, 0] + c * x - s * y, places[:, 1] + s * x + c * y, z])
        end = onto_floor(np.array(sweep.end)[None, :], places[-1])[0]
        travel = float(np.linalg.norm(exact - end[:3, None], axis=0).max()) + 1e-9
        return DrivenSweep(sweep.chain, sweep.q, tuple(end.tolist()), travel, exact, places[:, 2])


class BaseRobot(SimRobot):
    """See `labctl.devices.Robot` and `SimRobot`. axes: the FR3's joints, then the base's speeds, whose names end in
    .vx, .vy or .wz, then a gripper; one that has no .vy, as a cart with two driven wheels, does not go sideways.
    """

    def __init__(self, axes: tuple[Axis, ...], options: SimBaseOptions, cell: Cell, fixture: Fixture) -> None:
        limits = {table.name: table for table in cell.robot.axis}
        base, hand = (
            [limits[axis.name].narrowed(axis) if axis.name in limits else axis for axis in axes]
            for axes in ([axis for axis in axes if axis.kind == "twist"], hand_of(axes))
        )
        self.axes, self._options = axes, options
        self._which = [SPEEDS.index(axis.name.rpartition(".")[2]) for axis in base]  # of vx, vy, wz
        self._period_s = 1.0 / cell.robot.control_hz
        self._speeds, self._hand = SpeedLimiter(base, self._period_s), AxisLimiter(hand, self._period_s)
        self._hand.reset(np.array([OPEN_M]))
        self._place, self._put_back_ns = np.zeros(3), 0
        super().__init__(FR3, cell, fixture)
        self.world: DrivenWorld = DrivenWorld(fixture)
        self.dof += len(base)
        self.joint_names = tuple(axis.name for axis in axes if not axis.hand)
        state, *others = self.streams
        self.streams = (self._state_spec(state), odometry_spec(state.rate_hz), *others)

    def _state_spec(self, inner: StreamSpec) -> StreamSpec:
        """As of any robot; q of the base are its measured speeds, and dq of it are the same."""
        led = [axis for axis in self.axes if not axis.hand]
        q, dq, tau = (tuple(f"{what}.{axis.name}" for axis in led) for what in ("q", "dq", "tau"))
        units = [axis.unit for axis in led]
        units += [axis.unit if axis.kind == "twist" else f"{axis.unit}/s" for axis in led]
        units += ["N" if axis.unit == "m/s" else "N.m" for axis in led]
        units += [*["m", "m", "m", "1", "1", "1", "1"], "m"]
        private = (*q[D:], *dq, *tau)
        return StreamSpec(
            inner.name,
            (*q, *dq, *tau, *POSE, "gripper"),
            " ".join(units),
            inner.rate_hz,
            private_columns=private,
            public_columns=(*q[:D], *POSE, "gripper"),
        )

    def _begin(self, now_ns: int) -> None:
        super()._begin(now_ns)
        self._driven = [(np.array([now_ns]), np.append(self._place, self._speeds.speed)[None, :])]
        self._odometry: list[Batch] = []

    def stage(self, condition: Mapping[str, Json], seed: int, now_ns: int) -> None:
        """As `SimRobot`; the base stands where it is until a (simulated) person has put it in its place."""
        self._speeds.reset()
        self._hand.reset(np.array([OPEN_M]))
        super().stage(condition, seed, now_ns)
        self._put_back_ns = now_ns + round(self._options.put_back_s * SECOND) if self._off() else 0

    def staged(self) -> bool:
        """Whether the base stands where it is to stand; `status` says where that is and how far off it is."""
        return not self._put_back_ns

    def _off(self) -> str:
        return off_place(self._place, self._options.near_m, self._options.near_rad)

    def status(self) -> RobotStatus:
        found = super().status()
        return RobotStatus("idle", self._off()) if self._put_back_ns and found.mode == "idle" else found

    @property
    def clipped(self) -> str:
        """The limit that shaped the last setpoints, "" when none did."""
        return ", ".join(text for text in (self._limiter.clipped, self._speeds.clipped, self._hand.clipped) if text)

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for the led axes (dof,), from where the base is now."""
        return onto_floor(super().to_pose(q[:D])[None, :], self._place)[0]

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """The led axes (n, dof) for tool poses (n, 7), from where the base is now: the arm's joints, and no speeds."""
        joints = super().to_joints(from_floor(np.asarray(poses, float), self._place), q_seed[:D])
        return np.column_stack([joints, np.zeros((len(joints), self.dof - D))])

    def follow(self, wanted: Setpoints) -> Actions:
        """As `SimRobot`; the base comes to rest when the joints have to."""
        n = len(wanted.t_ns)
        q, grip = np.reshape(wanted.q, (n, self.dof)), np.array(wanted.gripper, float)
        late = int(np.searchsorted(wanted.t_ns, self._t_ns, side="right")) if n else 0
        speeds = np.repeat(self._speeds.speed[None, :], n, axis=0)
        if late < n:
            braking = self._halted()
            speeds[late:] = self._speeds.brake(n - late) if braking else self._speeds.follow(q[late:, D:])
            self._drive(wanted.t_ns[late:], speeds[late:])
            if not braking:
                grip[late:] = self._hand.follow(grip[late:, None])[:, 0]
        inside = super().follow(Setpoints(wanted.t_ns, q[:, :D], grip))
        asked = np.column_stack([q, wanted.gripper])
        rows = (np.column_stack([row[:, :D], speeds, row[:, D:]]) for row in (inside.limited, inside.sent))
        limited, sent = rows
        return Actions(wanted.t_ns, asked, limited, sent, inside.delay_s)

    def _drive(self, t_ns: np.ndarray, speeds: np.ndarray) -> None:
        places = driven(self._place, self._all_of(speeds), self._period_s)
        self._place, self.world.places = places[-1], places
        self._driven.append((np.array(t_ns), np.column_stack([places, speeds])))

    def _all_of(self, speeds: np.ndarray) -> np.ndarray:
        """vx, vy, wz (n, 3) of the speeds (n, k) that the base has."""
        found = np.zeros((len(speeds), len(SPEEDS)))
        found[:, self._which] = speeds
        return found

    def _halt(self, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if t_ns[-1] > self._driven[-1][0][-1]:  # the robot brakes by itself, between two ticks
            self._drive(t_ns, self._speeds.brake(len(t_ns)))
        return super()._halt(t_ns)

    def drain(self, now_ns: int) -> list[Batch]:
        """As `SimRobot`, with where the base has come to; a person may have put it in its place meanwhile."""
        batches = super().drain(now_ns)
        if self._put_back_ns and now_ns >= self._put_back_ns:
            self._put_back_ns, self._place = 0, np.zeros(3)
            self.world.places = self._place[None, :]
            self._driven.append((np.array([self._t_ns + 1]), np.append(self._place, self._speeds.speed)[None, :]))
        batches += self._odometry
        self._odometry = []
        return batches

    def _sample(self, t_ns: np.ndarray) -> Batch:
        """The arm's samples with the base's between those that were reached."""
        inner = super()._sample(t_ns)
        times = np.concatenate([one for one, _ in self._driven])
        rows = np.concatenate([row for _, row in self._driven])
        between = np.column_stack([np.interp(t_ns, times, column) for column in rows.T])
        self._driven = [(times[-1:], rows[-1:])]
        places, speeds = between[:, :3], between[:, 3:]
        q, dq, tau, tcp, grip = np.split(inner.values, [D, 2 * D, 3 * D, 3 * D + 7], axis=1)
        self._odometry.append(Batch(ODOMETRY, inner.t_ns, np.column_stack([places, self._all_of(speeds)])))
        values = [q, speeds, dq, speeds, tau, np.zeros_like(speeds), onto_floor(tcp, places), grip]
        return Batch(inner.stream, inner.t_ns, np.column_stack(values))

    def observe(self) -> dict[str, np.ndarray]:
        """As `SimRobot`, of all of the led axes: q, dq (dof,), of the base its speeds in both; tcp (7,) in the frame of
        the place where it was staged; odometry (3,): x, y in m, yaw in rad in that frame; and what `SimCamera.sense`
        draws.
        """
        seen = super().observe()
        speed = self._speeds.speed
        tcp = onto_floor(seen["tcp"][None, :], self._place)[0]
        q, dq = np.concatenate([seen["q"], speed]), np.concatenate([seen["dq"], speed])
        drawn = {"links": seen["q"], "stands": self._place.copy()}
        return {**seen, **drawn, "q": q, "dq": dq, "tcp": tcp, "odometry": self._place.copy()}

    def _still(self) -> bool:
        return super()._still() and self._speeds.still


def build(options: SimBaseOptions, *, cell: Cell, fixture: Fixture) -> BaseRobot:
    """Driver "sim_base". Raises InputError for a limit or a fixture it cannot take."""
    return BaseRobot(ON_A_BASE, options, cell, fixture)
