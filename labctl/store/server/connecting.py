"""A connection to the lab's PostgreSQL server that answers within a time or is given up, and what its errors mean.

May not: know what an event or a chunk is, keep or print a password (libpq finds it), or be imported by a run process.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, LiteralString, TypeVar

from labctl.config.server import SCHEME
from labctl.errors import BrokenRecord, InputError, StateError, StorageError
from labctl.extras import wanted_for

if TYPE_CHECKING:
    from psycopg import Connection

Made = TypeVar("Made")
Value = str | int | bytes | None | list[str]
FORM = "labctl store 1"  # the comment of the schema; another form of the tables has another number
# SQLSTATEs of our own triggers: schema.py
NOT_NEXT, APPEND_ONLY, ARM_DEPENDENT = "LC001", "LC002", "LC003"
NOT_ALLOWED = "42501"
_QUOTED = re.compile(r"([\"'])[^\"']*\1(?: \([^)]*\))?")
_MEANINGS: dict[str, str] = {
    "28P01": "the password was refused; look at the password file ($PGPASSFILE) and its permissions (0600)",
    "28000": "this role may not log in from here; see pg_hba.conf and docs/postgresql.md",
    "3D000": "there is no such database; make it (createdb), then: labctl database init",
    "3F000": "this database is not set up; once: labctl database init",
    "42P01": "this database is not set up; once: labctl database init",
    NOT_ALLOWED: "this role may not do that; grant it labctl_writer or labctl_reader (docs/postgresql.md)",
    "53100": "the server's disk is full; nothing of this batch was written",
    "53300": "the server has no connection left; later again",
    "57P03": "the server is starting or stopping; later again",
    "25006": "this server is read-only (a standby?); name the primary",
    APPEND_ONLY: "the store is append-only",
    ARM_DEPENDENT: "what tells arms apart does not go to the server before unblinding",
}
_UNLIKE = "the server does not take what labctl asks; bring its tables up to date: labctl database init"
_REFUSED = "the server refuses that"


class NotAllowed(StorageError):
    """The server answers, and this login may not do that: another cell's campaign, or a right that was not granted."""


def place(url: str) -> str:
    """What to call a server in a message; a URL of `config.server.check_url` holds no password."""
    return url.partition("?")[0].removesuffix("/") if "@" in url else url


class Server:
    """One connection. Whatever is asked under `within` is answered within `timeout_s`, or the connection is shut.

    Raises StorageError for a server that is away, refuses or stops answering, InputError for a URL that names none,
    MissingExtra without psycopg.
    """

    def __init__(self, url: str, timeout_s: float, *, reading: bool = False, bare: bool = False) -> None:
        """reading: nothing can be written through it. bare: the tables are not there yet."""
        with wanted_for("a store on a PostgreSQL server"):
            import psycopg

        logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it has to say is in the error
        self.where, self._timeout_s = place(url), timeout_s
        settings = "-c timezone=UTC -c client_encoding=UTF8" + (" -c default_transaction_read_only=on" * reading)
        with server_errors(self.where), _address_errors(self.where):
            self._connection: Connection[tuple[Value, ...]] = psycopg.connect(
                "postgresql://" + url.removeprefix(SCHEME),
                autocommit=True,
                connect_timeout=max(2, round(timeout_s)),  # libpq's own least
                options=settings,
                application_name="labctl",
                tcp_user_timeout=round(1000 * timeout_s),
                keepalives_idle=max(1, round(timeout_s)),
                keepalives_interval=max(1, round(timeout_s / 3)),
            )
        if not bare:
            try:
                self._check_form()
            except BaseException:
                self.close()
                raise

    def _check_form(self) -> None:
        question = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'labctl'"
        found = self.rows(question, str)
        if not found:
            raise StateError(f"{self.where}: this database is not set up; once: labctl database init")
        if found[0] != FORM:
            raise StateError(f"{self.where}: its tables are {found[0]!r}, this labctl has {FORM!r}; use one version")

    @contextmanager
    def within(self) -> Generator[None, None, None]:
        """What is asked inside is answered within the time; a server that does not is left, and StorageError raised."""
        late = threading.Event()

        def leave() -> None:
            late.set()
            with (
                suppress(Exception),
                socket.fromfd(self._connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as own,
            ):
                own.shutdown(socket.SHUT_RDWR)  # whoever waits on it wakes; it may be closed already

        timer = threading.Timer(self._timeout_s, leave)
        timer.daemon = True
        timer.start()
        try:
            with server_errors(self.where):
                yield
        except StorageError:
            if late.is_set():
                raise StorageError(f"{self.where}: no answer within {self._timeout_s:g} s") from None
            raise
        finally:
            timer.cancel()

    def rows(self, question: LiteralString, make: Callable[..., Made], *values: Value) -> list[Made]:
        """What `make` makes of the columns of each row of a SELECT with %s for each value."""
        with self.within():
            return [make(*row) for row in self._connection.execute(question, values).fetchall()]

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """All that is written inside is committed when it ends well, and nothing otherwise; in time, as `within`."""
        with self.within(), self._connection.transaction():
            yield

    @contextmanager
    def snapshot(self) -> Generator[None, None, None]:
        """What is asked inside is all of one moment, whatever others add meanwhile; each answer comes in time."""
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        try:
            yield
        finally:
            with suppress(StorageError):  # of a connection that was lost there is nothing left to end
                self.run("ROLLBACK")

    def put(self, statement: LiteralString, rows: Iterable[Sequence[Value]]) -> None:
        """Carry out an INSERT for each row; inside a `transaction`."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def ask(self, question: LiteralString, *values: Value) -> tuple[Value, ...] | None:
        """The first row of an answer; inside a `transaction`."""
        cursor = self._connection.execute(question, values)
        return cursor.fetchone() if cursor.description else None

    def run(self, script: str) -> None:
        """Carry out several statements as one transaction."""
        with self.within():
            self._connection.execute(script.encode())

    def close(self) -> None:
        """Idempotent."""
        with suppress(Exception):
            self._connection.close()


@contextmanager
def server_errors(where: str) -> Generator[None, None, None]:
    """Turn what the server says into one line of labctl's own, whatever it says: what is copied after a verb wrote, or
    beside a run, ends neither.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        state, text = error.sqlstate, (str(error).strip().splitlines() or [type(error).__name__])[0]
        if state == NOT_NEXT:
            raise BrokenRecord(f"{where}: {text}; see docs/postgresql.md") from error
        if state in _MEANINGS:
            kind = NotAllowed if state == NOT_ALLOWED else StorageError
            raise kind(f"{where}: {_MEANINGS[state]} ({text})") from error
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            said = _QUOTED.sub("…", text)  # names of hosts and logins: `where` has them, and a bug's report hides that
            raise StorageError(f"{where}: {_away(text)} ({said})") from error
        if state is None:  # psycopg's own: nothing was asked
            raise
        raise StorageError(f"{where}: {_UNLIKE if state.startswith('42') else _REFUSED} ({text})") from error


@contextmanager
def _address_errors(where: str) -> Generator[None, None, None]:
    """Around connecting alone: what libpq, or the look-up of a host, cannot read as an address is the user's. What a
    server refuses may be a ProgrammingError too, with a state.
    """
    import psycopg

    try:
        yield
    except (psycopg.ProgrammingError, ValueError) as error:
        if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is not None:
            raise
        said = _QUOTED.sub("…", (str(error).strip().splitlines() or [type(error).__name__])[0])
        raise InputError(f"{where}: this address cannot be read ({said}); correct it in lab.toml, or --url") from error


def _away(text: str) -> str:
    """What to do when there is no connection; libpq gives no state for what fails before there is one."""
    lowered = text.lower()
    if "password" in lowered:
        return "no password that it takes; put it into a password file ($PGPASSFILE, 0600)"
    if "does not exist" in lowered:
        return "there is no such role or database; see docs/postgresql.md"
    return "the server does not answer; what was recorded is safe in the campaign's folder"
