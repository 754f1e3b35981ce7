"""A start removes what killed runs left of their sockets, and nothing else."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from labctl.runtime.hosting import socket_folder as socket_folder_module
from labctl.runtime.hosting.socket_folder import socket_folder

RUN = """
import socket
from labctl.runtime.hosting.socket_folder import socket_folder
with socket_folder() as folder:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(folder / "run.in"))
    made.listen()
    print(folder, flush=True)
    input()
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files; its path is short, as those of sockets have to be."""
    with tempfile.TemporaryDirectory(prefix="sf-", dir="/tmp") as name:
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(name)
    tempfile.tempdir = None


def start(home: Path) -> tuple[subprocess.Popen[str], Path]:
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    run = subprocess.Popen([sys.executable, "-c", RUN], env={**os.environ, "TMPDIR": str(home)}, **given)
    assert run.stdout is not None
    return run, Path(run.stdout.readline().strip())


def bound(folder: Path, name: str = "run.in", *, keep: ExitStack | None = None) -> None:
    """A socket in a folder, of a process that is gone; keep: of one that lives until then."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(folder / name))
    if keep is None:
        made.close()
    else:
        made.listen()
        keep.enter_context(made)


def left(home: Path, name: str = "labctl-ab12cd_9", mode: int = 0o700) -> Path:
    """What a killed run of an earlier version left, long ago."""
    folder = home / name
    folder.mkdir()
    bound(folder)
    folder.chmod(mode)
    aged(folder)
    return folder


def aged(folder: Path) -> None:
    os.utime(folder, (1_000_000_000, 1_000_000_000))


def test_the_folder_of_a_run_that_was_killed_is_removed_by_the_next_start(home: Path) -> None:
    run, folder = start(home)
    with run:
        assert folder.parent == home and (folder / "run.in").is_socket()
        run.send_signal(signal.SIGKILL)
    with socket_folder() as other:
        assert not folder.exists() and list(home.iterdir()) == [other]
    assert list(home.iterdir()) == []


def test_the_folder_of_a_run_that_goes_stays(home: Path) -> None:
    run, folder = start(home)
    with run, socket_folder() as own, socket_folder() as another:
        assert (folder / "run.in").is_socket() and own.is_dir() and another.is_dir()
        run.communicate("\n")
        assert not folder.exists(), "it removed it itself"


def test_a_folder_of_an_earlier_version_is_removed_once_nobody_listens_there(home: Path) -> None:
    folder = left(home)
    with ExitStack() as keep:
        bound(folder, "arm.stop", keep=keep)
        aged(folder)
        with socket_folder():
            assert folder.exists()
    with socket_folder():
        assert not folder.exists()


def test_a_folder_of_an_earlier_version_that_is_new_may_be_of_a_run_that_begins(home: Path) -> None:
    folder = left(home)
    os.utime(folder)
    with socket_folder():
        assert folder.exists()


def test_what_a_killed_run_leaves_to_a_process_that_still_listens_stays(home: Path) -> None:
    """The robot's process ends by itself soon after its run, and takes a stop until then."""
    run, folder = start(home)
    with run:
        run.send_signal(signal.SIGKILL)
    with ExitStack() as keep:
        bound(folder, "arm.stop", keep=keep)
        with socket_folder():
            assert folder.exists()
    with socket_folder():
        assert not folder.exists()


def test_nothing_else_is_touched(home: Path) -> None:
    """Folders of other commands, of another form or owner's rights, links, and what holds a file."""
    (home / "labctl-zz11zz11").mkdir()  # of an export that has only begun
    (home / "labctl-encode-ab12cd_9").mkdir()
    elsewhere = left(home, "elsewhere")
    kept = {
        left(home, "labctl-ab12cd_8", 0o755),
        left(home, "labctl-ab12cd_90"),
        left(home, "labctl-AB12CD_9"),
        elsewhere,
    }
    holds = left(home, "labctl-ab12cd_7")
    (holds / "table.csv").write_text("kept")
    aged(holds)
    linked = left(home, "labctl-ab12cd_6")
    (linked / "link").symlink_to(elsewhere / "run.in")
    aged(linked)
    (home / "labctl-ab12cd_5").symlink_to(elsewhere)
    with socket_folder():
        assert (home / "labctl-zz11zz11").is_dir() and (home / "labctl-encode-ab12cd_9").is_dir()
        assert all((folder / "run.in").is_socket() for folder in {*kept, holds, linked, home / "labctl-ab12cd_5"})
        assert (holds / "table.csv").read_text() == "kept" and (linked / "link").is_symlink()


def test_a_start_goes_on_where_it_may_remove_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> bool:
        raise PermissionError(13, "not allowed")

    folder = left(home)
    monkeypatch.setattr("labctl.runtime.hosting.socket_folder._listens", refused)
    with socket_folder() as own:
        assert own.is_dir() and folder.exists()


def test_where_a_file_system_knows_no_such_lock_a_run_begins_and_nothing_is_removed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS refuses one of a folder."""

    def refused(*_: object) -> None:
        raise OSError(errno.EBADF, "no lock of a folder")

    folder = left(home)
    monkeypatch.setattr("labctl.runtime.hosting.socket_folder.fcntl.flock", refused)
    with socket_folder() as own:
        assert own.is_dir() and folder.exists()
    assert not own.exists()


def test_a_folder_that_another_start_takes_before_it_is_locked_is_made_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []
    lock = socket_folder_module._locked

    def late(name: str) -> int | None:
        if not taken:
            taken.append(Path(name))
            Path(name).rmdir()
        return lock(name)

    monkeypatch.setattr(socket_folder_module, "_locked", late)
    with socket_folder() as own:
        assert own.is_dir() and taken and own != taken[0]
    assert list(home.iterdir()) == []
