"""A store that is away is not asked for every video, one that lacks a single object is; and a cache holds no ruins."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.config.media import MediaTable
from labctl.errors import StorageError
from labctl.messages.body_parts import FileEntry
from labctl.store.media import reading
from labctl.store.media.held import Copy, Held
from labctl.store.media.places import MediaStore, Object, gone
from labctl.store.media.reading import fetch_to

URL = "s3://videos/lab"
TABLE = MediaTable(url=URL)
ENTRY: FileEntry = {"file": "video/e1/wrist.mp4", "sha256": hashlib.sha256(b"a video").hexdigest()}
FOUND = Held(stored={(ENTRY["sha256"], URL): Copy(URL, 7, "read_back")})


class Store(MediaStore):
    where = URL

    def __init__(self, says: StorageError | None = None) -> None:
        self._says = says

    def find(self, sha256: str, version: str | None = None) -> Object | None:
        return Object(7)

    def read(self, sha256: str, version: str | None = None) -> Iterator[bytes]:
        if self._says is not None:
            raise self._says
        yield b"a video"


@pytest.fixture(autouse=True)
def away(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    monkeypatch.setattr(reading, "_away", found)
    return found


def test_what_one_file_was_refused_with_is_not_said_of_another(
    tmp_path: Path, away: dict[str, tuple[int, str]]
) -> None:
    with pytest.raises(StorageError, match=r"wrist\.mp4 could not be fetched: .* the server does not answer"):
        fetch_to(tmp_path / "x", ENTRY, FOUND, TABLE, store=Store(StorageError(f"{URL}: the server does not answer")))
    with pytest.raises(StorageError) as told:
        reading._refuse_while_away(URL)
    assert str(told.value) == f"{URL}: the server does not answer"


def test_a_store_without_one_object_or_a_full_disk_here_is_no_store_that_is_away(
    tmp_path: Path, away: dict[str, tuple[int, str]]
) -> None:
    with pytest.raises(StorageError, match="it has no object"):
        fetch_to(tmp_path / "x", ENTRY, FOUND, TABLE, store=Store(gone(URL, ENTRY["sha256"], None)))
    with pytest.raises(StorageError, match="no such file or directory"):
        fetch_to(tmp_path / "no folder/x", ENTRY, FOUND, TABLE, store=Store())
    assert away == {} and not list(tmp_path.iterdir())


def test_what_a_killed_process_left_half_fetched_makes_no_room_scarce_for_ever(tmp_path: Path) -> None:
    for name, age_s in (("old.mp4", 9000), (".a.mp4.7.part", 9000), (".b.mp4.8.part", 60), ("new.mp4", 0)):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1e9 - age_s, 1e9 - age_s))
    reading._make_room(tmp_path / "new.mp4", 300)
    assert {path.name for path in tmp_path.iterdir()} == {"old.mp4", ".b.mp4.8.part", "new.mp4"}
    reading._make_room(tmp_path / "new.mp4", 100)
    assert {path.name for path in tmp_path.iterdir()} == {".b.mp4.8.part", "new.mp4"}
