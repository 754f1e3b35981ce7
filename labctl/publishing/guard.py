"""A published folder that a stranger made, held against its manifest before anything else of it is opened.

May not: follow a link, open what the manifest does not list, or go on after the first thing that is not as it must be.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labctl.errors import BrokenRecord
from labctl.plain import count
from labctl.publishing.manifest import FileListed, Manifest, read_manifest
from labctl.store.atomic_files import file_errors
from labctl.store.database_backend import PUBLISHED
from labctl.store.lab_folder import MARK
from labctl.store.ledger import SEALED_TRACES
from labctl.store.published_files import JOURNAL, TRACES, check_file

MOST_FILES = 200_000
MOST_BYTES = 2 << 40  # of all files; none is read beyond its own size
MOST_TEXT = 256 << 20  # of a file that is read as text
DEEPEST = 8
LONGEST = 240  # of a path
TEXTS = (".json", ".jsonl", ".toml", ".csv", ".log", ".md", ".txt", ".yaml", ".html")
FOLDERS = ("campaigns", "cards", "eval_results", "recordings", "report", "tables")
AT_THE_ROOT = ("README.md", "LICENSE.txt", "croissant.json")
FILLED = 1 << 30  # bytes: a file beyond it is on the disk for a hundredth at least, whatever compresses it there
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Admitted:
    """A folder that is as its manifest says, and that may be read. digest: sha256 hex of the manifest; record: the
    campaign's folder in it.
    """

    folder: Path
    manifest: Manifest
    digest: str

    @property
    def record(self) -> Path:
        return self.folder / "campaigns" / self.manifest.campaign


def admit(folder: Path, say: Callable[[str], None] = lambda line: None) -> Admitted:
    """Check names, kinds of files, sizes, digests and databases of a published folder. say: called with "3/96 FILE".

    Raises InputError when the folder is none, BrokenRecord naming the first thing that does not hold, StorageError.
    """
    manifest, digest = read_manifest(folder)
    for name in manifest.files:
        _check_name(name, manifest.campaign)
    for left in manifest.withheld:
        if left.file:
            check_path(left.file, "it withholds")
    hold_to(folder, manifest.files, say)
    found = Admitted(folder, manifest, digest)
    _check_databases(found)
    return found


def hold_to(folder: Path, files: Mapping[str, FileListed], say: Callable[[str], None] = lambda line: None) -> None:
    """The files of a folder are those that its manifest lists, by names that were checked, and no others; errors as of
    `admit`.
    """
    if len(files) > MOST_FILES:
        raise BrokenRecord(f"{folder}: its manifest lists {count(len(files), 'file')}; {MOST_FILES} are the most")
    total = sum(entry.size for entry in files.values())
    if total > MOST_BYTES or any(entry.size < 0 for entry in files.values()):
        raise BrokenRecord(f"{folder}: its manifest declares {count(total, 'byte')}; {MOST_BYTES} are the most")
    there = dict(_walk(folder))
    for name in sorted({*files, *there} - {PUBLISHED}):
        if name not in there:
            raise BrokenRecord(f"missing file: {name}: the manifest lists it")
        if name not in files:
            raise BrokenRecord(
                f"unlisted file: {name}: the manifest does not list it; take it out, or get the folder anew"
            )
        if there[name] != files[name].size:
            raise BrokenRecord(f"changed file: {name}: {there[name]} bytes, the manifest says {files[name].size}")
        if name.endswith(TEXTS) and there[name] > MOST_TEXT:
            raise BrokenRecord(f"{name}: {there[name]} bytes of text; {MOST_TEXT} are the most")
    for number, (name, entry) in enumerate(sorted(files.items()), 1):
        if _digest(folder / name, entry.size) != entry.sha256:
            raise BrokenRecord(f"changed file: {name}: its bytes are not those that the manifest lists")
        say(f"{number}/{len(files)} {name}")


def check_path(name: str, what: str) -> None:
    """One plain way down: no root, no "..", no backslash, nothing that a terminal or a file system reads otherwise."""
    path = PurePosixPath(name)
    shown = repr(name[:100])
    if not name or path.is_absolute() or ".." in path.parts or str(path) != name or "\\" in name:
        raise BrokenRecord(f"{what} {shown}, which does not lie in the folder; a path goes down from it, part by part")
    if len(name) > LONGEST or len(path.parts) > DEEPEST:
        raise BrokenRecord(f"{what} {shown}: longer than {LONGEST} characters or {DEEPEST} folders")
    if not name.isprintable() or any(part.startswith(".") for part in path.parts):
        raise BrokenRecord(f"{what} {shown}: a name has printed characters alone and begins with no dot")
    if MARK in path.parts:
        raise BrokenRecord(f"{what} {shown}: a published folder has no settings of a lab")


def _check_name(name: str, campaign: str) -> None:
    check_path(name, "its manifest lists")
    first, _, rest = name.partition("/")
    inside = first in FOLDERS if rest else name in AT_THE_ROOT
    if not inside or (first == "campaigns" and not rest.startswith(f"{campaign}/")):
        where = f"{', '.join(AT_THE_ROOT)}, and what lies in {', '.join(FOLDERS[1:])} and campaigns/{campaign}"
        raise BrokenRecord(f"its manifest lists {name[:100]!r}; a published folder has {where}")


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    """Path and size of every file, without following a link."""
    waiting, seen = [folder], 0
    while waiting:
        here = waiting.pop()
        with file_errors(str(here)), os.scandir(here) as entries:
            for entry in entries:
                seen += 1
                if seen > 2 * MOST_FILES:
                    raise BrokenRecord(f"{folder} holds more than {MOST_FILES} files")
                found = entry.stat(follow_symlinks=False)
                name = Path(entry.path).relative_to(folder).as_posix()
                shown = name.encode("utf-8", "backslashreplace").decode()[:100]
                if stat.S_ISDIR(found.st_mode):
                    if len(PurePosixPath(name).parts) > DEEPEST:
                        raise BrokenRecord(f"{shown!r}: deeper than {DEEPEST} folders")
                    waiting.append(Path(entry.path))
                    continue
                if stat.S_ISLNK(found.st_mode):
                    raise BrokenRecord(f"{shown!r} is a link; a published folder has none")
                if not stat.S_ISREG(found.st_mode):
                    raise BrokenRecord(f"{shown!r} is no plain file; a published folder has nothing else")
                if found.st_nlink > 1:
                    raise BrokenRecord(
                        f"{shown!r} has {count(found.st_nlink, 'name')} (hard links), by which it could be another's; "
                        "copy the folder file by file"
                    )
                few = found.st_size // 100
                if found.st_size > FILLED and 512 * found.st_blocks < few and not _has_data(Path(entry.path), few):
                    raise BrokenRecord(
                        f"{shown!r} says {found.st_size} bytes and has fewer than {few} of data: "
                        "holes, which would be read for hours; get the folder anew"
                    )
                yield name, found.st_size


def _has_data(path: Path, least: int) -> bool:
    """Has a file so many bytes that are no holes? FUSE may say of any file that it has no blocks, ZFS of one that was
    written a moment ago; where a file system does not know of holes, all of a file is data.
    """
    with file_errors(str(path)):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = at = 0
            while found < least:
                begins = os.lseek(descriptor, at, os.SEEK_DATA)
                at = os.lseek(descriptor, begins, os.SEEK_HOLE)
                found += at - begins
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data from there on
                return False
            raise
        finally:
            os.close(descriptor)
    return True


def _digest(path: Path, size: int) -> str:
    """sha256 hex of a file of this size; of one that has grown since, of no more."""
    found, left = hashlib.sha256(), size
    with file_errors(str(path)):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            while left and (piece := file.read(min(PIECE, left))):
                found.update(piece)
                left -= len(piece)
            if file.read(1):
                return ""
    return found.hexdigest()


def _check_databases(found: Admitted) -> None:
    """Only the databases of the record, and each of them plain."""
    at = f"campaigns/{found.manifest.campaign}"
    kinds = {f"{at}/journal.db": JOURNAL, f"{at}/traces.db": TRACES, f"{at}/{SEALED_TRACES}": TRACES}
    for name in found.manifest.files:
        if name in kinds:
            check_file(found.folder / name, kinds[name], name)
        elif name.endswith((".db", ".sqlite", "-wal", "-shm", "-journal")):
            raise BrokenRecord(f"{name}: a database that no campaign has; it is not read")
    for name in (f"{at}/journal.db", f"{at}/traces.db", f"{at}/heads.log"):
        if name not in found.manifest.files:
            raise BrokenRecord(f"missing file: {name}: without it nothing can be verified")
