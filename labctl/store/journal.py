"""The journal: a campaign's append-only, hash-chained list of events, committed before the act they announce.

May not: read a clock, decide what an event means, or know how a database is opened (that is `database_backend`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.clock import Anchor
from labctl.core.events import GENESIS, Event, canonical, event_hash
from labctl.errors import BrokenRecord, InputError, StateError, StorageError
from labctl.store import database_backend
from labctl.store.problem import Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Insert, Table
    from sqlalchemy.exc import DatabaseError

    from labctl.bus import Body


class DuplicateCommand(StateError):
    """A command id was used before: the command has been carried out already."""


@cache
def _tables() -> tuple[Table, Table]:
    """Events and commands, for whoever writes: only that takes SQLAlchemy."""
    from sqlalchemy import BigInteger, Column, Text
    from sqlmodel import Field, SQLModel

    class EventRow(SQLModel, table=True):
        """One event; `body` is its canonical JSON text."""

        __tablename__ = "event"  # pyright: ignore[reportAssignmentType]
        campaign: str = Field(primary_key=True)
        seq: int = Field(primary_key=True, sa_type=BigInteger)
        kind: str
        at_ns: int = Field(sa_type=BigInteger)
        boot: str
        wall: str
        who: str
        trial: str | None = None
        episode: str | None = None
        body: str = Field(sa_column=Column(Text, nullable=False))
        prev: str
        hash: str

    class CommandRow(SQLModel, table=True):
        """One accepted command and the event it led to."""

        __tablename__ = "command"  # pyright: ignore[reportAssignmentType]
        campaign: str = Field(primary_key=True)
        command_id: str = Field(primary_key=True)
        seq: int = Field(sa_type=BigInteger)

    return EventRow.metadata.tables["event"], CommandRow.metadata.tables["command"]


@cache
def _inserts() -> tuple[Insert, Insert]:
    from sqlalchemy import insert

    events, commands = _tables()
    return insert(events), insert(commands)


def campaigns_in(url: str) -> list[str]:
    """Names of the campaigns whose journals a database holds, sorted. Raises StorageError."""
    reader = database_backend.Reader(url)
    return sorted(reader.rows("SELECT DISTINCT campaign FROM event", str))


def _head(seq: int, own: str) -> tuple[int, str]:
    return seq, own


_DONE = "SELECT seq FROM command WHERE campaign = :campaign AND command_id = :command"
NOT_NEXT = "append-only: not the next entry of the chain"
# A BEFORE INSERT trigger runs before OR REPLACE deletes the row it would replace: it is the one that stops replacing.
_GUARDS: Sequence[str] = (
    f"""CREATE TRIGGER IF NOT EXISTS event_chain BEFORE INSERT ON event BEGIN
  SELECT RAISE(ABORT, '{NOT_NEXT}') WHERE NEW.seq <> 1 + coalesce(
    (SELECT max(seq) FROM event WHERE campaign = NEW.campaign), 0);
  SELECT RAISE(ABORT, '{NOT_NEXT}') WHERE NEW.seq > 1 AND NEW.prev <> (
    SELECT hash FROM event WHERE campaign = NEW.campaign AND seq = NEW.seq - 1);
END""",
    """CREATE TRIGGER IF NOT EXISTS command_once BEFORE INSERT ON command
WHEN EXISTS (SELECT 1 FROM command WHERE campaign = NEW.campaign AND command_id = NEW.command_id)
BEGIN SELECT RAISE(ABORT, 'append-only: a command id is used once'); END""",
    *(
        f"""CREATE TRIGGER IF NOT EXISTS {table}_no_{verb.lower()} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'append-only: {verb} of {table} refused'); END"""
        for table in ("event", "command")
        for verb in ("UPDATE", "DELETE")
    ),
)
_EVENTS = (
    "SELECT seq, kind, at_ns, boot, wall, who, trial, episode, body, prev, hash FROM event "
    "WHERE campaign = :campaign AND seq > :after ORDER BY seq LIMIT :most"
)
_EVERY = -1  # of a LIMIT of SQLite
_LAST = "SELECT seq, hash FROM event WHERE campaign = :campaign ORDER BY seq DESC LIMIT 1"


class Journal:
    """One campaign's events. A writer keeps one connection and the chain's head; a reader connects anew to read."""

    def __init__(self, url: str, campaign: str, mode: database_backend.Mode, *, durable: bool) -> None:
        """Use `create` or `open`."""
        synchronous: database_backend.Synchronous = "FULL" if durable else "OFF"
        self._database = database_backend.Database(url, mode, _tables, synchronous=synchronous, guards=_GUARDS)
        self.campaign, self._where = campaign, self._database.where
        self._writes = mode != "read"
        try:
            self._head = self._last()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, url: str, campaign: str, *, durable: bool = True) -> Journal:
        """A new, empty journal. Raises StorageError when the campaign has entries already or nothing can be written."""
        journal = cls(url, campaign, "create", durable=durable)
        if journal._head[0]:
            journal.close()
            raise StorageError(f"{journal._where}: campaign {campaign!r} has a journal already")
        return journal

    @classmethod
    def open(cls, url: str, campaign: str, readonly: bool = False, *, durable: bool = True) -> Journal:
        """An existing journal. Readers work while a writer is active and never create a file.

        Raises StorageError when it is missing, damaged, locked, or holds nothing of this campaign.
        """
        journal = cls(url, campaign, "read" if readonly else "write", durable=durable)
        if not journal._head[0]:
            journal.close()
            raise StorageError(f"{journal._where}: no entries of campaign {campaign!r}; was it opened?")
        return journal

    def append(
        self,
        kind: str,
        *,
        anchor: Anchor,
        who: str,
        trial: str | None = None,
        episode: str | None = None,
        body: Body | None = None,
        command_id: str | None = None,
    ) -> Event:
        """Commit one event and return it, with its body as JSON gives it back (tuples are lists, enums are strings).

        Raises DuplicateCommand for a repeated command id, StorageError when the database refuses (another writer, a
        lock, a full disk; nothing is written then), ValueError for a body with NaN.
        """
        if not self._writes:
            raise StorageError(f"{self._where}: this journal was opened for reading, or is closed")
        text = canonical(dict(body or {})).decode()
        seq, prev = self._head
        event = Event(
            seq=seq + 1,
            kind=str(kind),
            at_ns=anchor.mono_ns,
            boot=anchor.boot,
            wall=anchor.wall,
            who=who,
            trial=trial,
            episode=episode,
            body=json.loads(text),
            prev=prev,
        )
        event = replace(event, hash=event_hash(event))
        row = {
            "campaign": self.campaign,
            "seq": event.seq,
            "kind": event.kind,
            "at_ns": event.at_ns,
            "boot": event.boot,
            "wall": event.wall,
            "who": who,
            "trial": trial,
            "episode": episode,
            "body": text,
            "prev": prev,
            "hash": event.hash,
        }
        from sqlalchemy.exc import DatabaseError

        into, _ = _inserts()
        with self._database.transaction() as writer:
            if command_id is not None:
                self._claim(writer, command_id, event.seq)
            try:
                writer.execute(into, row)
            except DatabaseError as error:
                if not _is_not_next(error):
                    raise
                raise StorageError(
                    f"{self._where}: the last entry is not the one this process wrote; "
                    "another process writes to this campaign, stop one of them"
                ) from error
        self._head = (event.seq, event.hash)
        return event

    def carried_out(self, command_id: str) -> bool:
        """Whether an entry was written by this command. Raises StorageError."""
        return bool(self._database.rows(_DONE, int, campaign=self.campaign, command=command_id))

    def _claim(self, writer: Connection, command_id: str, seq: int) -> None:
        from sqlalchemy import select

        command = _tables()[1]
        done = select(command.c.seq).where(command.c.campaign == self.campaign, command.c.command_id == command_id)
        earlier = writer.execute(done).scalar()
        if earlier is not None:
            raise DuplicateCommand(f"command {command_id} was carried out already, as entry {earlier}")
        writer.execute(_inserts()[1], {"campaign": self.campaign, "command_id": command_id, "seq": seq})

    def events(self, after: int = 0, known: Sequence[Event] = (), *, most: int = _EVERY) -> list[Event]:
        """Events with seq > `after`, in order, the first `most` of them. known: those that were read before, from there
        on; what is in its place and still the same is that one itself, so that a long journal is in memory once. Raises
        BrokenRecord for a body that is not JSON, StorageError.
        """
        once = dict[str, str]().setdefault  # a text that entries share is kept once
        made = partial(self._event, once, iter(known))
        return self._database.rows(_EVENTS, made, campaign=self.campaign, after=after, most=most)

    def _event(
        self,
        once: Callable[[str, str], str],
        known: Iterator[Event],
        seq: int,
        kind: str,
        at_ns: int,
        boot: str,
        wall: str,
        who: str,
        trial: str | None,
        episode: str | None,
        text: str,
        prev: str,
        own: str,
    ) -> Event:
        texts = (kind, boot, wall, who, prev, own, trial or "", episode or "")  # SQLite holds no column to its type
        if type(seq) is not int or type(at_ns) is not int or not all(type(one) is str for one in texts):
            raise BrokenRecord(f"edited entry: {self._where} seq {seq} ({kind}): a column is not of its type")
        try:
            body = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise BrokenRecord(f"edited entry: {self._where} seq {seq} ({kind}): its body is not JSON") from error
        if not str(text).lstrip().startswith("{"):
            raise BrokenRecord(
                f"edited entry: {self._where} seq {seq} ({kind}): it cannot be read: its body is no object"
            )
        kind, boot, who, prev, own = (once(word, word) for word in (kind, boot, who, prev, own))
        trial, episode = (None if word is None else once(word, word) for word in (trial, episode))
        event, before = Event(seq, kind, at_ns, boot, wall, who, trial, episode, body, prev, own), next(known, None)
        return event if before is None or before != event else before

    def head(self) -> tuple[int, str]:
        """(seq, hash) of the last entry; (0, GENESIS) when there is none."""
        return self._head if self._writes else self._last()

    def _last(self) -> tuple[int, str]:
        last = self._database.rows(_LAST, _head, campaign=self.campaign)
        return last[0] if last else (0, GENESIS)

    def close(self) -> None:
        """Give the database back. Idempotent."""
        self._writes = False
        self._database.close()


def _is_not_next(error: DatabaseError) -> bool:
    """Whether the chain trigger, or the key behind it, refused an insert: somebody else has written."""
    from sqlalchemy.exc import IntegrityError

    text = str(error.orig)
    return NOT_NEXT in text or (isinstance(error, IntegrityError) and "unique" in text.lower())


def chain_problems(events: Sequence[Event]) -> list[Problem]:
    """What is wrong with a chain: missing or edited entries, links that do not fit; a cut tail `chain_heads` sees."""
    found: list[Problem] = []
    before: Event | None = None
    for event in events:
        expected, link = (before.seq + 1, before.hash) if before else (1, GENESIS)
        here = f"journal seq {event.seq} ({event.kind})"
        if event.seq != expected:
            names = f"entry {expected}" if event.seq == expected + 1 else f"entries {expected} to {event.seq - 1}"
            found.append(Problem("missing entry", f"journal before seq {event.seq}", f"{names} deleted"))
        elif event.prev != link:
            found.append(Problem("broken link", here, f"it does not follow entry {expected - 1}"))
        try:
            whole = event_hash(event) == event.hash
        except (TypeError, ValueError, RecursionError):
            whole = False
        if not whole:
            found.append(Problem("edited entry", here, "its content does not match its hash"))
        before = event
    return found


def journal_url(folder: Path) -> str:
    """URL of the journal in a folder."""
    return database_backend.sqlite_url(folder / "journal.db")


def refuse_no_campaign(folder: Path) -> None:
    """Raises InputError for a folder without a journal."""
    if not (folder / "journal.db").is_file():
        raise InputError(f"{folder} is no campaign: it holds no journal.db")


def events_of(folder: Path, *, most: int = _EVERY) -> list[Event]:
    """Every event of the one campaign in this folder, or the first `most`. Raises BrokenRecord, StorageError."""
    url = journal_url(folder)
    names = campaigns_in(url)
    if len(names) != 1:
        raise BrokenRecord(f"{folder / 'journal.db'} holds {len(names)} campaigns, not one")
    journal = Journal.open(url, names[0], readonly=True)
    try:
        return journal.events(most=most)
    finally:
        journal.close()
