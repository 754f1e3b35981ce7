"""The body behind an emulated controller: joints where it puts them, a hand, and the scene of the sim driver.

May not: speak a protocol, know a client, or model dynamics: the robot is exactly where its controller says.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.config.cell_schema import Fixture
from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.common.sweep import Sweep, levers, yaw_of
from labctl.drivers.sim.world import World

BATCH_S = 0.01  # the scene advances in steps of about this length
DEEPER_M = 0.001


class SimulatedPlant:
    """One simulated robot body. `tick` is called by the controller's loop, `sense` and `stage` from other threads.

    q, dq: (dof,) rad, rad/s. contact: what the tool hit, latched until `clear_contact`.
    """

    def __init__(self, robot_model: RobotModel, fixture: Fixture, period_s: float, *, now_ns: int) -> None:
        self.robot_model, self.period_s, self.fixture = robot_model, period_s, fixture
        self.world = World(fixture)
        self.q = robot_model.home.copy()
        self.dq = np.zeros(robot_model.dof)
        self.contact = ""
        self._stuck_z: float | None = None  # where the tool was let go of inside something, until it is out
        self._lock = threading.Lock()
        self._lever = levers(robot_model.chain)
        self._batch = max(1, round(BATCH_S / period_s))
        self._rows: list[np.ndarray] = []
        self._times: list[int] = []
        self._wanted = self.world.opening
        self._now_ns = now_ns
        self._pose = kinematics.pose(robot_model.chain, self.q.tolist())

    @property
    def opening(self) -> float:
        """Between the fingers, m."""
        return self.world.opening

    def grip(self, opening_m: float) -> None:
        """Where the fingers are asked to go; they move as time ticks and stop at what they hold."""
        self._wanted = float(opening_m)

    def tick(self, q: np.ndarray, now_ns: int) -> None:
        """One control period later the robot is at q (dof,); now_ns is the host's monotonic time."""
        self.dq = (q - self.q) / self.period_s
        self.q = q
        self._rows.append(q)
        self._times.append(now_ns)
        if len(self._rows) >= self._batch:
            self._advance()

    def _advance(self) -> None:
        rows, times = np.array(self._rows), np.array(self._times)
        self._rows, self._times = [], []
        with self._lock:
            before = self._pose
            self._pose = kinematics.pose(self.robot_model.chain, rows[-1].tolist())
            steps = np.abs(np.diff(rows, axis=0, prepend=rows[:1]))
            travel = float((steps @ self._lever).sum()) + 1e-6
            sweep = Sweep(self.robot_model.chain, rows, self._pose, travel if before != self._pose else 0.0)
            hit = self.world.contact(sweep) if sweep.travel and not self.contact else None
            if hit is None:
                self._stuck_z = self._stuck_z if self.contact or not sweep.travel else None
            elif self._stuck_z is None or self._pose[2] < self._stuck_z - DEEPER_M:
                self.contact = hit[1]
            self.world.advance(times, sweep, np.full(len(rows), self._wanted), self.period_s)
            self._now_ns = int(times[-1])

    def clear_contact(self) -> None:
        """Forget what was hit. A tool that stands in it may leave it, but not go deeper."""
        if self.contact:
            self.contact, self._stuck_z = "", self._pose[2]

    def stage(self, condition: Mapping[str, Any], seed: int) -> None:
        """Fill the source tote by the seed; arm and fingers stay. Raises InputError for a name the fixture lacks."""
        with self._lock:
            opening = self.world.opening
            self.world.stage(condition, seed)
            self.world.opening = opening

    def sense(self) -> dict[str, Any]:
        """What the cell's sensors would say, as plain lists: items (n, 8), the scene, events since the last call."""
        with self._lock:
            world = self.world
            items = world.tracked(yaw_of(self._pose))
            events, world.events = world.events, []
            return {
                "t_ns": self._now_ns,
                "items": items.tolist(),
                "events": [{"kind": e.kind, "t_ns": e.t_ns, "body": dict(e.body)} for e in events],
                "scene": {**world.scene(), **{name: values.tolist() for name, values in world.beside().items()}},
            }
