"""Emulator "ur5": a Universal Robots UR5 (CB3, software 3.15, 125 Hz) on loopback.

May not: hold behaviour of its own; everything is in `controller`.
"""

from __future__ import annotations

from labctl.drivers.common.robot_tables import UR5
from labctl.drivers.sim.control_link import loopback
from labctl.drivers.ur.emulator.controller import UrController
from labctl.drivers.ur.options import UrEmulatorOptions

from labctl.config.cell_schema import Fixture


def build(options: UrEmulatorOptions, *, host: str, fixture: Fixture) -> UrController:
    """On `host`. Raises InputError for one that is not loopback."""
    version = (3, 15, 4, 106291)
    return UrController(UR5, loopback(host), fixture, options, rate_hz=125.0, version=version)
