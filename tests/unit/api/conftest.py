"""What the pages on `labctl.api` assume beside them: two tables, and a campaign that was recorded long ago."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.api_files import lay_campaign, lay_tables
from support.runs.campaigns import unblind


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: operations.csv and episodes.csv."""
    lay_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """The folder of a campaign whose arms are sealed."""
    return lay_campaign(tmp_path)


@pytest.fixture
def unblinded(sealed: Path) -> Path:
    """The folder of the same campaign, unblinded."""
    unblind(sealed)
    return sealed
