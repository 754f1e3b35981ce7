"""What simulated devices are built with: the files that `labctl new` writes, parsed.

May not: be changed by a test; each reads its own copy of what it changes.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

CELL: dict[str, Any] = tomllib.loads(files("labctl").joinpath("templates", "sim_fr3.toml").read_text("utf-8"))
FIXTURE: dict[str, Any] = tomllib.loads(files("labctl.fixtures").joinpath("two_totes.toml").read_text("utf-8"))
SIMULATED: dict[str, Any] = {"cell": CELL, "fixture": FIXTURE}  # given to `labctl.devices.load`
