"""Driver "sim_rail": a simulated FR3 on a rail, with a vacuum cup.

May not: hold behaviour of its own; everything is in `labctl.drivers.sim.axes.robot`.
"""

from __future__ import annotations

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.common.simulated_axes import ON_A_RAIL
from labctl.drivers.sim.axes.robot import AxesRobot
from labctl.drivers.sim.options import SimRailOptions


def build(options: SimRailOptions, *, cell: Cell, fixture: Fixture) -> AxesRobot:
    """A simulated FR3 on a rail. Raises InputError for a limit or a fixture it cannot take."""
    return AxesRobot(ON_A_RAIL, cell, fixture)
