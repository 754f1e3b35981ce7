"""Uploads what a campaign's folder has and its media store has not (also no more), verifies it, and has that in the
journal. Done again it sends nothing.

May not: send a file that is not the one that was sealed, or before it may leave; write over an object; hold a campaign
while it sends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.clock import MonotonicClock, days_later
from labctl.core.events import Event, Kind
from labctl.errors import BrokenRecord, StateError, StorageError
from labctl.messages.media import MediaStored, StoredFile
from labctl.plain import count
from labctl.store.atomic_files import file_errors
from labctl.store.campaign import writing
from labctl.store.footage import file_digest
from labctl.store.journal import chain_problems, events_of
from labctl.store.media.held import Copy, Held, MediaFile, held
from labctl.store.media.places import MediaStore, Object, check_object, locked, unlocked

if TYPE_CHECKING:  # whoever looks at a campaign does not wait for the schemas
    from labctl.config.media import MediaTable

FILES = 200  # in one entry of the journal
Say = Callable[[str], None]


@dataclass(slots=True)
class Uploaded:
    """What an upload did. sent: of how many files bytes went; sent_bytes; stored: files of which the journal has a
    verified copy in this store now; waits: files that may not leave yet; elsewhere: files that are not here and that
    another store alone has, by the journal; gone: files that are neither here nor in the journal as stored; broken:
    what was not sent, or does not hold, and why; later: why nothing was journalled.
    """

    campaign: str
    place: str
    sent: int = 0
    sent_bytes: int = 0
    stored: int = 0
    waits: int = 0
    elsewhere: int = 0
    gone: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])
    later: str = ""

    def __str__(self) -> str:
        what = f"{count(self.sent, 'file')} sent ({self.sent_bytes / 1e6:.1f} MB)" if self.sent else "nothing to send"
        waits = f"; {count(self.waits, 'file')} may not leave yet" if self.waits else ""
        elsewhere = f"; {count(self.elsewhere, 'file')} in another store alone" if self.elsewhere else ""
        return f"{what}; {self.place} has {self.stored} of them verified{waits}{elsewhere}"


def events_that_hold(folder: Path) -> list[Event]:
    """The events of a campaign, to go by. Raises BrokenRecord for a chain that does not hold, StorageError."""
    events = events_of(folder)
    problems = chain_problems(events)
    if problems:
        raise BrokenRecord(f"{problems[0]}; its media are left as they are; see: labctl verify {folder.name}")
    return events


def pending(found: Held, table: MediaTable) -> tuple[list[MediaFile], int]:
    """The files that may be sent and of which the journal has no copy in this store, or none that is locked as the lab
    asks, in an order that tells nothing of trials; and how many may not leave yet.
    """
    missing = [file for file in found.files if not _kept(found, file, table)]
    may = [file for file in missing if found.may_leave(file, table.after)]
    return sorted(may, key=lambda file: file.sha256), len(missing) - len(may)


def _kept(found: Held, file: MediaFile, table: MediaTable) -> bool:
    copy = found.stored.get((file.sha256, table.url))
    return copy is not None and locked(copy.until, file.at, table.lock_days)


def send(folder: Path, file: MediaFile, store: MediaStore, table: MediaTable) -> int:
    """See that the store has a file; how many bytes went. Raises BrokenRecord for one that is not as it was sealed,
    StorageError.
    """
    path = folder / file.file
    with file_errors(str(path)):
        size = path.stat().st_size
        here = file_digest(path)
    if here != file.sha256:
        raise BrokenRecord(
            f"{file.file}: its bytes are not the ones that were sealed; see: labctl verify {folder.name}"
        )
    kept = store.find(file.sha256)
    if kept is not None:
        if kept.bytes != size:
            raise BrokenRecord(f"{file.file}: {store.where} has an object of its digest with {kept.bytes} bytes")
        return 0
    until = None if table.lock_days is None else days_later(MonotonicClock().anchor().wall, table.lock_days)
    store.put(path, file.sha256, until)
    return size


def upload(folder: Path, store: MediaStore, table: MediaTable, *, who: str, say: Say = lambda line: None) -> Uploaded:
    """Send what is missing, verify it, and journal that. say: called with "3/12 FILE".

    Raises BrokenRecord for a chain that does not hold, StorageError for a store that is away, refuses or is full:
    what was verified until then is journalled.
    """
    found = held(events_that_hold(folder))
    files, waits = pending(found, table)
    lost = _lost(folder, found, store, table, say)
    files += lost
    done = Uploaded(folder.name, table.url, waits=waits)
    verified: list[tuple[StoredFile, str]] = []
    try:
        for number, file in enumerate(files, 1):
            say(f"{number}/{len(files)} {file.file}")
            if not (folder / file.file).is_file():
                if not found.copies(file.sha256):
                    done.gone.append(file.file)
                elif (file.sha256, table.url) not in found.stored:
                    done.elsewhere += 1
                continue
            try:
                size = send(folder, file, store, table)
                done.sent, done.sent_bytes = done.sent + bool(size), done.sent_bytes + size
                verified.append(_verified(folder, file, store, table))
            except BrokenRecord as error:
                done.broken.append(str(error))
    finally:
        done.later = _journal(folder, table, verified, who, {file.sha256 for file in lost})
    new = sum((entry["sha256"], table.url) not in found.stored for entry, _ in verified)
    done.stored = sum(place == table.url for _, place in found.stored) + (0 if done.later else new)
    return done


def _lost(folder: Path, found: Held, store: MediaStore, table: MediaTable, say: Say) -> list[MediaFile]:
    """The files that are here and whose journalled copy the store has no more: as of a disk that was replaced."""
    copies = {file.sha256: file for file in found.files if _kept(found, file, table) and (folder / file.file).is_file()}
    lost: list[MediaFile] = []
    for number, (sha256, file) in enumerate(sorted(copies.items()), 1):
        say(f"asking for {number}/{len(copies)}")
        if store.find(sha256, found.stored[sha256, table.url].version) is None and found.may_leave(file, table.after):
            lost.append(file)
    return lost


def _verified(folder: Path, file: MediaFile, store: MediaStore, table: MediaTable) -> tuple[StoredFile, str]:
    kept = store.find(file.sha256)
    if kept is None:
        raise StorageError(f"{store.where}: it took {file.file} and does not have it; later again")
    if not locked(kept.until, file.at, table.lock_days):
        kept = _lock(file, store, table, kept)
    how = check_object(store, table, folder / file.file, file.sha256, kept)
    entry: StoredFile = {"file": file.file, "sha256": file.sha256, "bytes": kept.bytes}
    if kept.version is not None:
        entry["version"] = kept.version
    if kept.until is not None:
        entry["until"] = kept.until
    return entry, how


def _lock(file: MediaFile, store: MediaStore, table: MediaTable, kept: Object) -> Object:
    """An object that was there without a lock, or whose upload was begun without one, once it is locked. Raises
    BrokenRecord where it cannot be.
    """
    assert table.lock_days is not None
    try:
        store.lock(file.sha256, kept.version, days_later(MonotonicClock().anchor().wall, table.lock_days))
        again = store.find(file.sha256, kept.version)
    except StorageError as error:
        raise BrokenRecord(f"{file.file}: its copy is there and cannot be locked: {error}") from error
    if again is None or not locked(again.until, file.at, table.lock_days):
        raise unlocked(store.where, file.file)
    return again


def _journal(
    folder: Path, table: MediaTable, verified: Sequence[tuple[StoredFile, str]], who: str, lost: Collection[str] = ()
) -> str:
    """Have verified copies in the journal; why not, where somebody else writes into it now. lost: the digests of files
    whose copy of before is there no more.
    """
    if not verified:
        return ""
    try:
        with writing(folder, "media upload", None) as (campaign, now):
            have = held(campaign.events()).stored
            for how in ("read_back", "server_checksum"):
                own = [
                    entry
                    for entry, by in verified
                    if by == how and (entry["sha256"] in lost or _new(entry, have.get((entry["sha256"], table.url))))
                ]
                for at in range(0, len(own), FILES):
                    body: MediaStored = {"place": table.url, "checked": how, "files": own[at : at + FILES]}
                    campaign.log(Kind.MEDIA_STORED, body, anchor=now, who=who)
    except StateError as error:
        return str(error)
    return ""


def _new(entry: StoredFile, have: Copy | None) -> bool:
    """Whether the journal has no such copy yet, another version, or one that is locked for less long."""
    if have is None or (entry.get("until") or "") > (have.until or ""):
        return True
    return entry.get("version") != have.version
