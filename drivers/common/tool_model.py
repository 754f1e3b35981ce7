"""Where a robot's tool is for its joints, and back, as the robot's own controller has it.

May not: know a driver, time, or limits other than the ends of the joints.

A controller's model of its robot is calibrated, the published table is not. Where the controller says what was measured
on it (`MeasuredChain`), that is labctl's model, and the table's answer is where it begins to look for joints; where it
does not, the table is. What is left over, a tool that is set otherwise for one, is compared where the robot was `seen`
last, so that only differences go through labctl's model.
"""

from __future__ import annotations

import numpy as np

from labctl import rotations
from labctl.drivers.common import kinematics
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import RobotModel

STEPS = 5  # each leaves about a hundredth of what was left before
FOUND_M = 1e-3  # an answer of the table that is further from its pose is the nearest one within reach: left as it is
MOST_RAD = 0.05  # of one step
NEAR = 1e-8  # m and rad: near enough


class ToolModel:
    """See the module. Poses (7,) or (n, 7) are of the robot's tool, base frame."""

    def __init__(self, robot_model: RobotModel, measured: MeasuredChain | None = None) -> None:
        """measured: up to the flange, where the chain's last row ends; the robot's tool stands on that."""
        self._robot_model, self._measured = robot_model, measured
        turn = kinematics.tool_quaternion(robot_model.chain)
        self._tool = [*robot_model.chain.tool_xy, robot_model.chain.tool_z, *turn.tolist()]
        self._reach, self._turn = np.array(self._tool[:3]), rotations.matrix(turn[None, :])[0]
        self._places: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def seen(self, q: np.ndarray, tcp: np.ndarray) -> None:
        """With joints q (dof,) the tool is at tcp (7,), says the controller."""
        table = np.array(kinematics.pose(self._robot_model.chain, q.tolist()))
        self._places = table, table if self._measured is None else self._pose(q), tcp

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) for joints (dof,)."""
        pose = self._pose(q)
        return pose if self._places is None else kinematics.carried(pose[None, :], *self._places[1:])[0]

    def joints(self, poses: np.ndarray, q_seed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Joints (n, dof) for tool poses (n, 7), continuing from q_seed (dof,), and by how much each misses its place
        (n, 3) in m.
        """
        table, own, tcp = (None, None, None) if self._places is None else self._places
        first = poses if table is None or tcp is None else kinematics.carried(poses, tcp, table)
        goal = poses if own is None or tcp is None else kinematics.carried(poses, tcp, own)
        q = self._robot_model.inverse(first, q_seed)
        missed = kinematics.positions(self._robot_model.chain, q).T - first[:, :3]
        found = np.abs(missed).max(axis=1) < FOUND_M  # so written that a pose that is not a number does not count
        if self._measured is not None and found.any():
            q[found], missed[found] = self._refined(self._measured, q[found], goal[found])
        return q, missed

    def _pose(self, q: np.ndarray) -> np.ndarray:
        """Tool pose (7,) by the best model there is."""
        if self._measured is None:
            return np.array(kinematics.pose(self._robot_model.chain, q.tolist()))
        return self._measured.pose(q.tolist(), self._tool)

    def _tool_at(self, measured: MeasuredChain, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at, turn = measured.flange(q)
        return at + turn @ self._reach, turn @ self._turn

    def _refined(self, measured: MeasuredChain, q: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Joints whose tool is at the goal by what was measured: Newton's steps with the table's Jacobian, which hardly
        changes over millimetres.
        """
        wanted = kinematics.turns(goal)
        robot_model = self._robot_model
        jac = kinematics.jacobian(robot_model.chain, q)[0]
        back = jac.transpose(0, 2, 1)
        inverse = back @ np.linalg.inv(jac @ back + 1e-9 * np.eye(6))
        for _ in range(STEPS):
            at, turn = self._tool_at(measured, q)
            error = kinematics.pose_error(goal, wanted, at, turn)
            if float(np.abs(error).max()) < NEAR:
                break
            step = (inverse @ error[:, :, None])[:, :, 0]
            q = np.clip(q + np.clip(step, -MOST_RAD, MOST_RAD), robot_model.lower, robot_model.upper)
        return q, self._tool_at(measured, q)[0] - goal[:, :3]
