"""An FR3 under polymetis's law as DROID starts it, simulated: what `servo = "impedance"` is held against.

May not: use the driver's own law, or franky. The law is HybridJointImpedanceControl of facebookresearch/fairo
(torchcontrol's policies/impedance.py and modules/feedback.py), with the gains and the cutoff of droid-dataset/droid's
config/fr3/franka_hardware.yaml. On its way to the robot libfranka smooths a torque and lets it change by 1 N m in a
millisecond (lowpass_filter.cpp, rate_limiting.cpp).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3, Tool, with_tool
from labctl.drivers.franka.emulator.dynamics import Dynamics, hand

KQ, KQD = np.array([40, 30, 50, 25, 35, 25, 10.0]), np.array([4, 6, 5, 5, 3, 2, 1.0])
KX, KXD = np.array([400, 400, 400, 15, 15, 15.0]), np.array([37, 37, 37, 2, 2, 2.0])
SMOOTHED = 0.001 / (0.001 + 1 / (2 * np.pi * 100.0))
STEP_S = 1 / 15  # DROID's control period
UNIT_RAD = 0.2  # what a joint velocity of 1 adds to the measured joints: RobotIKSolver.max_joint_delta
FLANGE = with_tool(FR3, Tool((0.0, 0.0, 0.0))).chain

Wanted = Callable[[int, np.ndarray], np.ndarray]


def moved(start: np.ndarray, wanted: Wanted, ms: int) -> np.ndarray:
    """Joints (ms, 7) of a robot that stands at start (7,); `wanted` gives the target (7,) for the ms and the joints."""
    arm, q, dq, torque, rows = Dynamics([hand(0.73)]), start.copy(), np.zeros(7), np.zeros(7), []
    for now in range(ms):
        rows.append(q)
        jacobian = kinematics.jacobian(FLANGE, q[None, :])[0][0]
        coriolis = arm.terms(q, dq)[1]
        stiff, damp = (np.diag(of_joints) + jacobian.T @ np.diag(of_tool) @ jacobian for of_joints, of_tool in GAINS)
        asked = stiff @ (wanted(now, q) - q) - damp @ dq + coriolis
        torque = torque + np.clip(SMOOTHED * (asked - torque), -1.0, 1.0)
        dq = dq + 0.001 * arm.acceleration(q, dq, torque)
        q = q + 0.001 * dq
    return np.array(rows)


GAINS = ((KQ, KX), (KQD, KXD))


def acting(unit: np.ndarray) -> Wanted:
    """Targets of a DROID policy that asks for a joint velocity `unit` (7,) at every step, from the measured joints."""
    period, held = round(1000 * STEP_S), [np.zeros(7)]

    def wanted(now: int, q: np.ndarray) -> np.ndarray:
        if now % period == 0:
            held[0] = q + UNIT_RAD * unit
        return held[0]

    return wanted
