"""A folder of backups: bytes by their digest, and snapshots that name them. A file that did not change is kept once.

    labctl-backup.json          what this folder is
    objects/ab/ab12…            the bytes of files, each by the sha256 of what is in it; *.damaged: what was, no more
    snapshots/TIME.json         a snapshot: every file of the lab and the chain's head of every campaign

May not: know what a lab is. Everything in it is its owner's alone: a lab's seals are in it, as they are in the lab.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from labctl.errors import BrokenRecord, InputError, StorageError
from labctl.plain import Json, count
from labctl.store.atomic_files import file_errors, replace_file, sync_folder
from labctl.store.database_backend import copy_database
from labctl.store.footage import file_digest

MARK = "labctl-backup.json"
FORMAT = "labctl.backups/1"
SNAPSHOT = "labctl.snapshot/1"
OBJECTS, SNAPSHOTS = "objects", "snapshots"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
DAMAGED = ".damaged"
"""Behind the digest of an object that `--check` set aside."""
DIGEST_LINE = 65
"""Bytes of the last line of a snapshot, its sha256 in hex."""
PIECE = 1 << 20
"""Bytes read at once."""
_NAME = re.compile(r"\d{8}T\d{6}Z(-\d{2,})?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileKept:
    """A file of a snapshot: its place below the lab, size in bytes, permission bits, sha256 and when it was changed
    (ns since 1970); database: it was copied as of one moment, through SQLite.
    """

    path: str
    size: int
    mode: int
    sha256: str
    changed_ns: int
    database: bool = False


@dataclass(frozen=True, slots=True)
class FolderKept:
    """A folder of a snapshot and its permission bits."""

    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class HeadKept:
    """A campaign's newest entry when it was kept: its number and hash, and the campaign's phase."""

    campaign: str
    seq: int
    hash: str
    phase: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One backup: when (UTC), by which labctl, of which folder's name, and all that is in it. left_out: what is no file
    of the lab; damaged: what was so when it was kept.
    """

    taken: str
    labctl: str
    lab: str
    files: Sequence[FileKept]
    folders: Sequence[FolderKept]
    heads: Sequence[HeadKept]
    left_out: Sequence[str]
    damaged: Sequence[str]
    schema: str = SNAPSHOT


class Repository:
    """The folder of backups `folder`. Raises InputError where it is none, StorageError where it cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / MARK).is_file():
            make = f"labctl backup {shlex.quote(str(folder))}"
            raise InputError(f"{folder} holds no backups (no {MARK}); make one there with: {make}")
        with file_errors(str(folder / MARK)):
            text = (folder / MARK).read_bytes()
        if text != _text({"format": FORMAT}):
            raise InputError(f"{folder / MARK}: it does not say {FORMAT}, which is what this labctl reads")

    @classmethod
    def made(cls, folder: Path, *, of: Path) -> Repository:
        """The folder of backups of the lab `of`, made where it is not there yet. Raises InputError for a folder that
        holds anything else or lies in the lab, StorageError.
        """
        if folder.resolve().is_relative_to(of.resolve()):
            raise InputError(f"{folder} lies in the lab; keep backups outside it, best on another disk")
        with file_errors(str(folder)):
            if not (folder / MARK).is_file():
                if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                    raise InputError(
                        f"{folder} is not empty and holds no backups; name a new folder, or one with backups"
                    )
                folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
                folder.chmod(FOLDER_MODE)
                for part in (OBJECTS, SNAPSHOTS):
                    (folder / part).mkdir(exist_ok=True, mode=FOLDER_MODE)
                replace_file(folder / MARK, _text({"format": FORMAT}), mode=FILE_MODE)
        return cls(folder)

    def clear(self) -> None:
        """Delete what a backup that was killed had half copied: for who holds the lock, else it is another's that goes
        on. Raises StorageError.
        """
        with file_errors(str(self.folder)):
            for part in self.folder.glob(f"{OBJECTS}/*.part*"):  # with what SQLite keeps beside one
                part.unlink()

    def names(self) -> list[str]:
        """The snapshots, oldest first."""
        with file_errors(str(self.folder)):
            found = [path.stem for path in (self.folder / SNAPSHOTS).glob("*.json")]
        return sorted(name for name in found if _NAME.fullmatch(name))

    def snapshot(self, name: str | None = None) -> Snapshot:
        """A snapshot by its time, or by how its time begins; the newest without. Raises InputError where there is none
        or more than one, BrokenRecord for one that is damaged.
        """
        names = self.names()
        fitting = [one for one in names if one.startswith(name)] if name else names[-1:]
        fitting = [name] if name in names else fitting
        if len(fitting) != 1:
            if not names:
                take = f"labctl backup {shlex.quote(str(self.folder))}"
                raise InputError(f"{self.folder}: it has no whole snapshot; take one in the lab with: {take}")
            what = f"{len(fitting)} of its snapshots begin with {name!r}"
            raise InputError(f"{self.folder}: {what}; there are: {', '.join(names)}")
        path = self.folder / SNAPSHOTS / f"{fitting[0]}.json"
        with file_errors(str(path)):
            text = path.read_bytes()
        try:
            return _read(text)
        except BrokenRecord as error:
            raise BrokenRecord(f"{path}: {error}; restore an older one: labctl restore --at TIME") from error

    def keep(self, snapshot: Snapshot) -> str:
        """Write a snapshot, whose files are all here, as its last step. Its name."""
        text = _text(asdict(snapshot))
        sync_folder(self.folder / OBJECTS)
        path = self.folder / SNAPSHOTS / f"{snapshot.taken}.json"
        replace_file(path, text + hashlib.sha256(text).hexdigest().encode() + b"\n", mode=FILE_MODE)
        return snapshot.taken

    def has(self, sha256: str, size: int) -> bool:
        """Whether the bytes with this digest are here, so many of them: what is in them only `problems` says."""
        path = self.object(sha256)
        return path.is_file() and path.stat().st_size == size

    def object(self, sha256: str) -> Path:
        """Where the bytes with this digest are."""
        return self.folder / OBJECTS / sha256[:2] / sha256

    def take(
        self, path: Path, *, database: bool, change: Callable[[Path], None] = lambda copy: None
    ) -> tuple[str, int, bool]:
        """Bring the bytes of a file here, of a SQLite database as of one moment: digest, number, whether new. change:
        called with the copy of a database before it is kept.

        Raises StorageError, FileNotFoundError where the file has gone meanwhile.
        """
        part = self.folder / OBJECTS / f"{os.getpid()}.part"
        try:
            if database:
                copy_database(path, part)
                change(part)
                with part.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                    os.fsync(file.fileno())
                size = part.stat().st_size
            else:
                sha256, size = copied(path, part)
            new = not self.has(sha256, size)
            if new:
                with file_errors(str(part)):
                    part.chmod(FILE_MODE)
                    self.object(sha256).parent.mkdir(exist_ok=True, mode=FOLDER_MODE)
                    part.rename(self.object(sha256))
                    sync_folder(self.object(sha256).parent)
            return sha256, size, new
        finally:
            part.unlink(missing_ok=True)

    def pieces(self, kept: FileKept) -> Iterator[bytes]:
        """The bytes of a kept file. Raises BrokenRecord where they are gone or not what they were."""
        path = self.object(kept.sha256)
        seen, size = hashlib.sha256(), 0
        if not path.is_file():
            raise BrokenRecord(f"{kept.path}: its bytes are not in the backup ({path.name[:16]}…)")
        with file_errors(str(path)), closing(path.open("rb")) as file:
            while piece := file.read(PIECE):
                seen.update(piece)
                size += len(piece)
                yield piece
        if seen.hexdigest() != kept.sha256 or size != kept.size:
            raise BrokenRecord(f"{kept.path}: its bytes in the backup are not what they were ({path.name[:16]}…)")

    def problems(self, say: Callable[[str], None] = lambda line: None) -> tuple[int, list[str]]:
        """Read every kept file of every snapshot again: how many there are, and what is wrong. One whose bytes are not
        what they were, twice, is set aside, so that the next backup writes it again; one that is read as it was after
        all comes back. say: called with "k/n files".
        """
        found: list[str] = []
        files: dict[str, FileKept] = {}
        for name in self.names():
            try:
                files |= {one.sha256: one for one in self.snapshot(name).files}
            except BrokenRecord as error:
                found.append(str(error))
        for number, one in enumerate(files.values(), 1):
            self._come_back(one)
            try:
                if self._damaged(one) and (damage := self._damaged(one)):
                    found.append(f"{damage}{self._set_aside(one.sha256)}")
            except StorageError as error:  # a disk that cannot be read now says nothing of its bytes
                found.append(str(error))
            say(f"{number}/{count(len(files), 'file')}")
        return len(files), found

    def _damaged(self, one: FileKept) -> str:
        """What is wrong with the bytes of a kept file, read from the disk; "" where nothing is. Raises StorageError."""
        path = self.object(one.sha256)
        if path.is_file() and hasattr(os, "posix_fadvise"):
            with file_errors(str(path)), path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            for _ in self.pieces(one):
                pass
        except BrokenRecord as error:
            return str(error)
        return ""

    def _come_back(self, one: FileKept) -> None:
        """Bytes that were set aside and are what they were take their place again, where nothing else has it."""
        path = self.object(one.sha256)
        aside = path.with_name(f"{one.sha256}{DAMAGED}")
        with suppress(OSError):  # then they stay aside, and are named as not there
            if not path.exists() and aside.is_file() and file_digest(aside) == one.sha256:
                aside.replace(path)
                sync_folder(path.parent)

    def _set_aside(self, sha256: str) -> str:
        """Move damaged bytes out of the way of sound ones, and say what follows."""
        path = self.object(sha256)
        try:
            if path.is_file():
                path.replace(path.with_name(f"{sha256}{DAMAGED}"))
                sync_folder(path.parent)
        except (OSError, StorageError) as error:
            return f"; it cannot be set aside ({error}), so no backup mends it"
        return "; the next backup writes it again if the lab still has it"


def copied(path: Path, to: Path) -> tuple[str, int]:
    """Copy a file of a lab to where there is none: digest and size of what was copied, which may grow meanwhile. It is
    on the disk then, and read from there by whoever reads it next, where the system lets go of it.
    """
    seen, size = hashlib.sha256(), 0
    with path.open("rb") as source, file_errors(str(to)), to.open("xb") as file:
        while piece := source.read(PIECE):
            seen.update(piece)
            size += len(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return seen.hexdigest(), size


def _read(text: bytes) -> Snapshot:
    """A snapshot from its text and the digest below it; its files lie below the lab, each once. Raises BrokenRecord."""
    from pydantic import TypeAdapter, ValidationError

    body, sha256 = text[:-DIGEST_LINE], text[-DIGEST_LINE:].decode(errors="replace").strip()
    if hashlib.sha256(body).hexdigest() != sha256:
        raise BrokenRecord("it is not as it was written")
    try:
        snapshot = TypeAdapter(Snapshot).validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise BrokenRecord(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if snapshot.schema != SNAPSHOT:
        raise BrokenRecord(f"it is {snapshot.schema!r}; this labctl reads {SNAPSHOT}")
    seen: set[str] = set()
    for one in (*snapshot.files, *snapshot.folders):
        parts = Path(one.path).parts
        if not parts or Path(one.path).is_absolute() or ".." in parts or one.path in seen:
            raise BrokenRecord(f"{one.path!r} is no place in a lab")
        seen.add(one.path)
    for kept in snapshot.files:
        if not _DIGEST.fullmatch(kept.sha256):
            raise BrokenRecord(f"{kept.path}: {kept.sha256!r} is no sha256")
    return snapshot


def _text(found: Mapping[str, Json]) -> bytes:
    return (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode()
