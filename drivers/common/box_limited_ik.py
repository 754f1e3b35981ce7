"""From tool poses to joint angles inside the workspace box, saying once when a pose could not be reached.

May not: know time, a driver or whether the answer is used.
"""

from __future__ import annotations

import numpy as np

from labctl.drivers.common.limits import Limits
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import RobotModel
from labctl.drivers.common.states import Sample
from labctl.drivers.common.tool_model import ToolModel

INSIDE_M = 0.001  # targets are moved this far inside the workspace box
REPORT_M = 0.005  # and reported when that or the reach moved them by more than this


class BoxLimitedIk:
    """The inverse kinematics of one arm within a cell's box. `news` is what to tell the operator, "" when nothing.

    Poses are the controller's; see `ToolModel`.
    """

    def __init__(self, robot_model: RobotModel, limits: Limits) -> None:
        self._robot_model, self._model = robot_model, ToolModel(robot_model)
        self._low, self._high = limits.box_min + INSIDE_M, limits.box_max - INSIDE_M
        self._off = False
        self.news = ""

    def measured(self, chain: MeasuredChain | None) -> None:
        """What the controller says was measured on this robot, if anything."""
        self._model = ToolModel(self._robot_model, chain)

    def seen(self, state: Sample | None) -> None:
        """Where the robot is, as its controller says; None before it said anything."""
        if state is not None:
            self._model.seen(state.q, state.tcp)

    def joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """Joint angles (n, dof) in rad for tool poses (n, 7), continuing from q_seed (dof,).

        Poses are first moved inside the box; the first one moved or missed by more than 5 mm is news.
        """
        inside = poses.copy()
        inside[:, :3] = np.clip(poses[:, :3], self._low, self._high)
        q, off_m = self._model.joints(inside, q_seed)
        missed = float((np.abs(off_m) + np.abs(inside[:, :3] - poses[:, :3])).max())
        off = not missed <= REPORT_M  # so written that a pose that is not a number counts
        self.news = f"target out of reach by {missed:.3f} m" if off and not self._off else ""
        self._off = off
        return q

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for joint angles (dof,)."""
        return self._model.pose(q)
