"""A media store that is a folder: another disk, or what a file server gives.

May not: write over an object, or leave a half one under its name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Protocol

from labctl.config.media import FOLDER, MediaTable
from labctl.errors import InputError, StorageError
from labctl.extras import wanted_for
from labctl.store.atomic_files import file_errors, sync_folder
from labctl.store.media.places import PART, Object, Say, gone, nothing, object_name

READ_ONLY = 0o440


class _Files(Protocol):
    """What is used here of fsspec, which has no types."""

    def isdir(self, path: str) -> bool: ...
    def info(self, path: str) -> dict[str, int]: ...
    def open(self, path: str, mode: str) -> BinaryIO: ...


class FolderStore:
    """Its folder has to be there: a disk that is not mounted is no empty store."""

    def __init__(self, table: MediaTable) -> None:
        """Raises StorageError when the folder is not there, InputError where an object lock is asked of it."""
        with wanted_for("a media store"):
            make: Callable[[], _Files] = import_module("fsspec.implementations.local").LocalFileSystem

        self.where = table.url
        self._root = Path(table.url.removeprefix(FOLDER))
        self._files = make()
        if table.lock_days is not None:
            raise InputError("[media] lock_days: a folder has no object lock; take the line out, or name a bucket")
        if not self._files.isdir(str(self._root)):
            raise StorageError(f"{self.where}: there is no such folder (is its disk mounted?); later again")

    def _path(self, sha256: str) -> Path:
        return self._root / object_name(sha256)

    def find(self, sha256: str, version: str | None = None) -> Object | None:
        path = self._path(sha256)
        with file_errors(self.where):
            return Object(self._files.info(str(path))["size"]) if path.is_file() else None

    def put(self, path: Path, sha256: str, until: str | None, say: Say = nothing) -> Object:
        place = self._path(sha256)
        part = place.with_name(place.name + ".part")
        with file_errors(self.where):
            place.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o640)
            with os.fdopen(descriptor, "r+b") as out, path.open("rb") as source:
                try:
                    fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise StorageError(f"{self.where}: another process is uploading this file; later again") from None
                at = _common(source, out)
                source.seek(at)
                out.seek(at)
                out.truncate()
                while block := source.read(PART):
                    out.write(block)
                    out.flush()
                    at += len(block)
                    say(at)
                os.fsync(out.fileno())
                out.seek(0)
                if hashlib.file_digest(out, "sha256").hexdigest() != sha256:
                    part.unlink(missing_ok=True)
                    raise StorageError(f"{self.where}: what was written there is not what was read here; again")
                if part.exists():  # not where another process finished it before the lock was taken
                    part.replace(place)
                    place.chmod(READ_ONLY)
                sync_folder(place.parent)
        return Object(place.stat().st_size)

    def lock(self, sha256: str, version: str | None, until: str) -> None:
        raise InputError("a folder has no object lock")  # and no store is made with lock_days

    def read(self, sha256: str, version: str | None = None) -> Iterator[bytes]:
        path = self._path(sha256)
        if not path.is_file():
            raise gone(self.where, sha256, None)
        with file_errors(self.where), self._files.open(str(path), "rb") as file:
            while block := file.read(PART):
                yield block

    def checksum_of(self, path: Path) -> None:
        return None

    def close(self) -> None: ...


def _common(source: BinaryIO, out: BinaryIO) -> int:
    """How many bytes of what is there already are those of the source, in whole parts."""
    at = 0
    while (there := out.read(PART)) and there == source.read(len(there)):
        at += len(there)
    return at
