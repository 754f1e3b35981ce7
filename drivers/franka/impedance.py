"""DROID's impedance law for an FR3: its gains, where franky wants them, and how fast a robot follows a target under it.

May not: import franky, or know a motion. The law is polymetis's HybridJointImpedanceControl, which DROID starts under
the name of Cartesian impedance: stiffness of the joints, and of the flange seen through its Jacobian, towards joints
that are desired at rest; damping likewise. Unverified on hardware.
"""

from __future__ import annotations

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import RobotModel, Tool, with_tool

# droid-dataset/droid, config/fr3/franka_hardware.yaml: default_Kq, default_Kqd, default_Kx, default_Kxd; config/panda/…
# differs in Kx alone
JOINT_STIFFNESS = np.array([40.0, 30.0, 50.0, 25.0, 35.0, 25.0, 10.0])  # N m/rad
JOINT_DAMPING = np.array([4.0, 6.0, 5.0, 5.0, 3.0, 2.0, 1.0])  # N m s/rad
FLANGE_STIFFNESS = {  # N/m, N m/rad, along the axes of the base
    "fr3": np.array([400.0, 400.0, 400.0, 15.0, 15.0, 15.0]),
    "fer": np.array([750.0, 750.0, 750.0, 15.0, 15.0, 15.0]),
}
FLANGE_DAMPING = np.array([37.0, 37.0, 37.0, 2.0, 2.0, 2.0])  # N s/m, N m s/rad
# N m in a millisecond before libfranka's low-pass filter (100 Hz, on in franky too), which leaves of it what the robot
# allows, 1 N m. polymetis filters first; franky, which limits first, would be 2.6 times slower with its own default.
TORQUE_STEP = 0.99 * (0.001 + 1 / (2 * np.pi * 100.0)) / 0.001
GAINS_S = 0.02  # franky's own smoothing of gains that change with how the tool is turned


class DroidLaw:
    """The law on a robot with its tool."""

    def __init__(self, robot_model: RobotModel) -> None:
        self._tool, self.flange_stiffness = robot_model.chain, FLANGE_STIFFNESS[robot_model.name]
        self._flange = with_tool(robot_model, Tool((0.0, 0.0, 0.0))).chain

    def rate(self, q: np.ndarray) -> np.ndarray:
        """A `steps.Law`: in steady motion the torques of damping and of stiffness are the same."""
        jacobian = kinematics.jacobian(self._flange, q[None, :])[0][0]
        stiffness = np.diag(JOINT_STIFFNESS) + jacobian.T @ (self.flange_stiffness[:, None] * jacobian)
        damping = np.diag(JOINT_DAMPING) + jacobian.T @ (FLANGE_DAMPING[:, None] * jacobian)
        return np.linalg.solve(damping, stiffness)

    def at_tool(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and damping (6, 6) that act at the tool's centre point as the gains do at the flange.

        franky has its gains at the end effector; DROID's panda_link8 is the flange.
        """
        flange, tool = (kinematics.positions(chain, q[None, :])[:, 0] for chain in (self._flange, self._tool))
        x, y, z = flange - tool
        shift = np.eye(6)  # the flange's velocity for one of the tool
        shift[:3, 3:] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]
        stiffness, damping = (shift.T @ (row[:, None] * shift) for row in (self.flange_stiffness, FLANGE_DAMPING))
        return (stiffness + stiffness.T) / 2, (damping + damping.T) / 2
