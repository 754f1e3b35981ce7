"""The shipped cells and their fixture, parsed, and how a test changes one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from labctl.config.cell_schema import Cell
from labctl.plain import Json
from labctl.store.lab_folder import read_cell, read_fixture

ROOT = Path(__file__).parents[3]
FIXTURE = read_fixture(ROOT / "fixtures" / "two_totes.toml")


def cell_named(name: str) -> Cell:
    """A shipped cell file, parsed."""
    return read_cell(ROOT / "hw_configs" / f"{name}.toml")


def changed(cell: Cell, values: Mapping[str, Json]) -> Cell:
    """A cell with other values in some of its tables, such as {"robot": {"options": {...}}}; None takes a value out."""
    return Cell.model_validate_json(json.dumps(_merged(cell.model_dump(mode="json"), values)))


def _merged(old: Json, new: Json) -> Json:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    found = {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in found.items() if key not in new or value is not None}
