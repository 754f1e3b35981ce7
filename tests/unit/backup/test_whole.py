"""A restored lab is called whole when every campaign of its snapshot is there and holds."""

from __future__ import annotations

from pathlib import Path

from labctl.backup.repository import Snapshot
from labctl.backup.restoring import Restored


def test_a_lab_without_one_of_its_campaigns_is_not_whole() -> None:
    snapshot = Snapshot("20261125T174500Z", "1", "lab", [], [], [], [], [])
    assert Restored(Path("lab"), snapshot, {}, []).whole
    assert not Restored(Path("lab"), snapshot, {}, ["first"]).whole
