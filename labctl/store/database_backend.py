"""SQLite, where a campaign's folder keeps what is recorded: connecting, pragmas, error texts.

May not: know what an event or a chunk means. No other module opens a file of SQLite; the lab's server is
`labctl.store.server`.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from labctl.errors import Busy, StorageError
from labctl.store.atomic_files import file_errors, sync_file, sync_folder

if TYPE_CHECKING:  # its import takes longer than all that a verb such as `status` asks: see `Reader`
    from sqlalchemy import Connection, Engine, Table

BUSY_S = 2.0
OWNER_ONLY = 0o600
FILE_URL = "sqlite:///"
PUBLISHED = "published.json"  # the manifest of a published folder, in its root
Writes = Literal["create", "write"]
Mode = Writes | Literal["read"]
Synchronous = Literal["FULL", "NORMAL", "OFF"]
Made = TypeVar("Made")


def sqlite_url(path: Path) -> str:
    """The database URL of a SQLite file."""
    return f"{FILE_URL}{path}"


def database_file(url: str) -> Path:
    """The file behind a URL. Raises StorageError for one without a file: a campaign's records lie in its folder."""
    named = url.removeprefix(FILE_URL)
    if named == url or named in ("", ":memory:"):
        raise StorageError(f"{url.partition(':')[0]} is no file: a campaign keeps its records in files of its folder")
    return Path(named)


def connect(url: str, *, mode: Writes, synchronous: Synchronous) -> Engine:
    """An engine whose connections write; "write" never creates a database.

    synchronous (SQLite, write-ahead log): FULL survives loss of power after every commit; NORMAL survives the death of
    any process but may lose the last commits on loss of power; OFF leaves it to the operating system.
    A transaction takes the write lock when it begins and waits at most BUSY_S for it.

    Raises StorageError when the file is missing ("write").
    """
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    path = database_file(url)
    if mode == "write":
        _refuse_missing(path)
    elif not path.exists():
        with file_errors(str(path)):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, OWNER_ONLY))  # SQLite gives its log the same permissions
    engine = create_engine(
        "sqlite+pysqlite://", creator=lambda: _open_sqlite(path, mode, synchronous), poolclass=NullPool
    )
    event.listen(engine, "begin", _begin)
    return engine


def _refuse_missing(path: Path) -> None:
    if not path.is_file():
        raise StorageError(f"{path}: no such database; is this the folder of a campaign?")


class Reader:
    """Runs SELECT statements, with a connection for each. It uses sqlite3 directly: importing SQLAlchemy takes longer
    than all that `labctl status` reads. Several threads may use one.
    """

    def __init__(self, url: str, *, held: bool = False) -> None:
        """held: keep connections open between statements until `close`, for thousands of them; a writer that closes
        meanwhile leaves its write-ahead log to this reader. Raises StorageError when the file is missing.
        """
        self._file, self._held = database_file(url), held
        self._idle: list[sqlite3.Connection] = []  # as many as ever asked at once
        _refuse_missing(self._file)

    def rows(self, question: str, make: Callable[..., Made], **values: str | int) -> list[Made]:
        """`make` of the columns of each row of a SELECT that has `:name` for each value. Raises StorageError, and what
        `make` raises.
        """
        with storage_errors(str(self._file)):
            try:
                raw = self._idle.pop()
            except IndexError:
                raw = _open_reader(self._file)
            try:
                with uncollected():  # one question, one state of the database; a row goes when it was made into one
                    found = [make(*row) for row in raw.execute(question, values)]
            except BaseException:
                raw.close()
                raise
            if self._held:
                self._idle.append(raw)
            else:
                raw.close()
        return found

    def close(self) -> None:
        """Close the held connections. Idempotent; the next statement connects again."""
        while self._idle:
            self._idle.pop().close()


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """Pause the garbage collector while many rows are made: it would visit all of them again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def insert_rows(
    url: str, table: str, columns: Sequence[str], rows: Iterable[Sequence[str | int | bytes | None]]
) -> None:
    """Write rows as they are into a table that is there, all or none, on the disk. Raises StorageError."""
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    path = database_file(url)
    with storage_errors(str(path)):
        raw = _open_sqlite(path, "write", "FULL")
        try:
            raw.execute("BEGIN IMMEDIATE")
            raw.executemany(statement, rows)
            raw.execute("COMMIT")
        finally:
            raw.close()


def _open_sqlite(path: Path, mode: Writes, synchronous: Synchronous) -> sqlite3.Connection:
    first = (f"PRAGMA synchronous={synchronous}", "PRAGMA journal_mode=WAL")
    return _opened(path, {"create": "mode=rwc", "write": "mode=rw"}[mode], *first)


def _open_reader(path: Path) -> sqlite3.Connection:
    """A reading connection that holds SQLite's locks, so that a writer that begins meanwhile leaves it the state that
    it reads. A file of a published folder is opened immutable, and its schema is not trusted: `store.published_files`.

    Without a write-ahead log the connection is opened for writing, with statements that write refused: it creates locks
    and a log and removes them again, where a read-only connection would leave an empty log behind. A log with content,
    of a writer that runs or was killed, stays as it is.
    """
    if is_published(path):
        return open_immutable(path)
    if log_size(path):
        try:
            reader = _opened(path, "mode=ro", _LOOK)  # from here on its locks keep the log where it is
        except sqlite3.OperationalError:
            if log_size(path):
                raise
        else:
            if log_size(path):
                return reader
            reader.close()  # the last of its writers left meanwhile, in order, and took the log along
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        try:
            return _opened(path, "mode=rw", "PRAGMA query_only=1", _LOOK)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
                raise
    elif _log_of(path).exists():
        return _opened(path, "mode=ro")
    return _opened(path, "immutable=1")  # here nobody can begin to write either


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def log_size(path: Path) -> int:
    """Bytes of a database's write-ahead log, 0 without one; asked once, for whoever leaves last takes it away at any
    moment.
    """
    try:
        return _log_of(path).stat().st_size
    except FileNotFoundError:
        return 0


def is_published(path: Path) -> bool:
    """Whether a file lies in a published folder, at most as deep as a campaign's sealed traces do."""
    return any((above / PUBLISHED).is_file() for above in path.absolute().parents[:4])


def open_immutable(path: Path) -> sqlite3.Connection:
    """A connection to a file that nobody writes and that anybody may have made: read-only, no lock, no log, nothing of
    its schema trusted, no other file attached, no value longer than LONGEST.
    """
    raw = _opened(path, "mode=ro&immutable=1", "PRAGMA trusted_schema=0", "PRAGMA query_only=1", "PRAGMA mmap_size=0")
    for limit, value in _LIMITS:
        raw.setlimit(limit, value)
    return raw


LONGEST = 1 << 28  # bytes of a value: a chunk of a trace has no more
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, LONGEST),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_COLUMN, 100),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 20),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 3),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 25_000),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
)
_LOOK = "SELECT 1 FROM sqlite_master LIMIT 1"
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def _opened(path: Path, flags: str, *first: str) -> sqlite3.Connection:
    """A connection on which the first statements were carried out."""
    uri = f"{path.absolute().as_uri()}?{flags}"
    raw = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        for statement in first:
            raw.execute(statement).close()
    except BaseException:
        raw.close()
        raise
    return raw


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


class Database:
    """One file of SQLite. A writer keeps one connection, a reader connects for every question."""

    def __init__(
        self,
        url: str,
        mode: Mode,
        tables: Callable[[], Sequence[Table]],
        *,
        synchronous: Synchronous,
        guards: Sequence[str] = (),
        held: bool = False,
    ) -> None:
        """tables: called for a writer alone; "create" makes those that are not there, then executes `guards`. held: as
        `Reader` has it. Raises StorageError.
        """
        self.where, self._url = str(database_file(url)), url
        self._reader = Reader(url, held=held) if mode == "read" else None
        self._engine: Engine | None = None
        self._writer: Connection | None = None
        if mode == "read":
            return
        self._engine = connect(url, mode=mode, synchronous=synchronous)
        known = tables()  # now, not in the first second of an episode
        with storage_errors(self.where):
            if mode == "create":
                with self._engine.begin() as connection:
                    for table in known:
                        table.create(connection, checkfirst=True)
                    for statement in guards:
                        connection.exec_driver_sql(statement)
            self._writer = self._engine.connect()

    def rows(self, question: str, make: Callable[..., Made], **values: str | int) -> list[Made]:
        """As `Reader.rows`."""
        if self._writer is None:
            return (self._reader or Reader(self._url)).rows(question, make, **values)
        from sqlalchemy import text

        with storage_errors(self.where), self._writer.begin():
            found = self._writer.execute(text(question), values).all()
        return [make(*row) for row in found]

    @contextmanager
    def transaction(self) -> Generator[Connection, None, None]:
        """What is written inside is committed when the block ends well, and nothing otherwise. Raises StorageError."""
        if self._writer is None:
            raise StorageError(f"{self.where}: it was opened for reading, or is closed")
        with storage_errors(self.where), self._writer.begin():
            yield self._writer

    def sync(self) -> None:
        """Have every commit on the disk, whatever the writer's `synchronous`.

        The write-ahead log is forced to disk, and then what of it no reader needs is put into the database.
        """
        if self._writer is None:
            return
        path = database_file(self._url)
        with storage_errors(self.where):
            if _log_of(path).is_file():
                sync_file(_log_of(path))  # SQLite holds no lock on this one that opening and closing it would lose
            sync_folder(path.parent)
            raw = self._writer.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)
            raw.execute("PRAGMA wal_checkpoint(PASSIVE)").close()  # not in a transaction, as SQLAlchemy would begin one

    def close(self) -> None:
        """Give the file back. Idempotent; asked again, it connects for each question."""
        if self._reader is not None:
            self._reader.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._engine is not None:
            self._engine.dispose()


@contextmanager
def storage_errors(where: str) -> Generator[None, None, None]:
    """Turn what a database or file system says about itself into one StorageError line. Bugs in SQL pass through."""
    try:
        with file_errors(where):
            yield
    except UnicodeDecodeError as error:  # of what SQLite says: it quotes the file
        raise StorageError(f"{where}: the database file is damaged; restore it from a copy ({error.reason})") from error
    except Exception as error:
        if not isinstance(error, (sqlite3.DatabaseError, *_raised_by_sqlalchemy())):
            raise
        text = " ".join(str(getattr(error, "orig", None) or error).split())[:MOST_SAID]
        remedy = _remedy(text)
        if remedy is None:
            raise
        kind = Busy if "is locked" in text.lower() else StorageError
        raise kind(f"{where}: {remedy} ({text})") from error


def _raised_by_sqlalchemy() -> tuple[type[Exception], ...]:
    """What SQLAlchemy raises; nothing while nobody has imported it."""
    if "sqlalchemy" not in sys.modules:
        return ()
    from sqlalchemy.exc import DatabaseError, InterfaceError

    return DatabaseError, InterfaceError


MOST_SAID = 200  # characters of what a database says: a damaged one quotes what it could not read
_REMEDIES = (
    ("is locked", "another process holds the database; end it, or wait, then try again"),
    ("database or disk is full", "the disk is full; nothing was written; free some space and try again"),
    ("disk i/o error", "the disk does not answer; check it before going on"),
    ("file is not a database", "this file is not a labctl database, or it is damaged; restore it from a copy"),
    ("malformed", "the database file is damaged; restore it from a copy"),
    ("unsupported file format", "this file is not a labctl database, or it is damaged; restore it from a copy"),
    ("could not decode to utf-8", "the database file is damaged; restore it from a copy"),
    ("no such column", "this database has not the columns of a labctl campaign, or it is damaged"),
    ("unable to open database file", "the database cannot be opened; check the folder and its permissions"),
    ("readonly database", "the database may not be written; check the permissions of its folder"),
    ("no such table", "this database holds no labctl campaign"),
)


def _remedy(text: str) -> str | None:
    lowered = text.lower()
    return next((remedy for words, remedy in _REMEDIES if words in lowered), None)


def delete_rows(path: Path, statement: str, values: Sequence[Sequence[str]]) -> None:
    """Carry out a DELETE for each of `values` in a copy that nobody else has open. Raises StorageError."""
    with storage_errors(str(path)), closing(_opened(path, "mode=rw")) as raw:
        raw.executemany(statement, values)


def copy_database(path: Path, to: Path) -> None:
    """Copy a SQLite database into a file that is not there yet, as of one moment, whoever writes to it meanwhile.

    Raises StorageError.
    """
    with storage_errors(str(path)):
        source = _open_reader(path)
        try:
            copy = _opened(to, "mode=rwc", "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF")
            try:
                source.backup(copy)
            finally:
                copy.close()
        finally:
            source.close()
