"""Driver "sim_hand": a simulated FR3 with a hand of five axes.

May not: hold behaviour of its own; everything is in `labctl.drivers.sim.axes.robot`.
"""

from __future__ import annotations

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.common.simulated_axes import WITH_A_HAND
from labctl.drivers.sim.axes.robot import AxesRobot
from labctl.drivers.sim.options import SimHandOptions


def build(options: SimHandOptions, *, cell: Cell, fixture: Fixture) -> AxesRobot:
    """A simulated FR3 with a hand. Raises InputError for a limit or a fixture it cannot take."""
    return AxesRobot(WITH_A_HAND, cell, fixture)
