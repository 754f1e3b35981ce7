"""The folder of a run's sockets, and the removal of those that killed runs left.

May not: remove what another user, or a process that lives, has; follow a link; or fail a start for what it cannot
remove.

Whoever has such a folder holds a lock on it (flock of the folder itself), which the system takes away with the process,
however that ends, and gives to no other process that comes to have its id. Until November 2026 there was no such lock:
folders of then, of another name, are removed when they hold sockets alone, are an hour old and nobody listens there.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "labctl_"
_NAME = re.compile(r"labctl_[a-z0-9_]{8}")
_EARLIER = re.compile(r"labctl-[a-z0-9_]{8}")  # as an export's folder is named too, which is empty or holds a file
_OLD_S = 3600.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def socket_folder() -> Iterator[Path]:
    """A folder for the sockets of processes: its path short enough for an ipc address, for its owner alone. What
    killed runs left of theirs is removed.
    """
    while True:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
            held = None
            with suppress(OSError):  # a file system without such locks (NFS): there nobody removes anything
                held = _locked(name)
                if held is None:  # another start took it for one that was left, before it was locked
                    continue
            try:
                if held is not None:
                    _remove_left(Path(name).parent, os.fstat(held).st_mtime)
                yield Path(name)
                return
            finally:
                if held is not None:
                    os.close(held)


def _locked(name: str) -> int | None:
    """The open folder with its lock; None where somebody else holds it, or it is no more. Raises OSError where there
    are no such locks.
    """
    try:
        held = os.open(name, _FOLDER)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(held), os.lstat(name)):
            return held
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        os.close(held)
        raise
    os.close(held)
    return None


def _remove_left(home: Path, now_s: float) -> None:
    with suppress(OSError):
        for path in sorted(home.iterdir()):
            if _NAME.fullmatch(path.name) or _EARLIER.fullmatch(path.name):
                with suppress(OSError):
                    _remove(path, now_s)


def _remove(path: Path, now_s: float) -> None:
    """Remove a folder if it was left. Raises OSError."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) != 0o700:
        return
    held = _locked(str(path))
    if held is None:
        return
    try:
        with os.scandir(held) as entries:
            names = [entry.name for entry in entries]
        earlier = _EARLIER.fullmatch(path.name) is not None
        if earlier and (not names or now_s - found.st_mtime < _OLD_S):
            return
        if _only_sockets(held, names) and not any(_listens(held, name) for name in names):
            for name in names:
                os.unlink(name, dir_fd=held)
            path.rmdir()
    finally:
        os.close(held)


def _only_sockets(folder: int, names: Sequence[str]) -> bool:
    return all(stat.S_ISSOCK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode) for name in names)


def _listens(folder: int, name: str) -> bool:
    """Whether a process takes connections at a socket, or may."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.setblocking(False)
        try:
            asked.connect(f"/proc/self/fd/{folder}/{name}")
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True
