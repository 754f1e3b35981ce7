"""Pages show the same bytes whichever arm ran, as long as a campaign is blinded."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runs.blind_surfaces import review_pages
from support.runs.campaigns import make_campaign, policy

import labctl.core.design
import labctl.runtime.campaign_run
from labctl.core.design import Schedule, draw
from labctl.pages.episodes import page_files
from labctl.runtime.campaign_run import run_campaign

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
ENTROPY = hashlib.sha256(b"pages").digest()
OTHER = {"first": "second", "second": "first"}


def exchanged(*given: Any) -> Schedule:
    """`draw` with the arms in each other's place."""
    return Schedule(tuple(replace(slot, arm=OTHER[slot.arm]) for slot in draw(*given).slots))


def run(lab: Path, latency_s: float = 0.1) -> Path:
    """Two filmed trials of arms that behave alike but for what is asked."""
    lab.mkdir()
    arms = [
        policy("first", endpoint="sim://first", skill="swift"),
        policy("second", endpoint="sim://second", skill="swift", latency_s=latency_s),
    ]
    folder = make_campaign(lab, arms, cameras=True, budget=12.0, cell=SMALL, entropy=ENTROPY).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two campaigns of the same schedule but for the exchanged arms."""
    monkeypatch.setattr(labctl.runtime.campaign_run, "free_gb", lambda folder: 100.0)
    first = run(tmp_path / "lab")
    first = (tmp_path / "lab").rename(tmp_path / "before") / "campaigns" / first.name
    monkeypatch.setattr(labctl.core.design, "draw", exchanged)
    return first, run(tmp_path / "lab")


def episodes_page(folder: Path) -> dict[str, bytes]:
    """The page of its episodes, and its videos."""
    return page_files([folder], "page.html", "page.videos", folder.parents[1])


def test_exchanging_two_arms_that_behave_alike_changes_no_byte_of_a_page(runs: tuple[Path, Path]) -> None:
    first, second = ({**review_pages(folder), **episodes_page(folder)} for folder in runs)
    assert len(first) == 12 and list(first) == list(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert not any(word in data for data in first.values() for word in (b"sim://", b"swift", b'"first"', b'"second"'))
