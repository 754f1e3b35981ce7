"""A folder of which nothing is chosen is not imported, and of the thorough run no file without a thorough test: each of
four workers would.

May not: leave out a test that is chosen. A thorough test in a file that would be left out ends every run that sees it;
`tests/unit/test_commands.py` looks whether all in such a folder is marked.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WHOLE = {"interop": "interop", "benchmarks": "benchmark"}  # folders, and the marker that all in them has
WORD = "thorough"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    chosen = config.getoption("markexpr").split(" and ")
    if collection_path.parent == TESTS and collection_path.name in WHOLE:
        return True if f"not {WHOLE[collection_path.name]}" in chosen else None
    if collection_path.suffix == ".py" and {WORD, "alone"} & {*chosen} and not may_be_thorough(collection_path):
        return True
    return None


def may_be_thorough(path: Path) -> bool:
    """Does a file say the word, or name a module of tests/support that does?"""
    text = path.read_text("utf-8")
    return WORD in text or any(module in text for module in _marking())


@cache
def _marking() -> frozenset[str]:
    """Modules of tests/support whose markers others use, as they are imported."""
    files = (TESTS / "support").rglob("*.py")
    return frozenset(
        ".".join(path.relative_to(TESTS).with_suffix("").parts) for path in files if WORD in path.read_text("utf-8")
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before any is deselected."""
    unseen = {
        item.path
        for item in items
        if (item.get_closest_marker(WORD) or item.get_closest_marker("alone")) and not may_be_thorough(item.path)
    }
    if unseen:
        named = ", ".join(sorted(str(path) for path in unseen))
        text = f"thorough tests that `make test-rest` would not see: name the marker in {named}"
        print(text, file=sys.__stderr__)  # a worker's own error is lost
        raise pytest.UsageError(text)
