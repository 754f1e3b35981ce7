"""The closed loop, the parsed example files and the cameras that are plugged in, for the tests of this folder."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.robots.cells import FIXTURE, cell_named

if TYPE_CHECKING:
    from support.cameras.software_realsense import SoftRealSense

RIG = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("rig.py"))))


@pytest.fixture(scope="session")
def rig() -> SimpleNamespace:
    return RIG


@pytest.fixture(scope="session")
def given() -> dict[str, Any]:
    """What a driver of the simulated FR3 cell is built with."""
    return {"cell": cell_named("sim_fr3"), "fixture": FIXTURE}


@pytest.fixture(scope="session")
def given_ur5() -> dict[str, Any]:
    return {"cell": cell_named("sim_ur5"), "fixture": FIXTURE}


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> list[SoftRealSense]:
    """The cameras at this computer; a test fills the list."""
    from labctl.drivers.realsense import camera

    found: list[SoftRealSense] = []
    monkeypatch.setattr(camera, "connected_devices", lambda: [soft.device for soft in found])
    return found


@pytest.fixture
def soft(plugged: list[SoftRealSense]) -> Iterator[SoftRealSense]:
    from support.cameras.software_realsense import SoftRealSense

    with SoftRealSense() as made:
        plugged.append(made)
        yield made
