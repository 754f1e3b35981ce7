"""One blinded and one unblinded campaign for all tests of exports. Nothing may write into them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.campaigns import unblind
from support.coded_campaign import run_coded


@pytest.fixture(scope="session")
def blinded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_coded(tmp_path_factory.mktemp("blinded"))


@pytest.fixture(scope="session")
def unblinded(blinded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = tmp_path_factory.mktemp("unblinded") / "lab"
    shutil.copytree(blinded.parent.parent, lab)
    folder = lab / "campaigns" / blinded.name
    unblind(folder)
    return folder
