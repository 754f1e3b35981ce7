"""A robot description for libfranka's client-side model: our own, from the published tables.

May not: describe another robot than the emulated one: the inertias are those that torques accelerate there.

Kinematics: modified DH of the FCI documentation, as in `robot_tables`. Ends of the joints, velocity offsets and
deceleration limits are those of libfranka's test/fr3.urdf, from there too.
"""

from __future__ import annotations

import math

from labctl.drivers.common.robot_tables import FLANGE_M, FR3_CHAIN, FR3_ENDS, FR3_VELOCITY
from labctl.drivers.franka.emulator.dynamics import LINKS

EFFORT = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)


def _link(i: int) -> str:
    if not 1 <= i <= len(LINKS):  # the base, which stands, and the flange, whose mass is link 7's
        return f'<link name="link{i}"/>'
    mass, centre, moments = LINKS[i - 1]
    named = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), moments, strict=True)
    inertia = " ".join(f'{name}="{value!r}"' for name, value in named)
    origin = f'<origin rpy="0 0 0" xyz="{" ".join(map(repr, centre))}"/>'
    return f'<link name="link{i}"><inertial>{origin}<mass value="{mass!r}"/><inertia {inertia}/></inertial></link>'


def _joint(i: int) -> str:
    a, alpha, d = FR3_CHAIN.rows[i]
    origin = f'<origin rpy="{alpha!r} 0 0" xyz="{a!r} {-d * math.sin(alpha)!r} {d * math.cos(alpha)!r}"/>'
    ends, offset, slowing = FR3_ENDS, FR3_ENDS.offset[i], FR3_ENDS.deceleration[i]
    limit = (
        f'<limit effort="{EFFORT[i]}" velocity="{FR3_VELOCITY[i]}" lower="{ends.lower[i]}" upper="{ends.upper[i]}"/>'
    )
    limits = f'<position_based_velocity_limits velocity_offset="{offset}" deceleration_limit="{slowing}"/>'
    links = f'<parent link="link{i}"/><child link="link{i + 1}"/><axis xyz="0 0 1"/>'
    return f'<joint name="joint{i + 1}" type="revolute">{origin}{links}{limit}{limits}</joint>'


def urdf() -> bytes:
    """The description as XML text without a terminator."""
    links = "".join(_link(i) for i in range(9))
    joints = "".join(_joint(i) for i in range(7))
    flange = (
        f'<joint name="flange" type="fixed"><origin rpy="0 0 0" xyz="0 0 {FLANGE_M}"/>'
        '<parent link="link7"/><child link="link8"/></joint>'
    )
    return f'<?xml version="1.0"?><robot name="fr3">{links}{joints}{flange}</robot>'.encode()
