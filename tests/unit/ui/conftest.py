"""A run process to sit in front of, the patience of a busy machine, and style sheets that are parsed once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.screens.sheets import parsed_once
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from labctl.store.campaign import Campaign

PATIENCE_S = 240.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot waits 30 s for widgets to have had their mail, which a very busy machine can take."""
    assert Pilot._wait_for_screen.__defaults__ == (30.0,)
    monkeypatch.setattr(Pilot._wait_for_screen, "__defaults__", (PATIENCE_S,))


@pytest.fixture(autouse=True)
def quick_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stylesheet, "_parse_rules", parsed_once)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2, budget=20.0).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)
