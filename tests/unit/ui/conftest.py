"""A run process to sit in front of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.store.campaign import Campaign


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2, budget=20.0).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)
