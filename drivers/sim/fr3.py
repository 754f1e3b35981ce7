"""Driver "sim_fr3": a simulated Franka FR3 with a parallel gripper and two totes.

May not: hold behaviour of its own; everything is in `labctl.drivers.sim.robot`.
"""

from __future__ import annotations

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.options import SimFr3Options
from labctl.drivers.sim.robot import SimRobot


def build(options: SimFr3Options, *, cell: Cell, fixture: Fixture) -> SimRobot:
    """A simulated FR3; cell and fixture are the parsed files.

    Raises InputError for a limit or a fixture it cannot take.
    """
    return SimRobot(FR3, cell, fixture)
