"""Where the tool of a cell's robot is on its flange, by the options of the driver that the cell names.

May not: load a driver or ask a robot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from labctl.config.cell_schema import Cell
from labctl.config.options import Options
from labctl.devices import options_type
from labctl.drivers.common.robot_tables import Tool
from labctl.errors import InputError
from labctl.plain import Json


@runtime_checkable
class Tooled(Protocol):
    """Options of a robot that say where its tool is; a driver of one's own may have them too."""

    def tool(self) -> Tool: ...


def tool_of(cell: Cell) -> Tool:
    """The tool centre point of a cell's robot in the frame of its flange. Raises InputError if nobody says."""
    found = _tool(cell.robot.driver, cell.robot.options)
    if found is None:
        raise InputError(
            f"nobody says where the tool of driver {cell.robot.driver!r} is on its flange: its options need a method "
            "tool() (labctl.drivers.common.flange)"
        )
    return found


def _tool(driver: str, given: Mapping[str, Json]) -> Tool | None:
    table = options_type(driver)
    if table is None:
        return None
    options = table.read(given, driver)
    if isinstance(options, Tooled):
        return options.tool()
    inside = options.wrapped() if isinstance(options, Options) else ()
    return next((tool for one in inside if (tool := _tool(one.driver, one.options)) is not None), None)
