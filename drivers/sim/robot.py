"""A simulated robot: a robot that follows its setpoints exactly, a gripper and a scene, behind the `Robot` class.

May not: choose motions, sleep or read a clock; time comes in with setpoints and drains. Behaves; proves nothing about
hardware.

No torque is modelled: the tau columns of `arm/state` are zero. The `tracker` stream is a simulated marker tracker with
noise.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Actions, Batch, DeviceEvent, Kind, RobotStatus, Setpoints
from labctl.drivers.common import kinematics
from labctl.drivers.common.about import pretended
from labctl.drivers.common.box_limited_ik import BoxLimitedIk
from labctl.drivers.common.limits import Limiter, limits_of
from labctl.drivers.common.robot_tables import FR3, UR5, RobotModel
from labctl.drivers.common.states import STATE, state_spec
from labctl.drivers.common.sweep import Sweep, yaw_of
from labctl.drivers.sim.options import SimFr3Options, SimUr5Options
from labctl.drivers.sim.tracker import tracker_batch, tracker_spec
from labctl.drivers.sim.world import World
from labctl.errors import DeviceRefused
from labctl.plain import RobotAbout

TCP_SPEED_M_S = 1.0  # the simulated safety controller stops above this speed of the tool
STALE_S = 0.1  # without setpoints for this long the robot brakes by itself


class SimRobot:
    """One simulated robot. See `labctl.devices.Robot` for the verbs.

    After `stop` the robot brakes within its acceleration limits and stays until `recover` or `stage`; so it does after
    a safety stop, which latches.
    """

    kind: Kind = "sim"

    def __init__(self, robot_model: RobotModel, cell: Cell, fixture: Fixture) -> None:
        """Raises InputError for limits the robot does not have or a fixture of another kind."""
        robot = cell.robot
        self.robot_model = robot_model
        self.dof = robot_model.dof
        self.joint_names = robot_model.joint_names
        self.control_hz = float(robot.control_hz)
        self.world = World(fixture)
        self._period_ns = round(SECOND / self.control_hz)
        limits = limits_of(robot_model, robot.limits, robot_model.home)
        self._limiter = Limiter(robot_model, limits, 1.0 / self.control_hz)
        self._about = pretended(self.kind, robot_model, robot.limits)
        self._ik = BoxLimitedIk(robot_model, limits)
        self._state_period_ns = round(SECOND / float(robot.state_hz))
        state = state_spec(robot_model, float(robot.state_hz), device_clock=False)
        self.streams = (state, tracker_spec(float(robot.observe_hz)))
        self._stop_asked = threading.Event()
        self._safety = ""
        self._notes: list[DeviceEvent] = []
        self._begin(0)

    def _begin(self, now_ns: int) -> None:
        self._t_ns = now_ns
        self._drained_ns = now_ns
        self._scene = {name: _fixed(values) for name, values in self.world.scene().items()}
        self._sent = [(np.array([now_ns]), self._limiter.q[None, :].copy(), np.array([self.world.opening]))]
        self._seen: list[tuple[int, np.ndarray]] = []

    def connect(self, now_ns: int) -> None:
        """Stand at the present configuration from now_ns on."""
        self._begin(now_ns)

    def stage(self, condition: Mapping[str, Any], seed: int, now_ns: int) -> None:
        """Fill the source tote from the seed and put the robot at home at once.

        Also ends a stop. Raises InputError for an unknown name.
        """
        self.world.stage(condition, seed)
        self._limiter.reset(self.robot_model.home)
        self.recover()
        self._notes.clear()
        self._begin(now_ns)

    def staged(self) -> bool:
        """True: the simulated robot is at home at once."""
        return True

    @property
    def clipped(self) -> str:
        """The limit that shaped the last setpoints, "" when none did."""
        return self._limiter.clipped

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for joint angles (dof,) in rad."""
        return self._ik.pose(q)

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """Joint angles (n, dof) in rad for tool poses (n, 7), continuing from q_seed (dof,); see `BoxLimitedIk`."""
        q = self._ik.joints(poses, q_seed)
        if self._ik.news:
            self._notes.append(DeviceEvent("note", self._t_ns, {"reason": self._ik.news}))
        return q

    def follow(self, wanted: Setpoints) -> Actions:
        """Follow setpoints one control period apart. Limited and sent differ only when the safety controller cuts in.

        While stopped or braking both are the stop itself. Setpoints for a time already passed move nothing.
        """
        n = len(wanted.t_ns)
        rows = np.empty((3, n, self.robot_model.dof + 1))
        rows[0, :, :-1], rows[0, :, -1] = wanted.q, wanted.gripper
        late = int(np.searchsorted(wanted.t_ns, self._t_ns, side="right")) if n and wanted.t_ns[0] <= self._t_ns else 0
        if late:
            rows[1:, :late, :-1], rows[1:, :late, -1] = self._limiter.q, self.world.opening
        if late < n:
            t_ns, q, gripper = wanted.t_ns[late:], wanted.q[late:], wanted.gripper[late:]
            rows[1, late:, :-1], rows[2, late:, :-1], openings = self._move(t_ns, q, gripper)
            rows[1:, late:, -1] = openings
        return Actions(wanted.t_ns, rows[0], rows[1], rows[2], np.zeros(n))

    def _move(self, t_ns: np.ndarray, q: np.ndarray, gripper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Limited joints, sent joints (n, dof) and the openings reached (n,)."""
        if self._halted():
            sent, openings = self._halt(t_ns)
            return sent, sent, openings
        start, tip = self._limiter.q, self._limiter.pose
        limited = sweep = self._limiter.follow(q)
        stop = self._hazard(tip, sweep) if sweep.travel or self._carried() else None
        if stop is not None:
            i, self._safety = stop
            self.world.events.append(DeviceEvent("safety_stop", int(t_ns[i]), {"reason": self._safety}))
            sweep = self._limiter.cut(sweep, start, i)
        sent, openings = self._send(t_ns, sweep, gripper)
        return limited.q, sent, openings

    def _send(self, t_ns: np.ndarray, sweep: Sweep, gripper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        openings = self.world.advance(t_ns, sweep, gripper, self._period_ns / SECOND)
        self._sent.append((t_ns, sweep.q, openings))
        self._t_ns = int(t_ns[-1])
        return sweep.q, openings

    def _hazard(self, tip: tuple[float, ...], sweep: Sweep) -> tuple[int, str] | None:
        n = len(sweep.q)
        most = TCP_SPEED_M_S * self._period_ns / SECOND
        if math.dist(tip[:3], sweep.end[:3]) > 0.7 * most * n or sweep.travel == math.inf:
            steps = np.diff(sweep.positions, axis=1, prepend=np.array(tip[:3])[:, None])
            fast = (steps * steps).sum(axis=0) > most * most
            if fast.any():
                return int(np.argmax(fast)), "the tool moved faster than the safety limit"
        return self.world.contact(sweep)

    def _carried(self) -> bool:
        """Does anything but the joints move the tool in this tick?"""
        return False

    def _halted(self) -> bool:
        return self._stop_asked.is_set() or bool(self._safety)

    def _still(self) -> bool:
        return self._limiter.still

    def _halt(self, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._send(t_ns, self._limiter.brake(len(t_ns)), np.full(len(t_ns), self.world.opening))

    def drain(self, now_ns: int) -> list[Batch]:
        """State sampled at the cell's rate since the last drain, up to the newest setpoint, and what the tracker saw.

        Without setpoints for 0.1 s the robot has braked and stood since: those samples are made here.
        """
        idle = (now_ns - self._t_ns) // self._period_ns
        if idle > 0 and (self._halted() or idle * self._period_ns > STALE_S * SECOND):
            self._halt(self._t_ns + self._period_ns * np.arange(1, idle + 1))
        batches = []
        first = self._drained_ns // self._state_period_ns + 1
        last = self._t_ns // self._state_period_ns
        if last >= first:
            batches.append(self._sample(np.arange(first, last + 1) * self._state_period_ns))
            self._drained_ns = self._t_ns
        if self._seen:
            batches.append(tracker_batch(self._seen))
            self._seen = []
        return batches

    def _sample(self, t_ns: np.ndarray) -> Batch:
        dof = self.robot_model.dof
        times, q, grip = (np.concatenate([row[i] for row in self._sent]) for i in range(3))
        after = np.clip(np.searchsorted(times, t_ns), 1, len(times) - 1)
        gap = (times[after] - times[after - 1]) / SECOND
        share = ((t_ns - times[after - 1]) / SECOND / gap)[:, None]
        moved = q[after] - q[after - 1]
        values = np.zeros((len(t_ns), 3 * dof + 8))
        joints = q[after - 1] + share * moved
        values[:, :dof] = joints
        values[:, dof : 2 * dof] = moved / gap[:, None]
        values[:, 3 * dof : -1] = kinematics.poses(self.robot_model.chain, joints)
        values[:, -1] = grip[after - 1] + share[:, 0] * (grip[after] - grip[after - 1])
        self._sent = [(times[-1:], q[-1:], grip[-1:])]
        return Batch(STATE, t_ns, values)

    def observe(self) -> dict[str, np.ndarray]:
        """What sensors say now: q, dq (dof,), tcp (7,), gripper (1,), items (n, 8) from the tracker; and the scene,
        which is known from the fixture: `World.scene`, `World.beside`.
        """
        items = self.world.tracked(yaw_of(self._limiter.pose))
        self._seen.append((self._t_ns, items))
        return {
            "q": self._limiter.q,
            "dq": self._limiter.move * self.control_hz,
            "tcp": np.array(self._limiter.pose),
            "gripper": np.array([self.world.opening]),
            "items": items,
            **self._scene,
            **self.world.beside(),
        }

    def events(self) -> list[DeviceEvent]:
        """What happened since the last call, at its measured time, in order."""
        found = self._notes + self.world.events
        self._notes, self.world.events = [], []
        return sorted(found, key=lambda event: event.t_ns) if len(found) > 1 else found

    def about(self) -> RobotAbout:
        return self._about

    def status(self) -> RobotStatus:
        if self._safety:
            return RobotStatus("safety_stop", self._safety)
        if self._stop_asked.is_set():
            return RobotStatus("stopped", "stop was asked for")
        return RobotStatus("idle" if self._still() else "moving")

    def stop(self) -> None:
        """Brake within the acceleration limits, from the next servo cycle on. Any thread; any number of times."""
        self._stop_asked.set()

    def recover(self) -> None:
        """Allow motion again after a stop or safety stop.

        Raises DeviceRefused while the robot still moves. Moves nothing.
        """
        if not self._still():
            raise DeviceRefused("the robot is still moving: wait until it stands, then recover")
        self._stop_asked.clear()
        self._safety = ""

    def close(self) -> None:
        self.stop()


def _fixed(values: Sequence[float]) -> np.ndarray:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def fr3(options: SimFr3Options, *, cell: Cell, fixture: Fixture) -> SimRobot:
    """Driver "sim_fr3": a Franka FR3. Raises InputError for a limit or a fixture it cannot take."""
    return SimRobot(FR3, cell, fixture)


def ur5(options: SimUr5Options, *, cell: Cell, fixture: Fixture) -> SimRobot:
    """Driver "sim_ur5": a Universal Robots UR5 (CB3). Raises InputError for a limit or a fixture it cannot take."""
    return SimRobot(UR5, cell, fixture)
