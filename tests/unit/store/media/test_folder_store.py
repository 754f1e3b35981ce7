"""A media store in a folder takes a file once, whoever else uploads it at the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.config.media import MediaTable
from labctl.store.footage import file_digest
from labctl.store.media.folder_store import FolderStore
from labctl.store.media.places import object_name

pytest.importorskip("fsspec")


def test_a_file_that_another_process_finished_meanwhile_is_there_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "x.mp4").write_bytes(b"a video")
    sha256 = file_digest(tmp_path / "x.mp4")
    place = tmp_path / "store" / object_name(sha256)

    def another(done: int) -> None:
        place.with_name(f"{sha256}.part").replace(place)

    store = FolderStore(MediaTable(url=f"file://{tmp_path / 'store'}"))
    assert store.put(tmp_path / "x.mp4", sha256, None, another).bytes == len(b"a video")
    assert file_digest(place) == sha256 and [path.name for path in place.parent.iterdir()] == [sha256]
