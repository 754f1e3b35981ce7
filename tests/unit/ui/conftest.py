"""A run process to sit in front of, and screens that are waited for without a clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.run_bench import Bench
from support.screens.console_bench import evening
from support.screens.quiet import parse_once, pause_until_settled


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app has settled when its event loop says so, and the style sheets are parsed once for all of them."""
    pause_until_settled(monkeypatch)
    parse_once(monkeypatch)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with evening(tmp_path) as found:
        yield found
