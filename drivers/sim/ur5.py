"""Driver "sim_ur5": a simulated Universal Robots UR5 (CB3) with a parallel gripper and two totes.

May not: hold behaviour of its own; everything is in `labctl.drivers.sim.robot`.
"""

from __future__ import annotations

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.common.robot_tables import UR5
from labctl.drivers.sim.options import SimUr5Options
from labctl.drivers.sim.robot import SimRobot


def build(options: SimUr5Options, *, cell: Cell, fixture: Fixture) -> SimRobot:
    """A simulated UR5; cell and fixture are the parsed files.

    Raises InputError for a limit or a fixture it cannot take.
    """
    return SimRobot(UR5, cell, fixture)
