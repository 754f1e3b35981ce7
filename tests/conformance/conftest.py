"""The tests of one robot stand together, so that its emulator ends when they are over."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.pools import rig_of

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the order in which each robot is first named, file by file; the tests of other folders stay where they are."""
    places = [place for place, item in enumerate(items) if item.path.parent == HERE]
    order: dict[tuple[Path, str], int] = {}
    for place in places:
        order.setdefault((items[place].path, rig_of(items[place])), len(order))
    ours = sorted((items[place] for place in places), key=lambda item: order[item.path, rig_of(item)])
    for place, item in zip(places, ours, strict=True):
        items[place] = item
