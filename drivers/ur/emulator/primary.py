"""The primary interface of an emulated UR as far as labctl asks it: the kinematics info that a client gets first.

May not: serve anything else of it. Layout: see `labctl.drivers.ur.calibration`.
"""

from __future__ import annotations

import math

from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import UR_LINKS
from labctl.drivers.ur.calibration import HEAD, INFO, KINEMATICS, PART, ROBOT_STATE

LINEARISED = 2
ROBOT_MODE, ROBOT_MODE_BYTES = 0, 46
# Of the kind that calibrations of real robots are (Universal Robots' ROS driver tests with three of a UR10): links off
# by less than a millimetre, axes by milliradians, and metres of d between the axes that are nearly parallel.
THETA = (-7e-5, -0.0021, 0.0017, 0.0012, 1.5e-4, -2e-5)
A = (5e-5, 7e-4, 7e-4, 1e-4, 4e-6, 0.0)
D = (7e-4, 1.4442, 0.8541, -2.2983 + 7e-4, 7e-4, 7e-4)
ALPHA = (2e-4, -4e-4, 6e-4, 1e-3, -1.2e-3, 0.0)


def published(name: str) -> MeasuredChain:
    """The table of a robot as the manufacturer publishes it: standard Denavit-Hartenberg."""
    d1, a2, a3, d4, d5, d6 = UR_LINKS[name]
    quarter = math.pi / 2
    a, d = (0.0, a2, a3, 0.0, 0.0, 0.0), (d1, 0.0, 0.0, d4, d5, d6)
    return MeasuredChain((0.0,) * 6, a, d, (quarter, 0.0, 0.0, quarter, -quarter, 0.0))


def measured(name: str) -> MeasuredChain:
    """One robot of that kind, which no other is exactly like."""
    table = published(name)
    pairs = ((table.theta, THETA), (table.a, A), (table.d, D), (table.alpha, ALPHA))
    theta, a, d, alpha = (tuple(x + y for x, y in zip(*pair, strict=True)) for pair in pairs)
    return MeasuredChain(theta, a, d, alpha)


def kinematics_info(chain: MeasuredChain) -> bytes:
    """A robot state message with the robot's mode, left empty, and its kinematics info."""
    values = INFO.pack(*range(1, 7), *chain.theta, *chain.a, *chain.d, *chain.alpha, LINEARISED)
    mode = PART.pack(ROBOT_MODE_BYTES, ROBOT_MODE) + bytes(ROBOT_MODE_BYTES - PART.size)
    parts = mode + PART.pack(PART.size + len(values), KINEMATICS) + values
    return HEAD.pack(HEAD.size + len(parts), ROBOT_STATE) + parts
