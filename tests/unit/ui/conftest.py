"""A run process to sit in front of, and screens that are waited for without a clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.screens.quiet import parse_once, pause_until_settled

from labctl.store.campaign import Campaign


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app has settled when its event loop says so, and the style sheets are parsed once for all of them."""
    pause_until_settled(monkeypatch)
    parse_once(monkeypatch)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2, budget=20.0).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)
