"""Driver "support.cameras.realsense_driver:build": the RealSense driver on a software device of the same process.

May not: be another driver: all but the finding of a device is `labctl.drivers.realsense.camera`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import load
from labctl.drivers.realsense import camera as realsense
from support.cameras.software_realsense import SoftRealSense


def build(options: Mapping[str, Any], *, cell: Cell, fixture: Fixture) -> Any:
    """The camera; its device streams from now on, until this process ends."""
    soft = SoftRealSense(width=options["width"], height=options["height"], rate_hz=int(options["rate_hz"]))
    realsense.connected_devices = lambda: [soft.device]
    soft.start()
    return load("realsense", options, cell=cell, fixture=fixture)
