"""The closed loop and the parsed example files, for the tests of this folder."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

RIG = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("rig.py"))))


@pytest.fixture(scope="session")
def rig() -> SimpleNamespace:
    return RIG


@pytest.fixture(scope="session")
def given() -> dict[str, Any]:
    """What a driver of the simulated FR3 cell is built with."""
    return {"cell": RIG.toml("hw_configs/sim_fr3.toml"), "fixture": RIG.toml("fixtures/two_totes.toml")}


@pytest.fixture(scope="session")
def given_ur5() -> dict[str, Any]:
    return {"cell": RIG.toml("hw_configs/sim_ur5.toml"), "fixture": RIG.toml("fixtures/two_totes.toml")}
