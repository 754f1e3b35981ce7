"""One blinded and one unblinded campaign for all tests of exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import unblinded_copy
from support.runs.coded_campaign import run_coded
from support.runs.recordings import Recordings

from labctl.clock import wall_ns
from labctl.core.events import Event, Kind
from labctl.store.campaign import Campaign
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore


@pytest.fixture(scope="session")
def blinded(recordings: Recordings) -> Path:
    return recordings.of(run_coded)


@pytest.fixture(scope="session")
def unblinded(recordings: Recordings, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))


@pytest.fixture(scope="module")
def store(unblinded: Path) -> Iterator[TraceStore]:
    """What was recorded, to hold an export against."""
    made = TraceStore.open(sqlite_url(unblinded / "traces.db"), unblinded.name, readonly=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def events(unblinded: Path) -> list[Event]:
    """What the journal says."""
    with Campaign.open(unblinded) as campaign:
        return campaign.events()


@pytest.fixture(scope="module")
def shift(events: list[Event]) -> dict[str, int]:
    """{episode: wall ns less host ns} by the journal's entry at its start."""
    return {e.episode or "": wall_ns(e.wall) - e.at_ns for e in events if e.kind == Kind.EPISODE_STARTED}
