"""Where each of a campaign's media files is: here, in the store, both, or gone; asked of the journal alone, or of the
store too.

May not: change anything, or call a copy verified that was not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from labctl.core.events import Event
from labctl.errors import BrokenRecord
from labctl.store.journal import events_of
from labctl.store.lab_folder import lab_with
from labctl.store.media.held import Copy, Held, MediaFile, held
from labctl.store.media.places import MediaStore, check_object
from labctl.store.media.uploading import events_that_hold

if TYPE_CHECKING:  # whoever looks at a campaign does not wait for the schemas
    from labctl.config.media import MediaTable

Where = Literal["both", "here", "store", "gone"]
IN_WORDS: dict[Where, str] = {
    "both": "here and in a media store",
    "here": "here alone",
    "store": "in a media store alone",
    "gone": "gone",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Of one file: where it is, by the folder and the journal; its newest journalled copy; waits: it may not leave
    yet.
    """

    file: MediaFile
    where: Where
    copy: Copy | None
    waits: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What a store says of its copies. checked: of how many files the bytes were compared; problems: which do not
    hold; elsewhere: how many files have their copies in other stores alone, which were not asked.
    """

    campaign: str
    place: str
    checked: int
    problems: Sequence[str]
    elsewhere: int = 0


def places(folder: Path, found: Held, table: MediaTable | None) -> list[Place]:
    """Every file of a campaign."""
    after = table.after if table else "recording"
    rows: list[Place] = []
    for file in found.files:
        here, copies = (folder / file.file).is_file(), found.copies(file.sha256)
        where: Where = ("both" if copies else "here") if here else ("store" if copies else "gone")
        rows.append(Place(file, where, copies[-1] if copies else None, not copies and not found.may_leave(file, after)))
    return rows


def summary(rows: Sequence[Place]) -> str:
    """How many are where: "12 files here and in a media store, 3 in a media store alone"."""
    counted = Counter(row.where for row in rows)
    return ", ".join(f"{counted[where]} {words}" for where, words in IN_WORDS.items() if counted[where])


def ask(folder: Path, store: MediaStore, table: MediaTable, say: Callable[[str], None] = lambda line: None) -> Asked:
    """Compare each journalled copy in a store with its digest. Raises StorageError, BrokenRecord for the chain."""
    found = held(events_that_hold(folder))
    copies = [(file, found.stored[file.sha256, table.url]) for file in found.files
              if (file.sha256, table.url) in found.stored]  # fmt: skip
    problems: list[str] = []
    for number, (file, copy) in enumerate(copies, 1):
        say(f"{number}/{len(copies)} {file.file}")
        path = folder / file.file
        version = f" (version {copy.version})" if copy.version else ""
        kept = store.find(file.sha256, copy.version)
        if kept is None:
            problems.append(f"{file.file}: {store.where} has its copy no more{version}")
            continue
        try:
            check_object(store, table, path if path.is_file() else None, file.sha256, kept)
        except BrokenRecord:
            problems.append(
                f"{file.file}: its copy in {store.where} has other bytes than those that were sealed{version}"
            )
    stored = {digest for digest, _ in found.stored}
    elsewhere = sum(file.sha256 in stored for file in found.files) - len(copies)
    return Asked(folder.name, table.url, len(copies), problems, elsewhere)


def media_of(folder: Path, events: Sequence[Event]) -> tuple[frozenset[str], list[str]]:
    """For whoever verifies: digests of files that a store has and that were removed here, and what is to be said of
    them. A published folder has no lab, and what is missing there is for its manifest to name.
    """
    if lab_with(folder) is None:
        return frozenset(), []
    found = held(events)
    rows = places(folder, found, None) if found.stored else []
    if not rows:
        return frozenset(), []
    unread = sum(row.where == "store" and row.file.sha256 in found.trimmed for row in rows)
    also = "; what a store has was not read now: labctl media check" if unread else ""
    return found.trimmed, [f"of {len(rows)} media files {summary(rows)}{also}"]


def bytes_elsewhere(folder: Path, known: Sequence[Event] = ()) -> int:
    """How large the videos are that were removed here. known: the journal, where whoever asks has read it."""
    found = held(known or events_of(folder))
    sizes = {digest: copy.bytes for (digest, _), copy in found.stored.items() if digest in found.trimmed}
    return sum(sizes.get(file.sha256, 0) for file in found.files if not (folder / file.file).is_file())
