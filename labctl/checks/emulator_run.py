"""Runs an emulated controller until it is asked to end.

May not: know a protocol or a robot; an emulator is found by its name, like a driver.
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labctl.devices import load
from labctl.errors import InputError
from labctl.store.lab_folder import read_fixture


def control_link(host: str) -> Any:
    """The side door of a running emulator (`ask`, `close`). Raises InputError for a host that is not loopback."""
    return importlib.import_module("labctl.drivers.sim.control_link").ControlLink(host)


def serve(
    name: str, host: str, fixture: Path, options: Mapping[str, Any], ready: Callable[[Any], None]
) -> dict[str, Any]:
    """Serve until SIGINT, SIGTERM or a control client's "quit". `ready(emulator)` is called once clients may connect.

    Returns the last statistics. Raises InputError for an unknown name, option or fixture, or an address in use.
    """
    known: Mapping[str, str] = importlib.import_module("labctl.drivers").EMULATORS
    if name not in known:
        raise InputError(f"no emulator named {name!r}; known: {', '.join(known)}")
    scene = read_fixture(fixture).model_dump(mode="json")
    emulator = load(known[name], options, host=host, fixture=scene)
    try:
        control = importlib.import_module("labctl.drivers.sim.control_port").ControlServer(host, emulator)
        ended: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: ended.append(number))
        try:
            ready(emulator)
            emulator.run(lambda: bool(ended) or control.quit_asked.is_set())
        finally:
            control.close()
        return emulator.stats()
    finally:
        emulator.close()
