"""Whoever reads a campaign's databases sees what a writer had committed, whoever starts to write meanwhile, and leaves
nothing behind.
"""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from labctl.store import database_backend
from labctl.store.database_backend import connect, database_file, sqlite_url

ROWS, PAGE = 300, "x" * 4000  # a row fills a page: what a checkpoint puts into the file shows


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database whose writer has left in order: no log lies beside it."""
    url = sqlite_url(tmp_path / "d.db")
    write(url, 0, mode="create")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]
    return url


def write(url: str, generation: int, mode: database_backend.Writes = "write") -> None:
    """A writer that begins, replaces every row, and leaves in order."""
    engine = connect(url, mode=mode, synchronous="OFF")
    with engine.connect() as writer, writer.begin():
        writer.exec_driver_sql("CREATE TABLE IF NOT EXISTS d (n INTEGER PRIMARY KEY, generation INTEGER, page TEXT)")
        for n in range(ROWS):
            writer.exec_driver_sql("INSERT OR REPLACE INTO d VALUES (?, ?, ?)", (n, generation, PAGE + str(generation)))
    engine.dispose()


@contextmanager
def reading(url: str) -> Iterator[sqlite3.Connection]:
    """A reader that sees one state of the database until the end of the block."""
    with closing(database_backend._open_reader(database_file(url))) as reader:
        reader.execute("BEGIN")
        yield reader


def rows(reader: sqlite3.Connection, below: int = ROWS) -> list[int]:
    found = reader.execute("SELECT generation, page FROM d WHERE n < ? ORDER BY n", (below,)).fetchall()
    assert all(page == PAGE + str(generation) for generation, page in found)
    return [generation for generation, _ in found]


def test_a_reader_that_began_before_a_writer_reads_one_state_to_the_end(url):
    """Issue 17.19: it took the file for one that nobody writes, held no lock, and read pages of two states."""
    with reading(url) as reader:
        assert rows(reader, below=1) == [0]
        write(url, 1)
        assert rows(reader) == [0] * ROWS
    with reading(url) as reader:
        assert rows(reader) == [1] * ROWS


def test_a_reader_leaves_the_folder_as_it_was(url, tmp_path):
    before = (tmp_path / "d.db").stat()
    for _ in range(2):
        with reading(url) as reader:
            assert rows(reader) == [0] * ROWS
    after = (tmp_path / "d.db").stat()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)


def test_a_reader_beside_another_reader_leaves_the_folder_as_it_was(url, tmp_path):
    with reading(url) as first:
        assert rows(first, below=1) == [0]
        with reading(url) as second:
            assert rows(second, below=1) == [0]
            first.close()
            assert rows(second) == [0] * ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]


def test_what_a_killed_writer_left_is_read_and_stays_as_it_is(url, tmp_path):
    """Its log is what a later writer, or whoever looks into the crash, goes on from."""
    killed = sqlite3.connect(tmp_path / "d.db", isolation_level=None)
    killed.execute("PRAGMA wal_autocheckpoint=0")
    killed.execute("UPDATE d SET generation = 7, page = ?", (PAGE + "7",))
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.glob("d.db*"):
        if not path.name.endswith("-shm"):
            (copy / path.name).write_bytes(path.read_bytes())
    killed.close()
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    with reading(sqlite_url(copy / "d.db")) as reader:
        assert rows(reader) == [7] * ROWS
    assert {name: (copy / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("left_before", ["the log is asked for", "the database is opened", "the first question"])
def test_a_writer_that_leaves_while_a_reader_opens_takes_its_log_along(url, tmp_path, monkeypatch, left_before):
    """CI of 2026-11-23: a report asked for the size of a log that another reader of the same campaign had just removed,
    and said that there is no journal.
    """
    writer = sqlite3.connect(tmp_path / "d.db", isolation_level=None)
    writer.execute("UPDATE d SET generation = 7, page = ?", (PAGE + "7",))
    log = tmp_path / "d.db-wal"
    stat, connecting = Path.stat, sqlite3.connect

    def asked(path: Path, **how: bool) -> os.stat_result:
        found = stat(path, **how)
        if path == log and left_before == "the log is asked for":
            writer.close()
        return found

    def connected(name: str, **how: object) -> sqlite3.Connection:
        if left_before == "the database is opened":
            writer.close()
        raw = connecting(name, **how)
        if left_before == "the first question":
            writer.close()
        return raw

    monkeypatch.setattr(Path, "stat", asked)
    monkeypatch.setattr(sqlite3, "connect", connected)
    with reading(url) as reader:
        assert rows(reader) == [7] * ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]


def test_a_reader_cannot_write(url):
    with reading(url) as reader:
        with pytest.raises(Exception, match="readonly"):
            reader.execute("DELETE FROM d")
        assert rows(reader) == [0] * ROWS


def test_a_full_disk_is_read_from(url, tmp_path):
    """A file that may not grow, for root too (setrlimit(2)), stands for a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with reading(url) as reader:
            found = rows(reader)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found == [0] * ROWS


@pytest.mark.parametrize("closed", ["d.db", "folder"])
def test_a_copy_that_may_not_be_written_is_read(url, tmp_path, monkeypatch, closed):
    """A published campaign on a read-only medium. Root may write everywhere, so the system is made to say no."""
    shut = tmp_path / "d.db" if closed == "d.db" else tmp_path
    ask = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != shut and ask(path, mode))
    with reading(url) as reader:
        assert rows(reader) == [0] * ROWS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]


def test_who_asks_a_thousand_questions_connects_once_sees_each_commit_and_leaves_no_log(url, tmp_path, monkeypatch):
    """Issue 18.28: connecting took a tenth of a report's time."""
    connected: list[Path] = []
    connects = database_backend._open_reader
    monkeypatch.setattr(database_backend, "_open_reader", lambda path: connected.append(path) or connects(path))
    reader = database_backend.Reader(url, held=True)
    question = "SELECT generation FROM d WHERE n >= :least"
    assert reader.rows(question, int, least=0) == [0] * ROWS
    write(url, 1)
    assert reader.rows(question, int, least=ROWS - 1) == [1]
    assert len(connected) == 1
    reader.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]
    assert reader.rows(question, int, least=ROWS - 1) == [1]
    reader.close()
