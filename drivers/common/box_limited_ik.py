"""From tool poses to joint angles inside the workspace box, saying once when a pose could not be reached.

May not: know time, a driver or whether the answer is used.
"""

from __future__ import annotations

import numpy as np
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import Limits
from labctl.drivers.common.robot_tables import Arm
from labctl.drivers.common.states import Sample

INSIDE_M = 0.001  # targets are moved this far inside the workspace box
REPORT_M = 0.005  # and reported when that or the reach moved them by more than this


class BoxLimitedIk:
    """The inverse kinematics of one arm within a cell's box. `news` is what to tell the operator, "" when nothing.

    Poses are the controller's, whose model of this very robot (calibrated, with the tool that is set there) differs
    from the published one: both are compared where the arm was `seen` last, and only differences go through the model.
    """

    def __init__(self, arm: Arm, limits: Limits) -> None:
        self._arm = arm
        self._low, self._high = limits.box_min + INSIDE_M, limits.box_max - INSIDE_M
        self._off = False
        self._places: tuple[np.ndarray, np.ndarray] | None = None  # of the tool, by our model and the controller's
        self.news = ""

    def seen(self, state: Sample | None) -> None:
        """Where the arm is, as its controller says; None before it said anything."""
        if state is not None:
            self._places = np.array(kinematics.pose(self._arm.chain, state.q.tolist())), state.tcp

    def joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray:
        """Joint angles (n, dof) in rad for tool poses (n, 7), continuing from q_seed (dof,).

        Poses are first moved inside the box; the first one moved or missed by more than 5 mm is news.
        """
        inside = poses.copy()
        inside[:, :3] = np.clip(poses[:, :3], self._low, self._high)
        model = inside if self._places is None else kinematics.carried(inside, *self._places[::-1])
        q = self._arm.inverse(model, q_seed)
        moved = np.abs(inside[:, :3] - poses[:, :3])
        missed = float((np.abs(kinematics.positions(self._arm.chain, q).T - model[:, :3]) + moved).max())
        off = not missed <= REPORT_M  # so written that a pose that is not a number counts
        self.news = f"target out of reach by {missed:.3f} m" if off and not self._off else ""
        self._off = off
        return q

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for joint angles (dof,)."""
        pose = np.array(kinematics.pose(self._arm.chain, q.tolist()))
        return pose if self._places is None else kinematics.carried(pose[None, :], *self._places)[0]
