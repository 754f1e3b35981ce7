"""A snapshot is taken of a lab that is used meanwhile: what goes away while it is looked at is not in it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.backup import snapshot
from labctl.backup.repository import Repository
from labctl.backup.snapshot import take_snapshot
from labctl.cli import call
from labctl.clock import ManualClock
from labctl.errors import Busy, StorageError
from labctl.store.database_backend import copy_database


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """With a folder in which a campaign is being opened."""
    (tmp_path / "lab/campaigns/.opening-x").mkdir(parents=True)
    (tmp_path / "lab/lab.toml").touch()
    return tmp_path / "lab"


@pytest.mark.parametrize("when", ["before it is read", "after it is read"])
def test_a_folder_that_goes_while_it_is_looked_at_is_in_no_snapshot(
    lab: Path, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = os.scandir

    def scandir(path: Path) -> Iterator[os.DirEntry[str]]:
        if not str(path).endswith(".opening-x"):
            return true(path)
        if when == "before it is read":
            path.rmdir()
        with true(path) as found:
            entries = list(found)
        path.rmdir()
        return iter(entries)

    monkeypatch.setattr(snapshot.os, "scandir", scandir)
    taken = take_snapshot(lab, Repository.made(tmp_path / "backups", of=lab), ManualClock(0).anchor())
    assert [one.path for one in taken.snapshot.folders] == ["campaigns"]
    assert [one.path for one in taken.snapshot.files] == ["lab.toml"]


def test_a_database_that_another_program_holds_is_not_kept_as_it_lies_there(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab / "x.db").write_bytes(snapshot.SQLITE_BEGINS)
    repository = Repository.made(tmp_path / "backups", of=lab)

    def held(path: Path, to: Path) -> None:
        raise Busy(f"{path}: another process holds the database")

    monkeypatch.setattr("labctl.backup.repository.copy_database", held)
    with pytest.raises(Busy, match="another process holds the database"):
        take_snapshot(lab, repository, ManualClock(0).anchor())
    assert repository.names() == []


def test_a_second_backup_that_is_refused_takes_nothing_from_the_first(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sqlite3.connect(lab / "x.db").executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)").connection.close()
    order, backups, true = ["backup", str(tmp_path / "backups"), "--lab", str(lab)], tmp_path / "backups", copy_database
    codes: list[int] = []

    def beside(path: Path, to: Path) -> None:
        true(path, to)
        codes.append(call(order))

    monkeypatch.setattr("labctl.backup.repository.copy_database", beside)
    assert call(order) == 0 and codes and 0 not in codes
    assert f"{backups} is in use by `backup`" in capsys.readouterr().err
    assert [one.path for one in Repository(backups).snapshot().files] == ["lab.toml", "x.db"]


def test_a_file_that_is_there_and_whose_copy_is_not_is_no_file_that_went_away(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab / "x.db").write_bytes(snapshot.SQLITE_BEGINS)
    monkeypatch.setattr("labctl.backup.repository.copy_database", lambda path, to: None)
    repository = Repository.made(tmp_path / "backups", of=lab)
    with pytest.raises(StorageError, match=r"x\.db is there and its copy in .* is not; take the backup again"):
        take_snapshot(lab, repository, ManualClock(0).anchor())
    assert repository.names() == []


def test_a_folder_that_cannot_be_read_is_named_and_nothing_is_made(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true, campaign = os.scandir, lab / "campaigns" / "first"
    campaign.mkdir()

    def scandir(path: Path) -> Iterator[os.DirEntry[str]]:
        if Path(path) == campaign:
            raise PermissionError(13, "Permission denied", str(path))
        return true(path)

    monkeypatch.setattr(snapshot.os, "scandir", scandir)
    assert call(["backup", str(tmp_path / "backups"), "--lab", str(lab)]) == 69
    assert capsys.readouterr().err.startswith(f"error: {campaign}: not allowed here; ")
    assert not (tmp_path / "backups").exists()
