"""The words of a policy card that name what a number means: states, spaces, rotations, ways to say an opening.

May not: say how one is computed (`labctl.drivers.policy` does).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

STATES = (
    "joint_position",
    "joint_velocity",
    "gripper",
    "tcp_position",
    "tcp_quaternion_xyzw",
    "tcp_quaternion_wxyz",
    "tcp_euler_xyz",
    "tcp_rotvec",
    "tcp_rot6d_rows",
    "tcp_rot6d_columns",
    "axes",
)
SPACES = (
    *("joint_position", "joint_delta", "joint_velocity", "droid_joint_velocity"),
    *("tcp_pose", "tcp_delta", "tcp_velocity", "droid_cartesian_velocity", "axes"),
)
ROTATIONS = ("quaternion_xyzw", "quaternion_wxyz", "euler_xyz", "rotvec", "rot6d_rows", "rot6d_columns")
# Convention -> the numbers for open and for closed; None: the number is the opening itself, m.
GRIPPERS: Mapping[str, tuple[float, float] | None] = {
    "0_open_1_closed": (0.0, 1.0),  # DROID, openpi, RoboArena, GR00T's DROID embodiment
    "1_open_0_closed": (1.0, 0.0),  # OpenVLA and Open X-Embodiment, ALOHA
    "-1_open_1_closed": (-1.0, 1.0),  # LIBERO and robosuite actions, deoxys
    "1_open_-1_closed": (1.0, -1.0),
    "0_open_255_closed": (0.0, 255.0),  # Robotiq registers, GELLO
    "width_m": None,  # UMI; deoxys' proprioception
}
TURNED = ("tcp_pose", "tcp_delta")  # spaces whose rotation has to be named
DELTAS = ("joint_delta", "tcp_delta")  # spaces that have to say from where they count
DROID_HZ = 15.0  # DROID's unit is "per step of 15 Hz" (droid, RobotIKSolver.control_hz)
EXTERIOR = re.compile(r"^observation/exterior_image_(\d{1,4})_left$")
