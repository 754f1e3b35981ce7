"""The primary interface of an emulated UR as far as labctl and the vendor's own client ask it: the version message that
every client gets first, and the kinematics info behind it.

May not: serve anything else of it. Layout: see `labctl.drivers.ur.calibration`; of the version message, Universal
Robots, "Primary and secondary interfaces" (robot message, type 20; version message, 3), and their client library's
reading of it: time u64, source i8, type i8, a name with its length u8, major u8, minor u8, bugfix i32, build i32, date.
"""

from __future__ import annotations

import math
import struct

from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.robot_tables import UR_LINKS
from labctl.drivers.ur.calibration import HEAD, INFO, KINEMATICS, PART, ROBOT_STATE

LINEARISED = 2
ROBOT_MESSAGE, VERSION, NO_SOURCE = 20, 3, -1
PROJECT, DATE = b"URControl", b"01-01-2022, 00:00:00"
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


def version_message(version: tuple[int, int, int, int]) -> bytes:
    """What a controller says of its software: major, minor, bugfix and build."""
    major, minor, bugfix, build = version
    body = struct.pack(">QbbB", 0, NO_SOURCE, VERSION, len(PROJECT)) + PROJECT
    body += struct.pack(">BBii", major, minor, bugfix, build) + DATE
    return HEAD.pack(HEAD.size + len(body), ROBOT_MESSAGE) + body
