"""Sensor "robot_wrench": force and torque at the tool as the robot itself measures them, base frame.

May not: talk to the robot: it reads what the robot's process observes (`wrench` of `Robot.observe`), once each.

A UR's is the generalised force at its tool centre point (RTDE's `actual_TCP_force`, its payload taken off), an FR3's
the external wrench that libfranka estimates from the joints' torques (`O_F_ext_hat_K`), at its stiffness frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Batch, Kind
from labctl.drivers.sensors.options import WRENCH, RobotWrenchOptions
from labctl.errors import DeviceLost

MOST = 10_000  # rows kept while nobody drains


class RobotWrench:
    """See `labctl.devices.Sensor`."""

    observes = True

    def __init__(self, options: RobotWrenchOptions, kind: Kind) -> None:
        self.kind, self.stream = kind, options.stream()
        self._least_ns = round(0.9 * SECOND / options.rate_hz)  # observations a little early are not left out
        self._connected = False
        self._rows: list[tuple[int, np.ndarray]] = []
        self._last_ns = 0
        self._lacking = False

    def connect(self, now_ns: int) -> None:
        """Wait for observations; whether they have a wrench shows with the first."""
        if not self._connected:
            self._connected, self._lacking, self._rows, self._last_ns = True, False, [], 0

    def sense(self, t_ns: int, observation: Mapping[str, np.ndarray]) -> None:
        """Take the wrench (6,), N and N m, of an observation at t_ns."""
        wrench = observation.get("wrench")
        self._lacking = wrench is None
        if self._connected and wrench is not None and t_ns - self._last_ns >= self._least_ns and len(self._rows) < MOST:
            self._rows.append((t_ns, np.array(wrench, float)))
            self._last_ns = t_ns

    def drain(self, now_ns: int) -> Batch:
        """The wrenches since the last call. Raises DeviceLost where the robot's driver reports none."""
        if not self._connected:
            raise RuntimeError("the sensor is not connected")
        if self._lacking:
            raise DeviceLost("this cell's robot measures no wrench; take the sensor out, or name another driver")
        rows, self._rows = self._rows, []
        values = np.array([wrench for _, wrench in rows]).reshape(-1, len(WRENCH))
        return Batch(self.stream.name, np.array([t_ns for t_ns, _ in rows], np.int64), values)

    def close(self) -> None:
        self._connected = False


def build(options: RobotWrenchOptions, *, cell: Cell, fixture: Fixture) -> RobotWrench:
    """The wrench of the cell's robot; its kind is the robot's."""
    kind: Kind = "real" if cell.kind in ("real", "emulated") else cell.kind
    return RobotWrench(options, kind)
