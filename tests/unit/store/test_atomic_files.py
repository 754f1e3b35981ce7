"""Files and folders are whole or not there, and what is said to be on the disk is found there."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from labctl.errors import StorageError
from labctl.store.atomic_files import (
    append_line,
    file_errors,
    file_in_one_step,
    folder_in_one_step,
    replace_file,
    whole_lines,
)


def test_the_name_of_a_file_that_its_first_line_made_is_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
    )
    append_line(tmp_path / "x.log", "one")
    assert synced == [str(tmp_path / "x.log"), str(tmp_path)]
    append_line(tmp_path / "x.log", "two")
    assert synced[2:] == [str(tmp_path / "x.log")], "the name was there"
    assert whole_lines(tmp_path / "x.log") == ["one", "two"]


def test_what_may_not_be_read_is_not_said_to_be_for_writing() -> None:
    with pytest.raises(StorageError) as told, file_errors("seal/schedule.json"):
        raise PermissionError(errno.EACCES, "Permission denied")
    assert str(told.value) == "seal/schedule.json: not allowed here; check the permissions of the file and its folder"


NOBODY = 2**22 + 1  # no process has this number


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions_unless_others_are_asked_for(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "table.csv"
    path.write_text("one")
    path.chmod(mode)
    replace_file(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", mode)
    replace_file(path, b"three", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    with file_in_one_step(path, as_before=True) as part:
        part.write_text("four")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("four", 0o600)


def test_two_threads_that_make_one_file_at_once_each_put_theirs_there_whole(tmp_path: Path) -> None:
    """A report's clips and its page of episodes fetch the same video: one of them found its part gone."""
    path, made = tmp_path / "video.mp4", list[Path]()

    def other() -> None:
        with file_in_one_step(path) as part:
            part.write_text("theirs")
            made.append(part)

    with file_in_one_step(path) as part:
        part.write_text("ours")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert path.read_text() == "theirs"
    assert path.read_text() == "ours" and made != [part] and sorted(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_of_a_large_file_is_removed_by_the_next(tmp_path: Path) -> None:
    others = {f".out.zip.{os.getppid()}.part", ".out.zip.x.part", f".other.zip.{NOBODY}.part"}
    for name in {f".out.zip.{NOBODY}.part", *others}:
        (tmp_path / name).write_text("half")
    (tmp_path / f".out.zip.{NOBODY + 1}.part").mkdir()
    with pytest.raises(KeyError), file_in_one_step(tmp_path / "out.zip", large=True):
        raise KeyError("refused")
    assert {path.name for path in tmp_path.iterdir()} == {*others, f".out.zip.{NOBODY + 1}.part"}


def fill(to: Path, text: str, *, replacing: bool = False) -> None:
    with folder_in_one_step(to, replacing=replacing) as building:
        (building / "x").write_text(text)


def test_a_folder_takes_the_place_of_an_earlier_one_in_one_step(tmp_path: Path) -> None:
    fill(tmp_path / "out", "one")
    fill(tmp_path / "out", "two", replacing=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (tmp_path / "out/x").read_text() == "two"


def test_the_earlier_folder_is_back_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "out", "one")
    true = Path.rename

    def full(path: Path, target: Path) -> Path:
        if path.name == f".out.{os.getpid()}.part":
            raise OSError(errno.ENOSPC, "No space left on device")
        return true(path, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(StorageError, match="the disk is full"):
        fill(tmp_path / "out", "two", replacing=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (tmp_path / "out/x").read_text() == "one"


def test_what_a_killed_process_left_is_put_right_by_the_next(tmp_path: Path) -> None:
    fill(tmp_path / "out", "one")
    (tmp_path / "out").rename(tmp_path / ".out.before")  # killed between its two renames
    others = {f".out.{os.getppid()}.part", ".out.x.part"}  # of a process that goes on, and of none
    for name in {f".out.{NOBODY}.part", f".out.{os.getpid()}.part", *others}:
        (tmp_path / name / "half").mkdir(parents=True)
    with pytest.raises(KeyError), folder_in_one_step(tmp_path / "out", replacing=True):
        raise KeyError("refused")
    assert {path.name for path in tmp_path.iterdir()} == {"out", *others}
    assert (tmp_path / "out/x").read_text() == "one"


def test_two_that_make_one_folder_at_once_never_make_a_mixed_one(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="directory not empty"), folder_in_one_step(tmp_path / "out") as building:
        (building / "mine").touch()
        child = os.fork()
        if not child:
            fill(tmp_path / "out", "theirs")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"] and (tmp_path / "out/x").read_text() == "theirs"


def test_the_current_folder_can_be_filled_in_one_step_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    with folder_in_one_step(Path(), replacing=True) as building:
        (building / "x").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "x"]
