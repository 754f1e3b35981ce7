"""Published campaigns that the tests of this folder only read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import recorded_with_cameras
from support.runs.published import published
from support.runs.recordings import Recordings, copied


@pytest.fixture
def whole(recordings: Recordings) -> Path:
    """A published folder with all of its pictures; only to be read."""
    return recordings.of(published, blinded=str(recordings.of(recorded_with_cameras)))


@pytest.fixture
def without(recordings: Recordings) -> Path:
    """A published folder that withholds the pictures of one episode; only to be read."""
    return recordings.of(published, blinded=str(recordings.of(recorded_with_cameras)), withheld=1)


@pytest.fixture
def mine(whole: Path, tmp_path: Path) -> Path:
    """A copy of `whole` to spoil."""
    return copied(whole, tmp_path / "mine")
