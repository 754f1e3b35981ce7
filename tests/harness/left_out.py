"""A folder of which nothing is chosen is not imported: each of four workers would.

May not: leave out a test that is chosen; `tests/unit/test_commands.py` looks whether all in such a folder is marked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WHOLE = {"interop": "interop", "benchmarks": "benchmark"}  # folders, and the marker that all in them has


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.parent != TESTS or collection_path.name not in WHOLE:
        return None
    chosen = config.getoption("markexpr").split(" and ")
    return True if f"not {WHOLE[collection_path.name]}" in chosen else None
