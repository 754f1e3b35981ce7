"""Campaigns with videos for tests of a media store: recorded once, copied, and a lab.toml that names the store.

May not: be used by a test that needs a run in real time.
"""

from __future__ import annotations

from pathlib import Path

from labctl.config.media import MediaTable
from labctl.store.journal import events_of
from labctl.store.lab_folder import lab_settings
from labctl.store.media.held import Held, held
from labctl.store.media.opening import open_store
from labctl.store.media.places import MediaStore
from labctl.store.media.uploading import Uploaded, upload
from support.runs.campaigns import recorded_with_cameras, unblinded_copy
from support.runs.recordings import Recordings, copied


def blind_lab(recordings: Recordings, lab: Path) -> Path:
    """The folder of a recorded campaign in a lab to write to."""
    original = recordings.of(recorded_with_cameras)
    return copied(original.parent.parent, lab) / "campaigns" / original.name


def open_lab(recordings: Recordings, lab: Path) -> Path:
    """The same, unblinded."""
    original = recordings.of(unblinded_copy, blinded=str(recordings.of(recorded_with_cameras)))
    return copied(original.parent.parent, lab) / "campaigns" / original.name


def name_store(folder: Path, url: str, *lines: str) -> MediaTable:
    """Have the lab's lab.toml name a media store."""
    (folder.parent.parent / "lab.toml").write_text("\n".join(["[media]", f'url = "{url}"', *lines, ""]))
    table = lab_settings(folder).media
    assert table is not None
    return table


def folder_store(folder: Path, place: Path, *lines: str) -> tuple[MediaTable, MediaStore]:
    """A store in a folder beside the lab."""
    place.mkdir(exist_ok=True)
    table = name_store(folder, f"file://{place}", *lines)
    return table, open_store(table)


def uploaded(folder: Path, table: MediaTable) -> Uploaded:
    """What an upload of all that is missing did."""
    store = open_store(table)
    try:
        return upload(folder, store, table, who="p01")
    finally:
        store.close()


def media_of(folder: Path) -> Held:
    """What its journal says of a campaign's media."""
    return held(events_of(folder))


def videos(folder: Path) -> list[Path]:
    """The video files that lie in a campaign's folder."""
    return sorted((folder / "video").rglob("*.mp4"))
