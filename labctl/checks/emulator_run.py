"""Runs an emulated controller until it is asked to end.

May not: know a protocol or a robot; an emulator is found by its name, like a driver.
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from labctl.devices import load
from labctl.errors import InputError
from labctl.plain import Json
from labctl.store.lab_folder import read_fixture


class Emulator(Protocol):
    """What is known here of an emulator: its ports, the faults that it can be given, each with what it is, and what a
    cell's driver_options name it by beside its host.
    """

    ports: Mapping[str, int]
    faults: Mapping[str, str]
    in_cell: Mapping[str, int]

    def run(self, until: Callable[[], bool]) -> None: ...
    def stats(self) -> dict[str, Json]: ...
    def close(self) -> None: ...


class Link(Protocol):
    """The control port of a running emulator: a request, its answer."""

    def ask(self, request: Mapping[str, Json]) -> dict[str, Json]: ...
    def close(self) -> None: ...


def control_link(host: str) -> Link:
    """The control port of the emulator there. Raises InputError for a host that is not loopback."""
    return importlib.import_module("labctl.drivers.sim.control_link").ControlLink(host)


def named_by(emulator: Emulator, host: str) -> str:
    """The keys by which a cell reaches an emulator, as its file has them."""
    return " and ".join([f'host = "{host}"', *(f"{key} = {value}" for key, value in emulator.in_cell.items())])


def serve(
    name: str, host: str, fixture: Path, options: Mapping[str, Json], ready: Callable[[Emulator], None]
) -> dict[str, Json]:
    """Serve until SIGINT, SIGTERM or a control client's "quit". `ready(emulator)` is called once clients may connect.

    Returns the last statistics. Raises InputError for an unknown name, option or fixture, or an address in use.
    """
    known: Mapping[str, str] = importlib.import_module("labctl.drivers").EMULATORS
    if name not in known:
        raise InputError(f"no emulator named {name!r}; known: {', '.join(known)}")
    scene = read_fixture(fixture)
    emulator: Emulator = load(known[name], options, host=host, fixture=scene)
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
