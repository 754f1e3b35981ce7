"""Emulators of Universal Robots' arms on loopback, each by its model: an e-Series at 500 Hz, a CB3 UR5 at 125 Hz.

May not: hold behaviour of its own; everything is in `controller`.
"""

from __future__ import annotations

from collections.abc import Callable

from labctl.config.cell_schema import Fixture
from labctl.drivers.common.robot_tables import URS
from labctl.drivers.sim.control_link import loopback
from labctl.drivers.ur.emulator.controller import UrController
from labctl.drivers.ur.options import UrEmulatorOptions

CB3, E_SERIES = (3, 15, 4, 106291), (5, 11, 0, 108249)


def _of(name: str) -> Callable[..., UrController]:
    """What `labctl emulate NAME` calls for one model."""
    rate_hz, kind = (125.0, CB3) if name == "ur5" else (500.0, E_SERIES)

    def build(options: UrEmulatorOptions, *, host: str, fixture: Fixture) -> UrController:
        """On `host`. Raises InputError for one that is not loopback."""
        version = options.version() or kind
        return UrController(URS[name], loopback(host), fixture, options, rate_hz=rate_hz, version=version)

    return build


ur5, ur3e, ur5e, ur7e, ur10e, ur15, ur20 = map(_of, ("ur5", "ur3e", "ur5e", "ur7e", "ur10e", "ur15", "ur20"))
