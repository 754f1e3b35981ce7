"""Take a snapshot of a lab, also while it runs: everything in its folder, and each campaign as of one moment.

May not: write anything into the lab, or wait for a run.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from labctl.backup.as_of_journal import began_since, campaign_of, leave_out
from labctl.backup.repository import FileKept, FolderKept, HeadKept, Repository, Snapshot
from labctl.clock import Anchor
from labctl.core.trial import fold
from labctl.errors import BrokenRecord, Busy, LabctlError, StorageError, in_words
from labctl.plain import count
from labctl.store.atomic_files import file_errors
from labctl.store.chain_heads import HEADS
from labctl.store.database_backend import log_size
from labctl.store.journal import events_of
from labctl.store.lab_folder import JOURNAL
from labctl.store.locks import LOCKS
from labctl.store.opened_list import OPENED
from labctl.version import version

LEFT_OUT = (LOCKS, "__pycache__")
CAMPAIGN_LOCK = ".lock"
SQLITE_BEGINS = b"SQLite format 3\x00"
ENVIRONMENT = "pyvenv.cfg"
"""What a folder holds that can be made again by pip."""
# Within a campaign what is written first is read last, so that a snapshot of a running one says of nothing that it is
# there which is not: a head is noted after its entry, an entry made after what it tells of is on the disk. What began
# after its journal was kept is left out of the traces: `as_of_journal`.
FIRST = (OPENED, HEADS, JOURNAL)
There: TypeAlias = "tuple[list[Path], list[Path], list[str]]"
"""Files and folders of a lab, and what is left out of a snapshot, a line each."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot that has been taken: its name, its content, and how much of it is new here. passed_over: newer ones
    that cannot be read, a line each: what they had was read in the lab again.
    """

    name: str
    snapshot: Snapshot
    new_files: int
    new_bytes: int
    passed_over: Sequence[str] = ()


def take_snapshot(
    lab: Path,
    repository: Repository,
    anchor: Anchor,
    say: Callable[[str], None] = lambda line: None,
    *,
    there: There | None = None,
) -> Taken:
    """Keep all of a lab folder but locks, links and environments. A file of the size and time that it had in the newest
    snapshot that can be read is not read again. say: called with "k/n files"; there: what `what_is_there` has just
    found. Whoever calls holds the lock of the folder of backups.

    Raises StorageError; the lab is left as it is either way.
    """
    repository.clear()
    names = repository.names()
    before, passed_over = _newest_whole(repository, names)
    made = _Taking(lab, repository, before)
    paths = made.look(there or what_is_there(lab))
    for number, path in enumerate(paths, 1):
        made.keep(path)
        say(f"{number}/{count(len(paths), 'file')}")
    snapshot = Snapshot(
        taken=_stamp(anchor.wall, names),
        labctl=version(),
        lab=lab.resolve().name,
        files=sorted(made.files, key=lambda one: one.path),
        folders=sorted(made.folders, key=lambda one: one.path),
        heads=made.heads,
        left_out=sorted(made.left_out),
        damaged=made.damaged,
    )
    return Taken(repository.keep(snapshot), snapshot, made.new_files, made.new_bytes, passed_over)


def _newest_whole(repository: Repository, names: Sequence[str]) -> tuple[dict[str, FileKept], list[str]]:
    """The files of the newest snapshot that can be read, by path, and what is wrong with those that are newer. Nothing
    is lost without: it says what need not be read again.
    """
    passed_over: list[str] = []
    for name in reversed(names):
        try:
            return {one.path: one for one in repository.snapshot(name).files}, passed_over
        except (BrokenRecord, StorageError) as error:
            passed_over.append(str(error))
    return {}, passed_over


class _Taking:
    """One snapshot in the making."""

    def __init__(self, lab: Path, repository: Repository, before: dict[str, FileKept]) -> None:
        self._lab, self._repository, self._before = lab, repository, before
        self.files: list[FileKept] = []
        self.folders: list[FolderKept] = []
        self.heads: list[HeadKept] = []
        self.left_out: list[str] = []
        self.damaged: list[str] = []
        self.new_files = self.new_bytes = 0

    def look(self, there: There) -> list[Path]:
        """What there is to keep, in the order in which it is read."""
        found, folders, self.left_out = there
        for path in folders:
            with suppress(FileNotFoundError):  # gone meanwhile
                mode = stat.S_IMODE(path.stat().st_mode)
                self.folders.append(FolderKept(path=path.relative_to(self._lab).as_posix(), mode=mode))
        order = {name: place for place, name in enumerate(FIRST)}
        return sorted(found, key=lambda path: (order.get(path.name, len(order)), path))

    def keep(self, path: Path) -> None:
        """Bring one file into the backups; one that went away meanwhile is in no snapshot."""
        name = path.relative_to(self._lab).as_posix()
        try:
            about = path.stat()
            if path.name == JOURNAL and path.parent.parent.name == "campaigns":  # a seal host's has no phase
                self._note_head(path.parent)
            kept = self._kept_before(name, path, about) or self._taken(name, path, about)
        except FileNotFoundError as error:
            if os.path.lexists(path):
                text = f"{path} is there and its copy in {self._repository.folder} is not; take the backup again"
                raise StorageError(text) from error
            return
        except PermissionError as error:
            raise StorageError(f"{path}: not allowed to read it; take the backup as the lab's owner") from error
        self.files.append(kept)

    def _kept_before(self, name: str, path: Path, about: os.stat_result) -> FileKept | None:
        """What the newest snapshot has of a file that is as it was then."""
        known = self._before.get(name)
        if known is None or known.changed_ns != about.st_mtime_ns or not self._repository.has(known.sha256, known.size):
            return None
        as_it_was = not log_size(path) if known.database else known.size == about.st_size
        return replace(known, mode=stat.S_IMODE(about.st_mode)) if as_it_was else None

    def _taken(self, name: str, path: Path, about: os.stat_result) -> FileKept:
        database, since = _is_database(path), list[str]()
        change = partial(self._as_of_journal, path, since)
        try:
            sha256, size, new = self._repository.take(path, database=database, change=change)
        except StorageError as error:
            if not database or isinstance(error, Busy):  # what another program holds is not damaged
                raise
            sha256, size, new = self._repository.take(path, database=False)
            self.damaged.append(f"{name}: kept as it lies there, SQLite cannot read it: {error}")
            database = False
        self.new_files += new
        self.new_bytes += size * new
        self.left_out += [f"{name}: {episode}, which began after the journal was kept" for episode in since]
        changed_ns = about.st_mtime_ns - bool(since)  # a time that the lab's has not: the next snapshot reads it anew
        return FileKept(name, size, stat.S_IMODE(about.st_mode), sha256, changed_ns, database)

    def _as_of_journal(self, path: Path, since: list[str], copy: Path) -> None:
        """Of a campaign's traces only what the journal has that was kept before; since: gets what is left out."""
        campaign = campaign_of(self._lab, path)
        journal = campaign and (campaign / JOURNAL).relative_to(self._lab).as_posix()
        for one in self.files:
            if campaign and one.path == journal and one.database:
                since[:] = began_since(copy, self._repository.object(one.sha256), campaign)
                if since:
                    leave_out(copy, since)

    def _note_head(self, campaign: Path) -> None:
        """The newest entry, read before the journal is copied, which may have more by then."""
        try:
            events = events_of(campaign)
            phase = str(fold(events).phase)
        except (LabctlError, KeyError, TypeError, ValueError) as error:
            self.damaged.append(f"campaign {campaign.name}: {in_words(error)}; see: labctl verify {campaign.name}")
        else:
            head = events[-1]
            self.heads.append(HeadKept(campaign=campaign.name, seq=head.seq, hash=head.hash, phase=phase))


def what_is_there(lab: Path, *, everything: bool = False) -> There:
    """Files and folders of a lab, and what is neither or can be made again, a line each. everything: with what SQLite
    keeps beside a database, for who copies bytes and not by SQLite. Raises StorageError, which names the folder.
    """
    files: list[Path] = []
    folders: list[Path] = []
    left: list[str] = []

    def walk(folder: Path) -> None:
        try:
            with file_errors(str(folder)):
                entries = sorted(os.scandir(folder), key=lambda one: one.name)
        except StorageError as error:
            if folder != lab and isinstance(error.__cause__, FileNotFoundError):
                return  # gone meanwhile, as one does in which a campaign was being opened
            raise
        if folder != lab:
            folders.append(folder)
        for entry in entries:
            path = Path(entry.path)
            name = path.relative_to(lab).as_posix()
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                left.append(f"{name}: a link or a device, not a file")
            elif entry.is_dir():
                if entry.name in LEFT_OUT:
                    continue
                if (path / ENVIRONMENT).is_file():
                    left.append(f"{name}: a Python environment")
                    continue
                walk(path)
            elif not _passing(path, beside=("shm",) if everything else ("wal", "shm")):
                files.append(path)

    with file_errors(str(lab)):
        walk(lab)
    return files, folders, left


def _passing(path: Path, beside: Sequence[str]) -> bool:
    """Whether a file is of a moment: a lock, one that is being replaced, what SQLite keeps beside a database."""
    if path.name == CAMPAIGN_LOCK or (path.name.startswith(".") and path.name.endswith(".part")):
        return True
    database, _, what = path.name.rpartition("-")
    return what in beside and (path.with_name(database)).is_file()


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(SQLITE_BEGINS)) == SQLITE_BEGINS


def _stamp(wall: str, names: Sequence[str]) -> str:
    """20261125T174500Z; with -02 and so on behind it where a snapshot of that second is there already."""
    second = re.sub(r"[-:]", "", wall.partition(".")[0].partition("+")[0]) + "Z"
    taken = sum(name.startswith(second) for name in names)
    return f"{second}-{taken + 1:02}" if taken else second
