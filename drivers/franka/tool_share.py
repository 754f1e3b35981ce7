"""What the joints of a Franka do when its tool is led, the elbow kept: their speeds, and how hard they may be driven.

May not: import franky, or know a motion.
"""

from __future__ import annotations

import numpy as np

# FCI documentation, limits of the FR3: m/s2 and rad/s2, m/s3 and rad/s3
ACCELERATION, JERK = (9.0, 17.0), (4500.0, 8500.0)
JOINT_SHARE, LEAST_SHARE = 0.9, 0.01  # the least is franky's own


def tool_share(jacobian: np.ndarray, accelerations: np.ndarray) -> float:
    """Share of the tool's acceleration and jerk limits within which no joint can pass its own, `accelerations` (7,)
    rad/s2, however the six axes are accelerated at once; jacobian (6, 7), the elbow kept. The robot checks both (FCI
    documentation, limits of the FR3); what a joint's jerk is to its acceleration, the tool's is too, so one share is
    for both.
    """
    inverse = np.abs(elbow_kept(jacobian))
    most = inverse[:, :3].sum(axis=1) * ACCELERATION[0] + inverse[:, 3:6].sum(axis=1) * ACCELERATION[1]
    return max(LEAST_SHARE, JOINT_SHARE / float((most / accelerations).max()))


def elbow_kept(jacobian: np.ndarray) -> np.ndarray:
    """The joints' speeds (7, 7) for the tool's six and the elbow's; jacobian (6, 7)."""
    return np.linalg.pinv(np.vstack([jacobian, np.eye(7)[2]]))
