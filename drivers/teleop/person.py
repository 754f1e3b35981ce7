"""Driver "teleop": a person at the device of a cell, or at a device for each of its two robots.

May not: hold behaviour of its own; one robot's is in `controller`, two robots' in `two_hands`.
"""

from __future__ import annotations

from labctl.config.cell_schema import Cell, Fixture
from labctl.config.options import NoOptions
from labctl.drivers.teleop.controller import Teleop, of_side
from labctl.drivers.teleop.two_hands import TwoHands
from labctl.errors import InputError


def build(options: NoOptions, *, cell: Cell, fixture: Fixture) -> Teleop | TwoHands:
    """A person at the cell's teleoperation device. It has no options: the device is the cell's.

    Raises InputError for a cell without [teleop], or with one for two robots.
    """
    if cell.second_robot is None:
        return of_side(cell)
    if cell.teleop is not None and cell.second_teleop is None:
        text = f"the cell has two robots, and [teleop] drives {cell.names[0]} alone"
        raise InputError(f"{text}; add [second_teleop] with the device of the other hand")
    first, second = cell.sides
    return TwoHands(cell, (of_side(first), of_side(second)))
