"""A robot description for libfranka's client-side model: our own, from the published tables.

May not: claim dynamics. Masses are round numbers of a plausible size.

Kinematics: modified DH of the FCI documentation, as in `robot_tables`. Velocity offsets and deceleration limits
are what the FCI documentation gives for the position-based velocity limits of the FR3.
"""

from __future__ import annotations

import math

from labctl.drivers.common.robot_tables import FR3_CHAIN, FR3_LOWER, FR3_UPPER, FR3_VELOCITY

FLANGE_M = 0.107
EFFORT = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
OFFSET = (0.652, 0.25, 0.2005, 0.3, 0.455, 0.75, 0.455)
DECELERATION = (6.0, 2.585, 3.5, 4.0, 17.0, 5.5, 17.0)


def _link(name: str) -> str:
    inertia = '<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/>'
    return f'<link name="{name}"><inertial><origin xyz="0 0 0"/><mass value="2.5"/>{inertia}</inertial></link>'


def _joint(i: int) -> str:
    a, alpha, d = FR3_CHAIN.rows[i]
    origin = f'<origin rpy="{alpha!r} 0 0" xyz="{a!r} {-d * math.sin(alpha)!r} {d * math.cos(alpha)!r}"/>'
    limit = f'<limit effort="{EFFORT[i]}" velocity="{FR3_VELOCITY[i]}" lower="{FR3_LOWER[i]}" upper="{FR3_UPPER[i]}"/>'
    limits = f'<position_based_velocity_limits velocity_offset="{OFFSET[i]}" deceleration_limit="{DECELERATION[i]}"/>'
    ends = f'<parent link="link{i}"/><child link="link{i + 1}"/><axis xyz="0 0 1"/>'
    return f'<joint name="joint{i + 1}" type="revolute">{origin}{ends}{limit}{limits}</joint>'


def urdf() -> bytes:
    """The description as XML text without a terminator."""
    links = "".join(_link(f"link{i}") for i in range(9))
    joints = "".join(_joint(i) for i in range(7))
    flange = (
        f'<joint name="flange" type="fixed"><origin rpy="0 0 0" xyz="0 0 {FLANGE_M}"/>'
        '<parent link="link7"/><child link="link8"/></joint>'
    )
    return f'<?xml version="1.0"?><robot name="fr3">{links}{joints}{flange}</robot>'.encode()
