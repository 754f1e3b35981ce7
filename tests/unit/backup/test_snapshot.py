"""A snapshot is taken of a lab that is used meanwhile: what goes away while it is looked at is not in it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.backup import snapshot
from labctl.backup.repository import FileKept, Repository
from labctl.backup.restoring import restore
from labctl.backup.snapshot import take_snapshot
from labctl.cli import call
from labctl.clock import ManualClock
from labctl.errors import BrokenRecord, Busy, StorageError
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


def test_bytes_that_rotted_in_the_backup_are_written_again_after_they_were_found(lab: Path, tmp_path: Path) -> None:
    """Also where the lab's file is as it was, and for every snapshot that names them."""
    (lab / "video").write_bytes(b"a video")
    repository, now = Repository.made(tmp_path / "backups", of=lab), ManualClock(0).anchor()
    (kept,) = [one for one in take_snapshot(lab, repository, now).snapshot.files if one.path == "video"]
    repository.object(kept.sha256).write_bytes(b"a wideo")
    _, found = repository.problems()
    assert len(found) == 1 and found[0].startswith("video: its bytes in the backup are not what they were")
    assert found[0].endswith("the next backup writes it again if the lab still has it")
    assert not repository.has(kept.sha256, kept.size)
    assert take_snapshot(lab, repository, now).new_files == 1
    assert repository.problems() == (2, [])
    for number, name in enumerate(repository.names()):
        made = restore(repository, tmp_path / f"again-{number}", name)
        assert (made.folder / "video").read_bytes() == b"a video"


def test_a_file_of_the_backup_that_was_cut_short_is_written_again_unasked(lab: Path, tmp_path: Path) -> None:
    (lab / "video").write_bytes(b"a video")
    repository, now = Repository.made(tmp_path / "backups", of=lab), ManualClock(0).anchor()
    (kept,) = [one for one in take_snapshot(lab, repository, now).snapshot.files if one.path == "video"]
    repository.object(kept.sha256).write_bytes(b"a vi")
    assert take_snapshot(lab, repository, now).new_files == 1
    assert repository.problems() == (2, [])


def test_one_failed_read_sets_no_sound_bytes_aside_and_what_was_set_aside_comes_back(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lab may have them no more."""
    (lab / "video").write_bytes(b"a video")
    repository, now = Repository.made(tmp_path / "backups", of=lab), ManualClock(0).anchor()
    (kept,) = [one for one in take_snapshot(lab, repository, now).snapshot.files if one.path == "video"]
    true, path = Repository.pieces, repository.object(kept.sha256)
    failures: list[Exception] = [BrokenRecord("video: misread")]

    def pieces(self: Repository, one: FileKept) -> Iterator[bytes]:
        if one == kept and failures:
            raise failures.pop()
        return true(self, one)

    monkeypatch.setattr(Repository, "pieces", pieces)
    assert repository.problems() == (2, []) and path.is_file()
    failures.append(StorageError("video: Input/output error"))
    assert repository.problems() == (2, ["video: Input/output error"]) and path.is_file()
    path.rename(path.with_name(f"{kept.sha256}.damaged"))
    assert repository.problems() == (2, []) and path.is_file()


def test_a_snapshot_that_is_damaged_ends_no_later_backup_and_hides_no_other(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = ["backup", str(tmp_path / "backups"), "--lab", str(lab)]
    assert call(order) == 0 and call(order) == 0
    repository = Repository(tmp_path / "backups")
    first, second = repository.names()
    path = repository.folder / "snapshots" / f"{second}.json"
    path.write_bytes(path.read_bytes()[:-100])
    capsys.readouterr()
    assert call(order) == 0
    told = capsys.readouterr()
    assert "none new" in told.out, "the one before it still says what need not be read again"
    assert f"an earlier snapshot cannot be read, and this one was taken without it: {path}: it is not" in told.err
    *_, third = repository.names()
    assert call([*order[:2], "--list"]) == int(BrokenRecord("").exit_code)
    told = capsys.readouterr()
    assert [line.split()[0] for line in told.out.splitlines()] == [first, third]
    assert told.err.startswith(f"{second}  damaged: ")
    assert call([*order[:2], "--list", "--json"]) == int(BrokenRecord("").exit_code)
    listed = json.loads(capsys.readouterr().out)
    assert [one["snapshot"] for one in listed["snapshots"]] == [first, third]
    assert [one["name"] for one in listed["unread"]] == [second] and str(path) in listed["unread"][0]["error"]
    assert call(["restore", str(repository.folder), str(tmp_path / "again")]) == 0
    for name in (first, third):
        (repository.folder / "snapshots" / f"{name}.json").write_text("")
    path = repository.folder / "snapshots" / f"{repository.names()[-1]}.json"
    path.write_text("")
    capsys.readouterr()
    assert call([*order, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["passed_over"]
    assert len(told) >= 1 and str(path) in told[0]
