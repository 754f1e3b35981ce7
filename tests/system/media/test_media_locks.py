"""With lock_days a copy counts once the store says that it is locked so long; else the file stays here. The store is
a folder with locks of the test's own; object lock of a real server: test_media_bucket.py.
"""

from __future__ import annotations

from pathlib import Path

from support.media.campaigns import folder_store, media_of, open_lab, uploaded, videos
from support.runs.recordings import Recordings

from labctl.clock import MonotonicClock, days_later
from labctl.config.media import MediaTable
from labctl.core.events import Kind
from labctl.errors import StorageError
from labctl.store.journal import events_of
from labctl.store.media.folder_store import FolderStore
from labctl.store.media.places import Object, Say, nothing
from labctl.store.media.trimming import trim
from labctl.store.media.uploading import upload

DAYS = 3650


class Locking(FolderStore):
    """heeds: whether it locks what is put there; refuses: what it says of a lock that is asked for later."""

    def __init__(self, url: str, *, heeds: bool = True, refuses: str = "") -> None:
        super().__init__(MediaTable(url=url))
        self.until: dict[str, str] = {}
        self.heeds, self.refuses = heeds, refuses

    def find(self, sha256: str, version: str | None = None) -> Object | None:
        found = super().find(sha256, version)
        return None if found is None else Object(found.bytes, None, None, self.until.get(sha256))

    def put(self, path: Path, sha256: str, until: str | None, say: Say = nothing) -> Object:
        put = super().put(path, sha256, until, say)
        if until is not None and self.heeds:
            self.until[sha256] = until
        return put

    def lock(self, sha256: str, version: str | None, until: str) -> None:
        if self.refuses:
            raise StorageError(f"{self.where}: {self.refuses}")
        self.until[sha256] = until


def test_what_was_there_without_a_lock_is_locked_by_the_next_upload_and_may_go_here_then(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    before = uploaded(folder, table)
    number, here = len(media_of(folder).files), videos(folder)
    store, table = Locking(table.url), table.model_copy(update={"lock_days": DAYS})
    kept = trim(folder, store, table, 0, who="p01")
    assert videos(folder) == here and len(kept.broken) == len(here)
    assert all("does not say that its copy is locked" in line and line.endswith("; kept here") for line in kept.broken)
    done = upload(folder, store, table, who="p01")
    assert (done.sent, done.stored, done.broken) == (0, before.stored, [])
    assert len(store.until) == len({file.sha256 for file in media_of(folder).files})
    assert {copy.until for copy in media_of(folder).stored.values()} == set(store.until.values())
    entries = [event for event in events_of(folder) if event.kind == Kind.MEDIA_STORED]
    assert upload(folder, store, table, who="p01").stored == number, "and again there is nothing to say"
    assert len([event for event in events_of(folder) if event.kind == Kind.MEDIA_STORED]) == len(entries) == 2
    assert len(trim(folder, store, table, 0, who="p01").files) == len(here) and not videos(folder)
    assert upload(folder, store, table, who="p01").gone == []


def test_a_server_that_takes_files_and_no_lock_is_named_and_nothing_goes_here(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    table = table.model_copy(update={"lock_days": DAYS})
    store = Locking(table.url, heeds=False, refuses="it refuses this request")
    done = upload(folder, store, table, who="p01")
    number, here = len(media_of(folder).files), videos(folder)
    assert done.sent == len(done.broken) == number and done.stored == 0, "each is there, and none counts"
    assert "its copy is there and cannot be locked" in done.broken[0] and "refuses this request" in done.broken[0]
    assert trim(folder, store, table, 0, who="p01").kept == len(here) and videos(folder) == here


def test_a_lock_of_fewer_days_is_made_longer(recordings: Recordings, tmp_path: Path) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    store = Locking(table.url)
    few, many = (table.model_copy(update={"lock_days": days}) for days in (1, DAYS))
    assert not upload(folder, store, few, who="p01").broken
    assert not upload(folder, store, many, who="p01").broken
    soonest = min(str(copy.until) for copy in media_of(folder).stored.values())
    assert days_later(soonest, 0) > days_later(MonotonicClock().anchor().wall, DAYS - 1)
    assert trim(folder, store, many, 0, who="p01").files and not videos(folder)
