"""The shipped cell files, parsed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def cell_named(name: str) -> dict[str, Any]:
    """A shipped cell file, parsed."""
    return tomllib.loads((ROOT / "hw_configs" / f"{name}.toml").read_text())
