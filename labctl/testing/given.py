"""What simulated devices are built with: the files that `labctl new` writes, parsed.

May not: change. A test that wants another cell makes one: `CELL.model_copy(update=...)`, or `parse_cell`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TypedDict

from labctl.config.cell_schema import Cell, Fixture, parse_cell, parse_fixture


class Given(TypedDict):
    """What a robot, a camera or a controller is built with, beside its options (`labctl.devices.load`)."""

    cell: Cell
    fixture: Fixture


CELL = parse_cell(files("labctl.hw_configs").joinpath("sim_fr3.toml").read_text("utf-8"), "sim_fr3.toml")
FIXTURE = parse_fixture(files("labctl.fixtures").joinpath("two_totes.toml").read_text("utf-8"), "two_totes.toml")
SIMULATED: Given = {"cell": CELL, "fixture": FIXTURE}
