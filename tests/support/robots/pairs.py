"""Two simulated robots as one, and robots that say what they are told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.clock import ManualClock
from labctl.config.cell_schema import Cell
from labctl.devices import RobotStatus, load
from labctl.drivers.pair.robot import PairRobot
from labctl.errors import DeviceRefused
from labctl.testing.given import FIXTURE
from support.robots.cells import cell_named, changed

START_NS = 5_000_000_000


class Told:
    """A simulated robot that can be told to be in a bad mode, and to refuse to recover from it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.bad: RobotStatus | None = None
        self.refuses, self.stops, self.staged_at = "", 0, list[int]()
        self.slow_home = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def status(self) -> RobotStatus:
        return self.bad or self._inner.status()

    def stop(self) -> None:
        self.stops += 1
        self._inner.stop()

    def recover(self) -> None:
        if self.refuses:
            raise DeviceRefused(self.refuses)
        self.bad = None
        self._inner.recover()

    def stage(self, condition: Mapping[str, Any], seed: int, now_ns: int) -> None:
        self.staged_at.append(now_ns)
        self._left = self.slow_home
        self._inner.stage(condition, seed, now_ns)

    def staged(self) -> bool:
        self._left = max(self._left - 1, 0)
        return not self._left and self._inner.staged()


def pair_cell(**second: Any) -> Cell:
    """The shipped cell of two simulated FR3s, with other values in [second_robot]."""
    return changed(cell_named("sim_pair"), {"second_robot": second})


def told_pair(**second: Any) -> tuple[PairRobot, Told, Told]:
    """Two simulated robots as one, connected and staged, each of which can be told to be bad."""
    cell = pair_cell(**second)
    left, right = (Told(load(side.robot.driver, side.robot.options, cell=side, fixture=FIXTURE)) for side in cell.sides)
    assert cell.second_robot is not None
    robot = PairRobot((left, right), cell.second_robot)
    robot._clock = ManualClock()  # type: ignore[assignment]  # no call takes long, however busy this machine is
    robot.connect(START_NS)
    robot.stage({"object": "towels", "layout": "layout-1", "items": 3}, 1, START_NS)
    assert robot.staged()
    return robot, left, right


def ways(robot: PairRobot, to: np.ndarray, n: int = 100) -> np.ndarray:
    """A smooth way (n, dof) from where both stand."""
    here = robot.observe()["q"]
    return here + ((1 - np.cos(np.linspace(0, np.pi, n))) / 2)[:, None] * (to - here)
