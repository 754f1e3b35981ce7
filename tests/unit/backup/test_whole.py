"""A restored lab is called whole when every campaign of its snapshot is there and holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.backup.repository import Repository, Snapshot
from labctl.backup.restoring import Restored, restore
from labctl.errors import InputError


def test_a_lab_without_one_of_its_campaigns_is_not_whole() -> None:
    snapshot = Snapshot("20261125T174500Z", "1", "lab", [], [], [], [], [])
    assert Restored(Path("lab"), snapshot, {}, []).whole
    assert not Restored(Path("lab"), snapshot, {}, ["first"]).whole


def test_a_lab_that_a_stopped_restore_left_is_said_to_want_verifying(tmp_path: Path) -> None:
    """It was said to be there already, and no more."""
    (tmp_path / "lab").mkdir()
    kept = Repository.made(tmp_path / "backups", of=tmp_path / "lab")
    for left in (False, True):
        if left:
            (tmp_path / "lab/lab.toml").touch()
        with pytest.raises(InputError, match="is there already") as refused:
            restore(kept, tmp_path / "lab")
        assert ("labctl verify each campaign" in str(refused.value)) == left
