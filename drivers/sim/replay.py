"""Driver "replay": a robot that moves as a recorded one did, as long as it is given setpoints. A fake, and says so.

May not: follow what is asked of it: `sent` is what was recorded, no faster than the cell allows. Its kind is "replay",
which a cell of kind real refuses; its episodes are stamped "replay", whatever the cell says.
The recording is an .npz with t_ns (n,), values (n, m) and columns of a recorded arm/state stream.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Actions, Batch, DeviceEvent, Kind, RobotStatus, Setpoints
from labctl.drivers.common import kinematics
from labctl.drivers.common.about import pretended
from labctl.drivers.common.box_limited_ik import BoxLimitedIk
from labctl.drivers.common.limits import limits_of
from labctl.drivers.common.robot_tables import FR3, UR5, UR5E, RobotModel
from labctl.drivers.common.states import STATE, state_spec
from labctl.drivers.sim.options import Replay
from labctl.errors import InputError
from labctl.plain import RobotAbout

ROBOT_MODELS: Mapping[str, RobotModel] = {"fr3": FR3, "ur5": UR5, "ur5e": UR5E}


# What reading a file of numpy's can raise: its zip's and its header's own words, and a size that no memory has.
UNREADABLE = (OSError, EOFError, ValueError, LookupError, TypeError, SyntaxError, RuntimeError, ArithmeticError,
              MemoryError, BadZipFile, zlib.error, struct.error)  # fmt: skip


class ReplayRobot:
    """See `labctl.devices.Robot`. The playhead moves on with each setpoint and stays while none come."""

    kind: Kind = "replay"

    def __init__(self, robot_model: RobotModel, seconds: np.ndarray, rows: np.ndarray, cell: Cell) -> None:
        robot = cell.robot
        self.robot_model, self.dof, self.joint_names = robot_model, robot_model.dof, robot_model.joint_names
        self.control_hz = float(robot.control_hz)
        self.streams = (state_spec(robot_model, float(robot.state_hz)),)
        limits = limits_of(robot_model, robot.limits, None)
        self._ik, self._fastest = BoxLimitedIk(robot_model, limits), limits.velocity
        self._seconds, self._rows = seconds, rows
        self._about = pretended(self.kind, robot_model, robot.limits)
        self._state_ns = round(SECOND / float(robot.state_hz))
        self._head = 0.0
        self._stopped = threading.Event()
        self._news: list[DeviceEvent] = []
        self._begin(0)

    def _begin(self, now_ns: int) -> None:
        self._drained_ns = now_ns
        self._last = self._at(self._head)
        self._speed = np.zeros(self.dof)
        self.clipped = self._held_back = ""
        self._played: list[tuple[int, np.ndarray]] = [(now_ns, self._last)]

    def _at(self, seconds: float) -> np.ndarray:
        """Joints and opening (dof + 1,) of the recording, its last ones beyond its end."""
        return np.array([np.interp(seconds, self._seconds, column) for column in self._rows.T])

    def connect(self, now_ns: int) -> None:
        self._begin(now_ns)

    def stage(self, condition: Mapping[str, Any], seed: int, now_ns: int) -> None:
        """Back to the beginning of the recording. Ends a stop."""
        self._head = 0.0
        self._stopped.clear()
        self._begin(now_ns)

    def staged(self) -> bool:
        return True

    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        return self._ik.joints(poses, q_seed)

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        return self._ik.pose(q)

    def follow(self, wanted: Setpoints) -> Actions:
        """Play on by a control period for each setpoint; limited and sent are what was recorded.

        Stamps that crowd together are no motion: a joint that would be faster than the cell allows comes after, and a
        note says so, once each time that the recording is played.
        """
        requested = np.column_stack([wanted.q, wanted.gripper])
        sent = np.empty_like(requested)
        for i, t_ns in enumerate(wanted.t_ns.tolist()):
            before = self._last
            if not self._stopped.is_set():
                self._head += 1.0 / self.control_hz
                self._last = self._within(before, self._at(self._head), t_ns)
            self._speed = (self._last - before)[:-1] * self.control_hz
            self._played.append((t_ns, self._last))
            sent[i] = self._last
        return Actions(wanted.t_ns, requested, sent, sent, np.zeros(len(sent)))

    def _within(self, before: np.ndarray, after: np.ndarray, t_ns: int) -> np.ndarray:
        speed = (after - before)[:-1] * self.control_hz
        over = np.flatnonzero(np.abs(speed) > self._fastest * (1 + 1e-9))
        self.clipped = f"joint {over[0] + 1} speed" if len(over) else ""
        if not len(over):
            return after
        if not self._held_back:
            i = over[0]
            self._held_back = f"the recording moves joint {i + 1} at {abs(speed[i]):.1f} rad/s by its time stamps"
            reason = f"{self._held_back}; this cell allows {self._fastest[i]:g} rad/s: it is played no faster"
            self._news.append(DeviceEvent("note", t_ns, {"reason": reason}))
        slow = np.clip(speed, -self._fastest, self._fastest) / self.control_hz
        return np.append(before[:-1] + slow, after[-1])

    def drain(self, now_ns: int) -> list[Batch]:
        """States at the cell's rate since the last drain, up to now."""
        t_ns = np.arange(self._drained_ns // self._state_ns + 1, now_ns // self._state_ns + 1) * self._state_ns
        if not len(t_ns):
            return []
        self._drained_ns = now_ns
        if now_ns > self._played[-1][0]:
            self._speed = np.zeros(self.dof)
        times = np.array([t for t, _ in self._played], float)
        rows = np.array([row for _, row in self._played])
        self._played = self._played[-1:]
        at = np.column_stack([np.interp(t_ns, times, column) for column in rows.T])
        speed = np.gradient(at[:, :-1], axis=0) * SECOND / self._state_ns if len(at) > 1 else np.zeros((1, self.dof))
        poses = kinematics.poses(self.robot_model.chain, at[:, :-1])
        parts = [at[:, :-1], speed, np.zeros_like(speed), poses, at[:, -1:], (t_ns / SECOND)[:, None]]
        return [Batch(STATE, t_ns, np.concatenate(parts, axis=1))]

    def observe(self) -> dict[str, np.ndarray]:
        q = self._last[:-1]
        dq = np.zeros(self.dof) if self._stopped.is_set() else self._speed
        return {"q": q, "dq": dq, "tcp": self._ik.pose(q), "gripper": self._last[-1:]}

    def events(self) -> list[DeviceEvent]:
        """What was held back since the last call."""
        found, self._news = self._news, []
        return found

    def about(self) -> RobotAbout:
        return self._about

    def status(self) -> RobotStatus:
        if self._stopped.is_set():
            return RobotStatus("stopped", "stop was asked for")
        return RobotStatus("moving" if self._speed.any() else "idle")

    def stop(self) -> None:
        self._stopped.set()

    def recover(self) -> None:
        self._stopped.clear()

    def close(self) -> None:
        self._stopped.set()


def _numbers(found: np.ndarray) -> bool:
    return found.dtype.kind in "iuf" and bool(np.isfinite(found).all())


def build(options: Replay, *, cell: Cell, fixture: Fixture) -> ReplayRobot:
    """A recorded arm. Raises InputError for a file that is not such a recording."""
    robot_model, path = ROBOT_MODELS[options.arm], Path(options.file)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as recording:
            t_ns, values, columns = recording["t_ns"], recording["values"], [str(c) for c in recording["columns"]]
    except UNREADABLE as error:
        why = f"replay: {path} is not a recording ({error}); write one with: labctl export … --to npz"
        raise InputError(why) from error
    if t_ns.ndim != 1 or values.shape != (len(t_ns), len(columns)):
        what = f"values {values.shape}, t_ns {t_ns.shape}, {len(columns)} columns"
        raise InputError(
            f"replay: {path} holds {what}; values must have a row for each time and a column for each name"
        )
    wanted = [*(f"q.{name}" for name in robot_model.joint_names), "gripper"]
    missing = [name for name in wanted if name not in columns]
    if missing or len(t_ns) < 2:
        raise InputError(
            f"replay: {path} holds no {robot_model.name}: {', '.join(missing) or 'fewer than two samples'}"
        )
    rows = values[:, [columns.index(name) for name in wanted]]
    if not _numbers(t_ns) or not _numbers(rows):
        raise InputError(
            f"replay: {path}: a time, an angle or an opening in it is no number; take a recording without gaps"
        )
    if (t_ns[1:] < t_ns[:-1]).any():
        raise InputError(f"replay: {path}: its times do not ascend; write one with: labctl export … --to npz")
    return ReplayRobot(robot_model, (t_ns - t_ns[0]) / SECOND, rows, cell)
