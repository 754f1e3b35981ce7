"""A file of holes is known by asking for its data, not by how many blocks a file system says that it has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labctl.errors import BrokenRecord
from labctl.publishing import guard


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FILLED", 1 << 20)


class Counted:
    """What a file system answers, with another number of blocks."""

    def __init__(self, found: os.stat_result, blocks: int) -> None:
        self._found, self.st_blocks = found, blocks

    def __getattr__(self, name: str) -> object:
        return getattr(self._found, name)


class Entry:
    """An entry of a folder that lies on FUSE or ZFS."""

    def __init__(self, entry: os.DirEntry[str], blocks: int) -> None:
        self._entry, self._blocks, self.path = entry, blocks, entry.path

    def stat(self, *, follow_symlinks: bool) -> Counted:
        return Counted(self._entry.stat(follow_symlinks=follow_symlinks), self._blocks)


class Entries(list[Entry]):
    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_whole_file_is_not_accused_where_a_file_system_does_not_count_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """FUSE may say 0; ZFS says 1 until what was written is on the disk."""
    (tmp_path / "whole").write_bytes(os.urandom(4096) * 512)
    scan = os.scandir
    with monkeypatch.context() as patch:
        patch.setattr(guard.os, "scandir", lambda at: Entries(Entry(one, blocks) for one in scan(at)))
        assert list(guard._walk(tmp_path)) == [("whole", 2 << 20)]


def test_a_file_of_holes_is_named(tmp_path: Path) -> None:
    with (tmp_path / "hollow").open("wb") as file:
        file.write(b"begun")
        file.truncate(1 << 32)
    with pytest.raises(BrokenRecord, match="holes, which would be read for hours"):
        list(guard._walk(tmp_path))
