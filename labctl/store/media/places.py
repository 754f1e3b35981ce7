"""What a media store is to whoever uploads to it, looks at it or reads from it.

May not: name an object after anything but its digest, delete one, or be imported by a run process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from labctl.clock import days_later
from labctl.errors import BrokenRecord, StorageError

if TYPE_CHECKING:  # whoever looks at a campaign does not wait for the schemas
    from labctl.config.media import MediaTable

PART = 8 << 20  # bytes that are sent, or read, at once; a part is what a broken upload loses
Say = Callable[[int], None]  # called with how many bytes of a file are done


def nothing(done: int) -> None:
    """A `Say` that does nothing."""


def object_name(sha256: str) -> str:
    """What a file is called in a store: neither campaign, episode, camera nor arm."""
    return f"sha256/{sha256[:2]}/{sha256}"


@dataclass(frozen=True, slots=True)
class Object:
    """What a store says of one of its objects. checksum: the server's own, None where it has none; version: None
    where it keeps none; until: to when it refuses to delete it (ISO 8601).
    """

    bytes: int
    version: str | None = None
    checksum: str | None = None
    until: str | None = None


class MediaStore(Protocol):
    """A place that keeps files by their digest. What is refused or away is a StorageError in one line."""

    where: str

    def find(self, sha256: str, version: str | None = None) -> Object | None:
        """The newest copy of a file, or a version of it; None where there is none."""
        ...

    def put(self, path: Path, sha256: str, until: str | None, say: Say = nothing) -> Object:
        """Upload a file, or go on where another upload of it was broken off. until: to when it is locked (ISO 8601)."""
        ...

    def lock(self, sha256: str, version: str | None, until: str) -> None:
        """Have the server refuse to delete an object until then (ISO 8601)."""
        ...

    def read(self, sha256: str, version: str | None = None) -> Iterator[bytes]:
        """The bytes of an object, PART at a time."""
        ...

    def checksum_of(self, path: Path) -> str | None:
        """What the server's checksum has to be of this file; None where it has none to compare."""
        ...

    def close(self) -> None:
        """Idempotent."""
        ...


def digest_in(store: MediaStore, sha256: str, version: str | None) -> str:
    """sha256 hex of an object's bytes as the store gives them now. Raises StorageError."""
    found = hashlib.sha256()
    for part in store.read(sha256, version):
        found.update(part)
    return found.hexdigest()


def check_object(store: MediaStore, table: MediaTable, path: Path | None, sha256: str, kept: Object) -> str:
    """Compare an object with the file that it is of; how: "read_back", or "server_checksum" where the lab asks for
    that, the server has a checksum of a known kind and the file is here.

    Raises BrokenRecord for another content, StorageError.
    """
    if table.check == "server_checksum" and path is not None and kept.checksum is not None:
        expected = store.checksum_of(path)
        if expected is not None and expected == kept.checksum and path.stat().st_size == kept.bytes:
            return "server_checksum"
    if digest_in(store, sha256, kept.version) != sha256:
        raise BrokenRecord(f"{store.where}: object {sha256[:16]}… has other bytes than the file that was sealed")
    return "read_back"


def locked(until: str | None, sealed: str, lock_days: int | None) -> bool:
    """Whether a store refuses to delete a copy for as long as the lab asks, counted from when its file was sealed; an
    hour is left to clocks that differ.
    """
    return lock_days is None or (until is not None and days_later(until, 1 / 24) >= days_later(sealed, lock_days))


def unlocked(where: str, file: str) -> BrokenRecord:
    """Of a copy that may be deleted though lock_days stands in lab.toml."""
    how = "look at the bucket's object lock, and at s3:PutObjectRetention and s3:GetObjectRetention of these keys"
    return BrokenRecord(f"{file}: {where} does not say that its copy is locked as [media] lock_days asks; {how}")


class Gone(StorageError):
    """The store answers, and has no such object."""


def gone(where: str, sha256: str, version: str | None) -> Gone:
    """Of an object that a store should have."""
    named = f" (version {version})" if version else ""
    return Gone(f"{where}: it has no object {sha256[:16]}…{named}; see: labctl media check")
