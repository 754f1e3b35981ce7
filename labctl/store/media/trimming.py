"""Removes local copies of videos that the media store has, by a rule, each after its copy was verified once more; the
journal says so before a file goes. And brings them back.

May not: remove a file whose copy does not hold now, one of a campaign that is being run, or anything in a store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.clock import MonotonicClock, days_later
from labctl.core.events import Kind
from labctl.errors import BrokenRecord, StateError
from labctl.messages.media import MediaTrimmed, TrimmedFile
from labctl.plain import count
from labctl.store.atomic_files import file_errors, sync_folder
from labctl.store.campaign import writing
from labctl.store.footage import file_digest
from labctl.store.media.held import Held, MediaFile, held
from labctl.store.media.places import MediaStore, check_object, locked, unlocked
from labctl.store.media.reading import fetch_to
from labctl.store.media.uploading import FILES, events_that_hold

if TYPE_CHECKING:  # whoever looks at a campaign does not wait for the schemas
    from labctl.config.media import MediaTable

SETTLED = (Kind.CAMPAIGN_FROZEN, Kind.CAMPAIGN_UNBLINDED)
Say = Callable[[str], None]


@dataclass(slots=True)
class Trimmed:
    """What a trim did. files: removed here; bytes; kept: of how many files no verified copy is journalled yet; broken:
    what was kept because its copy, or the file, does not hold now.
    """

    campaign: str
    place: str
    files: list[str] = field(default_factory=list[str])
    bytes: int = 0
    kept: int = 0
    broken: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        kept = f"; {count(self.kept, 'file')} kept that {self.place} has no verified copy of" if self.kept else ""
        return f"{count(len(self.files), 'file')} removed here ({self.bytes / 1e6:.1f} MB){kept}"


def due(folder: Path, found: Held, keep_days: float, wall: str, *, unsettled: bool = False) -> list[MediaFile]:
    """Files that are here and that the rule lets go: sealed so long ago, of a campaign that is frozen or unblinded.

    Raises StateError for a campaign that is not, unless `unsettled`: whoever reviews it needs its videos.
    """
    if not unsettled and not any(kind in found.reached for kind in SETTLED):
        raise StateError(
            f"campaign {folder.name} is neither frozen nor unblinded: its videos are wanted for review; "
            "--open removes them here all the same"
        )
    old = [file for file in found.files if file.bulky and days_later(file.at, keep_days) <= days_later(wall, 0)]
    return [file for file in old if (folder / file.file).is_file()]


def trim(
    folder: Path,
    store: MediaStore,
    table: MediaTable,
    keep_days: float,
    *,
    who: str,
    unsettled: bool = False,
    dry: bool = False,
    say: Say = lambda line: None,
) -> Trimmed:
    """Remove what is due. dry: say what would go, and remove nothing.

    Raises StateError for a campaign that is in use or not settled, BrokenRecord for a chain that does not hold,
    StorageError for a store that is away: what was verified until then is kept here too.
    """
    rule = f"older than {keep_days:g} days" + ("" if not unsettled else ", whatever its phase")
    found = held(events_that_hold(folder))
    files = due(folder, found, keep_days, MonotonicClock().anchor().wall, unsettled=unsettled)
    done = Trimmed(folder.name, table.url)
    go: list[TrimmedFile] = []
    for number, file in enumerate(files, 1):
        say(f"{number}/{len(files)} {file.file}")
        try:
            entry = _verified(folder, file, found, store, table)
        except BrokenRecord as error:
            done.broken.append(str(error))
            continue
        if entry is None:
            done.kept += 1
        else:
            go.append(entry)
    if go and not dry:
        with writing(folder, "media trim", None) as (campaign, now):
            for at in range(0, len(go), FILES):
                body: MediaTrimmed = {"place": table.url, "rule": rule, "files": go[at : at + FILES]}
                campaign.log(Kind.MEDIA_TRIMMED, body, anchor=now, who=who)
            _remove(folder, go)
    done.files = [entry["file"] for entry in go]
    done.bytes = sum(entry["bytes"] for entry in go)
    return done


def _remove(folder: Path, files: Sequence[TrimmedFile]) -> None:
    for entry in files:
        path = folder / entry["file"]
        with file_errors(str(path)):
            path.unlink(missing_ok=True)
    for place in {(folder / entry["file"]).parent for entry in files}:
        with file_errors(str(place)):
            sync_folder(place)


def _verified(folder: Path, file: MediaFile, found: Held, store: MediaStore, table: MediaTable) -> TrimmedFile | None:
    """The entry of a file whose copy holds now; None where the journal has none. Raises BrokenRecord, StorageError."""
    copy = found.stored.get((file.sha256, table.url))
    if copy is None:
        return None
    path = folder / file.file
    with file_errors(str(path)):
        if file_digest(path) != file.sha256:
            raise BrokenRecord(f"{file.file}: the file here is not the one that was sealed; nothing was removed")
    kept = store.find(file.sha256, copy.version)
    if kept is None:
        raise BrokenRecord(f"{file.file}: {store.where} has its copy no more; kept here")
    if not locked(kept.until, file.at, table.lock_days):
        raise BrokenRecord(f"{unlocked(store.where, file.file)}; kept here")
    try:
        check_object(store, table, path, file.sha256, kept)
    except BrokenRecord as error:
        raise BrokenRecord(f"{file.file}: {error}; kept here") from error
    entry: TrimmedFile = {"file": file.file, "sha256": file.sha256, "bytes": kept.bytes}
    if kept.version is not None:
        entry["version"] = kept.version
    return entry


def bring_back(
    folder: Path,
    store: MediaStore,
    table: MediaTable,
    episodes: Collection[str] = (),
    say: Say = lambda line: None,
) -> list[str]:
    """Fetch files that are not here to where they were, of these episodes or of all. Raises as `fetch_to`."""
    found = held(events_that_hold(folder))
    missing = [
        file
        for file in found.files
        if (not episodes or file.episode in episodes)
        and not (folder / file.file).is_file()
        and found.copies(file.sha256)
    ]
    for number, file in enumerate(missing, 1):
        say(f"{number}/{len(missing)} {file.file}")
        path = folder / file.file
        with file_errors(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
        fetch_to(path, {"file": file.file, "sha256": file.sha256}, found, table, store=store)
        path.chmod(0o644)
    return [file.file for file in missing]
