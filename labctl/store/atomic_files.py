"""Files that are whole or not there: replaced in one step, or grown by whole lines that have reached the disk.

May not: know what a file says, or import a database: every process of a cell imports this.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from labctl.errors import StorageError


@contextmanager
def file_errors(where: str) -> Generator[None, None, None]:
    """Turn what the file system reports into one StorageError line that says what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{where}: {_remedy(error)}") from error


def _remedy(error: OSError) -> str:
    if error.errno == errno.EFBIG:
        return "files may not grow so large here (ulimit -f); nothing was written; raise that limit and try again"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; free some space and try again"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "not allowed here; check the permissions of the file and its folder"
    if error.errno == errno.EROFS:
        return "not allowed to write here; check how its disk is mounted"
    return (error.strerror or str(error)).lower()


@contextmanager
def file_in_one_step(
    path: Path, *, durable: bool = True, large: bool = False, as_before: bool = False
) -> Generator[Path, None, None]:
    """A file beside `path` to write, which takes its place when the block ends well and is gone otherwise. durable: its
    name is on the disk then; its bytes are for the block to force there. large: it takes a while, and what killed
    processes left of it is removed first. as_before: it gets the permissions of the file that it replaces. Raises
    StorageError.
    """
    own = f"{threading.get_native_id()}.{os.getpid()}"  # two threads may fetch one file for two readers
    temporary = path.parent / f".{path.name}.{own}.part"
    with file_errors(str(path)):
        kept = _permissions(path) if as_before else None
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.part") if large else ():
            if _of_nobody(left) and left.is_file():
                with suppress(PermissionError):  # another account's, in a folder of everybody's
                    left.unlink(missing_ok=True)
        try:
            yield temporary
            if kept is not None and kept != _permissions(temporary):  # a disk without any refuses
                temporary.chmod(kept)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)


def replace_file(path: Path, content: bytes, *, mode: int | None = None, durable: bool = True) -> None:
    """Write a file beside its place, force it to disk (durable), then put it there in one step. mode: of its
    permissions [those of the file that it replaces, of a new one 0o644 less the umask]. Raises StorageError.
    """
    with file_in_one_step(path, durable=durable) as temporary:
        kept = _permissions(path) if mode is None else None
        first = 0o644 if mode is None and kept is None else mode or kept or 0
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, first)
        with os.fdopen(descriptor, "wb") as file:
            if kept is not None and kept != _permissions(temporary):  # as the umask made it
                os.fchmod(descriptor, kept)
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())


def _permissions(path: Path) -> int | None:
    """Of a file that is there, who may read and write it."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def detach(path: Path, *, durable: bool = True) -> None:
    """Give a path a file of its own with the bytes that are in it now: what whoever has it open writes from now on is
    in no folder. Raises StorageError.
    """
    with file_in_one_step(path, durable=durable) as temporary:
        shutil.copyfile(path, temporary)
        if durable:
            sync_file(temporary)


def keep_file(path: Path, content: bytes, within: Path) -> None:
    """Write a file, and the folders that lead to it from `within`; all of it is on the disk when this returns. Raises
    StorageError.
    """
    with file_errors(str(path.parent)):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
    with file_errors(str(path.parent)):
        sync_names(path.parent, within)


@contextmanager
def folder_in_one_step(
    to: Path, *, building: Path | None = None, mode: int = 0o777, replacing: bool = False
) -> Generator[Path, None, None]:
    """A folder to fill, which becomes `to` when the block ends well and is gone otherwise. What killed processes left
    is removed first. building: where it is filled, if the caller holds a lock for it [beside `to`, under this process's
    number]. replacing: an earlier `to` is renamed away in the last step and removed after it; where that
    step fails it is put back, after a kill by the next call. Raises StorageError.
    """
    with file_errors(str(to)):
        to = to.absolute()  # "." has no name
        before = to.with_name(f".{to.name}.before")
        to.parent.mkdir(parents=True, exist_ok=True)
        if replacing:
            _put_back(before, to)
            shutil.rmtree(before, ignore_errors=True)
        if building is None:
            building = to.with_name(f".{to.name}.{os.getpid()}.part")
            for left in to.parent.glob(f".{glob.escape(to.name)}.*.part"):
                if _of_nobody(left):
                    shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True, mode=mode)
        try:
            yield building
            if replacing and to.exists():
                to.rename(before)
            building.rename(to)
            sync_folder(to.parent)
        finally:
            shutil.rmtree(building, ignore_errors=True)
            if replacing:
                _put_back(before, to)
                shutil.rmtree(before, ignore_errors=True)


def _of_nobody(part: Path) -> bool:
    """Whether the process whose number such a folder has in its name has ended."""
    number = part.stem.rpartition(".")[2]
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        pass
    return False


def _put_back(before: Path, to: Path) -> None:
    if before.is_dir() and not to.exists():
        before.rename(to)


def sync_file(path: Path) -> None:
    """Force to disk what has been written of a file, by whomever. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Force a folder's list of names to disk, so that a file put there is found after loss of power."""
    sync_file(folder)


def sync_names(folder: Path, within: Path) -> None:
    """Force to disk the names by which a folder is found from `within`, and those in it: loss of power may else leave
    a file on the disk that no name leads to.
    """
    sync_folder(folder)
    for above in folder.parents[: len(folder.relative_to(within).parts)]:
        sync_folder(above)


def append_line(path: Path, line: str, *, mode: int = 0o644, durable: bool = True) -> None:
    """Add one line; on the disk when this returns (durable). Raises StorageError.

    A last line without its end is what a killed writer left, before its call returned: it is cut off first.
    """
    with file_errors(str(path)):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, mode)
        with os.fdopen(descriptor, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
            file.write(line.encode() + b"\n")
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if durable and not size:  # whose name is new
            sync_folder(path.parent)


def whole_lines(path: Path) -> list[str]:
    """The lines of a file grown by `append_line` without a last one that has no end; [] when there is no file."""
    with file_errors(str(path)):
        if not path.exists():
            return []
        return path.read_bytes().decode(errors="replace").split("\n")[:-1]
