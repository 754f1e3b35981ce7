"""Emulator "ur5e": a Universal Robots UR5E (e-Series, software 5.11, 500 Hz) on loopback.

May not: hold behaviour of its own; everything is in `controller`.
"""

from __future__ import annotations

from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.sim.control_link import loopback
from labctl.drivers.ur.emulator.controller import UrController
from labctl.drivers.ur.options import UrEmulatorOptions

from labctl.config.cell_schema import Fixture


def build(options: UrEmulatorOptions, *, host: str, fixture: Fixture) -> UrController:
    """On `host`. Raises InputError for one that is not loopback."""
    version = (5, 11, 0, 108249)
    return UrController(UR5E, loopback(host), fixture, options, rate_hz=500.0, version=version)
