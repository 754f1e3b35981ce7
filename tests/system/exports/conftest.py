"""One blinded and one unblinded campaign for all tests of exports."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import unblinded_copy
from support.runs.coded_campaign import run_coded
from support.runs.recordings import Recordings


@pytest.fixture(scope="session")
def blinded(recordings: Recordings) -> Path:
    return recordings.of(run_coded)


@pytest.fixture(scope="session")
def unblinded(recordings: Recordings, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))
