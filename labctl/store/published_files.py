"""SQLite files of a published folder: written anew from a campaign's databases, and looked at as a stranger's.

May not: know what is withheld and why, or open a file of a published folder otherwise than immutable.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from labctl.errors import BrokenRecord, StorageError
from labctl.store.atomic_files import file_errors
from labctl.store.database_backend import Reader, database_file, open_immutable, storage_errors
from labctl.store.ledger import SEALED_TRACES
from labctl.store.traces import sealed_url

STEPS = 1000  # instructions of SQLite's machine between two looks at how many are left
# Looks before a file is given up as one that never ends. For each kilobyte of it there is another: a row of 200 bytes
# takes 20 instructions.
LOOKS = 200_000
_HEADER = b"SQLite format 3\x00"
_SHORT, _LONG = "TEXT NOT NULL", "INTEGER NOT NULL"
_EVENT = {
    "campaign": _SHORT,
    "seq": _LONG,
    "kind": _SHORT,
    "at_ns": _LONG,
    "boot": _SHORT,
    "wall": _SHORT,
    "who": _SHORT,
    "trial": "TEXT",
    "episode": "TEXT",
    "body": _SHORT,
    "prev": _SHORT,
    "hash": _SHORT,
}
_STREAM = {"campaign": _SHORT, "episode": _SHORT, "name": _SHORT, "spec": _SHORT}
_CHUNK = {
    "campaign": _SHORT,
    "episode": _SHORT,
    "stream": _SHORT,
    "seq": _LONG,
    "t0_ns": _LONG,
    "t1_ns": _LONG,
    "n": _LONG,
    "sha256": _SHORT,
    "payload": "BLOB NOT NULL",
}
_KEYS = {"event": "campaign, seq", "stream": "campaign, episode, name", "chunk": "campaign, episode, stream, seq"}
JOURNAL = {"event": _EVENT}
TRACES = {"stream": _STREAM, "chunk": _CHUNK}
Value = str | int | bytes | None


def copy_journal(url: str, campaign: str, to: Path) -> None:
    """A campaign's events into a file of their own, as they stand. Raises StorageError."""
    asked = f"SELECT {', '.join(_EVENT)} FROM event WHERE campaign = :campaign ORDER BY seq"
    _write(to, JOURNAL, [("event", Reader(url).rows(asked, _row, campaign=campaign))])


def copy_traces(url: str, campaign: str, episodes: Sequence[str], folder: Path) -> list[Path]:
    """The streams of these episodes into traces.db of `folder`, and those that tell arms apart, where they lie in a
    database of their own, into the one of its seal; the files written. Raises StorageError.
    """
    beside, made = sealed_url(url), [folder / "traces.db"]
    _write(made[0], TRACES, _parts(url, campaign, episodes))
    if database_file(beside).is_file():
        made.append(folder / SEALED_TRACES)
        _write(made[1], TRACES, _parts(beside, campaign, episodes))
    return made


def _parts(url: str, campaign: str, episodes: Sequence[str]) -> Iterable[tuple[str, list[tuple[Value, ...]]]]:
    reader = Reader(url)
    for table, columns, order in (("stream", _STREAM, "name"), ("chunk", _CHUNK, "stream, seq")):
        asked = f"SELECT {', '.join(columns)} FROM {table} WHERE campaign = :campaign AND episode = :episode"
        for episode in episodes:
            yield table, reader.rows(f"{asked} ORDER BY {order}", _row, campaign=campaign, episode=episode)


def _row(*values: Value) -> tuple[Value, ...]:
    return values


def _write(path: Path, tables: dict[str, dict[str, str]], parts: Iterable[tuple[str, list[tuple[Value, ...]]]]) -> None:
    """One plain file: no log, no trigger, rows in the order given, so that the same rows give the same bytes."""
    with storage_errors(str(path)):
        raw = sqlite3.connect(path, isolation_level=None)
        try:
            raw.execute("PRAGMA journal_mode=OFF").close()
            raw.execute("PRAGMA synchronous=OFF").close()
            raw.execute("BEGIN")
            for name, columns in tables.items():
                said = ", ".join(f"{column} {kind}" for column, kind in columns.items())
                raw.execute(f"CREATE TABLE {name} ({said}, PRIMARY KEY ({_KEYS[name]}))")
            for name, rows in parts:
                marks = ", ".join("?" * len(tables[name]))
                raw.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            raw.execute("COMMIT")
        finally:
            raw.close()


def check_file(path: Path, tables: dict[str, dict[str, str]], called: str) -> None:
    """Refuse a SQLite file that is more than plain tables of these columns, or whose pages do not fit together; nothing
    of its schema is run.

    Raises BrokenRecord, StorageError.
    """
    with file_errors(called), path.open("rb") as file:
        start = file.read(len(_HEADER))
    if start != _HEADER:
        raise BrokenRecord(f"{called}: not a SQLite file; get the publication anew")
    raw = open_immutable(path)
    left = LOOKS + path.stat().st_size // 1000

    def step() -> int:
        nonlocal left
        left -= 1
        return left < 0

    raw.set_progress_handler(step, STEPS)
    try:
        _check_schema(raw, tables, called)
        found = raw.execute("PRAGMA quick_check(1)").fetchall()
        if found != [("ok",)]:
            raise BrokenRecord(f"{called}: its pages do not fit together ({str(found[0][0])[:200]!r})")
    except sqlite3.OperationalError as error:
        if left < 0:
            raise BrokenRecord(f"{called}: looking through it does not end; it is not read") from None
        raise StorageError(f"{called}: {error}") from error
    except (sqlite3.DatabaseError, OverflowError, UnicodeDecodeError) as error:
        raise BrokenRecord(f"{called}: not a sound SQLite file ({error}); get the publication anew") from None
    finally:
        raw.close()


def _check_schema(raw: sqlite3.Connection, tables: dict[str, dict[str, str]], called: str) -> None:
    allowed = f"{', '.join(tables)} as plain tables, with the indexes of their keys, are all it may hold"
    there: set[str] = set()
    for kind, name, table, sql in raw.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100"):
        if kind == "index" and sql is None and table in tables:
            continue
        if kind != "table" or name not in tables or not str(sql).startswith(f"CREATE TABLE {name} ("):
            raise BrokenRecord(f"{called}: it holds a {str(kind)[:20]} {str(name)[:60]!r}; {allowed}")
        there.add(name)
    for name, columns in tables.items():
        found = [(column, hidden) for _, column, *_, hidden in raw.execute(f"PRAGMA table_xinfo({name})")]
        if name not in there or found != [(column, 0) for column in columns]:
            raise BrokenRecord(f"{called}: its table {name} has not the columns {', '.join(columns)}; {allowed}")
