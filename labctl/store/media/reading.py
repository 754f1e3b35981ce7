"""Where to read a campaign's video from: its folder, or, where it lies in the media store alone, a copy in a cache that
is fetched when it is first wanted and compared with its digest each time.

May not: write into a campaign's folder unless asked to bring a file back, or give out a file that is not the one that
was sealed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.clock import SECOND, MonotonicClock
from labctl.errors import BrokenRecord, LabctlError, StorageError, Unreachable
from labctl.messages.body_parts import FileEntry
from labctl.store.atomic_files import file_errors, file_in_one_step
from labctl.store.footage import file_digest
from labctl.store.journal import events_of
from labctl.store.lab_folder import lab_settings, lab_with
from labctl.store.media.held import Held, held
from labctl.store.media.opening import open_store
from labctl.store.media.places import Gone, MediaStore
from labctl.user_cache import made_in_cache, user_cache

if TYPE_CHECKING:  # whoever looks at a campaign does not wait for the schemas
    from labctl.config.media import MediaTable

AWAY_NS = 60 * SECOND
PRIVATE = 0o600
CACHE = "media"
BROKEN_OFF_S = 3600.0  # since its last byte came a file is no longer being fetched


def cache_folder() -> Path:
    """Where fetched videos are kept, in what is this user's own."""
    return user_cache() / CACHE


def local_file(folder: Path, entry: FileEntry) -> Path:
    """A path at which a sealed file can be read: its own, or that of a copy in the cache. A file that is there is not
    looked at: whoever reads it has verified it.

    Raises BrokenRecord for one that is neither here nor said to be elsewhere, or of which the store gives other bytes,
    Unreachable for a store that is away or refuses.
    """
    own = (folder / entry["file"]).resolve()
    if own.is_file() or not own.is_relative_to(folder.resolve()):
        return own
    found = _held_of_a_lab(folder)
    if entry["sha256"] not in found.trimmed:
        stored = f"; it can be fetched: labctl media fetch {folder.name}" if found.copies(entry["sha256"]) else ""
        raise BrokenRecord(f"the video {entry['file']} is gone; see: labctl verify {folder.name}{stored}")
    cached = cache_folder() / (entry["sha256"] + own.suffix)
    if _is(cached, entry["sha256"]):
        with suppress(OSError):
            os.utime(cached)  # what was looked at last goes last
        return cached
    try:
        table = _table(folder, entry["file"])
        _refuse_while_away(table.url)
        with file_errors(str(cached.parent)):
            made_in_cache(CACHE)
        fetch_to(cached, entry, found, table)
    except StorageError as error:
        raise Unreachable(str(error)) from error
    _make_room(cached, round(table.cache_gb * 1e9))
    return cached


_away: dict[str, tuple[int, str]] = {}
"""A store's URL -> when it did not answer, and in what words: a report with a hundred videos does not wait for each."""


def _refuse_while_away(url: str) -> None:
    at_ns, why = _away.get(url, (0, ""))
    if why and MonotonicClock().now_ns() - at_ns < AWAY_NS:
        raise StorageError(why)


@contextmanager
def _noting_away(url: str) -> Generator[None, None, None]:
    """Remember a store that does not answer; one that says that it lacks an object does answer."""
    try:
        yield
    except Gone:
        raise
    except StorageError as error:
        _away[url] = (MonotonicClock().now_ns(), str(error))
        raise


def _held_of_a_lab(folder: Path) -> Held:
    """What a published folder says of a media store nobody believes: it has no lab."""
    return held(events_of(folder)) if lab_with(folder) is not None else Held()


def _table(folder: Path, file: str) -> MediaTable:
    table = lab_settings(folder).media
    if table is None:
        raise StorageError(f"{file} lies in a media store alone, and lab.toml names none; put [media] url back")
    return table


def fetch_to(path: Path, entry: FileEntry, found: Held, table: MediaTable, *, store: MediaStore | None = None) -> None:
    """Write a file as a store has it to `path`, in one step and only as it was sealed.

    The journalled version is what is asked for. Raises StorageError with what failed.
    """
    copy = found.stored.get((entry["sha256"], table.url))
    if copy is None:
        places = ", ".join(one.place for one in found.copies(entry["sha256"])) or "no media store"
        raise StorageError(
            f"{entry['file']}: {places} has it, and lab.toml names {table.url}; name that one in [media]"
        )
    with _noting_away(table.url):
        opened = store or open_store(table)
    try:
        _fetch(path, entry, opened, _blocks(opened, entry["sha256"], copy.version, table.url))
    except LabctlError as error:
        raise type(error)(f"{entry['file']} could not be fetched: {error}") from error
    finally:
        if store is None:
            opened.close()


def _blocks(store: MediaStore, sha256: str, version: str | None, url: str) -> Iterator[bytes]:
    with _noting_away(url):
        yield from store.read(sha256, version)


def _fetch(path: Path, entry: FileEntry, store: MediaStore, blocks: Iterable[bytes]) -> None:
    digest = hashlib.sha256()
    with file_in_one_step(path) as part:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        with os.fdopen(descriptor, "wb") as out:
            for block in blocks:
                out.write(block)
                digest.update(block)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != entry["sha256"]:
            raise BrokenRecord(
                f"{entry['file']}: {store.where} gives other bytes than those that were sealed; see: labctl media check"
            )


def _is(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with file_errors(str(path)):
        return file_digest(path) == sha256


def _make_room(newest: Path, most: int) -> None:
    """Remove what killed processes left half-fetched, and what was looked at longest ago until the cache is small
    enough, never the newest.
    """
    with suppress(OSError):
        now_s = newest.stat().st_mtime
        there = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in newest.parent.iterdir())
        size = sum(bytes_ for _, bytes_, _ in there)
        for at_s, bytes_, path in there:
            if (now_s - at_s > BROKEN_OFF_S) if path.suffix == ".part" else (path != newest and size > most):
                path.unlink(missing_ok=True)
                size -= bytes_
