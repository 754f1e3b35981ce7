"""From the server back into files: journal.db and traces.db of a campaign as they were copied, each digest the same.

May not: write over anything, or leave something half-written. Videos, photos, the seal and the settings never were on
the server: they come from a backup of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.errors import BrokenRecord, InputError
from labctl.store.atomic_files import folder_in_one_step
from labctl.store.chain_heads import head_text
from labctl.store.database_backend import database_file, insert_rows, sqlite_url
from labctl.store.journal import Journal, chain_problems, events_of, journal_url
from labctl.store.ledger import TRACES
from labctl.store.server.connecting import Server
from labctl.store.server.copying import check_may_read, head_of
from labctl.store.server.host_record import Command, Entry, Stream, Whole
from labctl.store.traces import TraceStore, sealed_url

AT_ONCE = 1000
_EVENTS = (
    "SELECT seq, kind, at_ns, boot, wall, who, trial, episode, body, prev, hash FROM labctl.event "
    "WHERE campaign = %s AND seq > %s ORDER BY seq LIMIT %s"
)
_COMMANDS = "SELECT command_id, seq FROM labctl.command WHERE campaign = %s ORDER BY seq, command_id"
_STREAMS = "SELECT episode, name, spec FROM labctl.stream WHERE campaign = %s ORDER BY episode, name"
_CHUNKS = (
    "SELECT seq, t0_ns, t1_ns, n, sha256, payload FROM labctl.chunk "
    "WHERE campaign = %s AND episode = %s AND stream = %s ORDER BY seq"
)
_LISTED = (
    "SELECT campaign, name, writer, cell, trials, scored, phase, entries, head, last_entry, "
    "to_char(witnessed AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM labctl.campaigns ORDER BY campaign"
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A campaign that the server has, of whichever lab and cell, as its view `campaigns` says it. campaign: its name, @
    and 16 digits of its first entry's hash; trials: how many are planned; last_entry by the host's clock, witnessed by
    the server's.
    """

    campaign: str
    name: str
    writer: str
    cell: str | None
    trials: int | None
    scored: int
    phase: str
    entries: int
    head: str
    last_entry: str
    witnessed: str | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was written of a campaign."""

    campaign: str
    folder: Path
    entries: int
    head: str
    chunks: int


def listed(server: Server) -> list[Listed]:
    """Every campaign that the server has. Raises StorageError."""
    return server.rows(_LISTED, Listed)


def fetch(server: Server, named: str, out: Path) -> Fetched:
    """Write a campaign into the new folder `out` as the server has it at this moment, whatever is added meanwhile;
    `named`: NAME@HASH, or NAME where one has it.

    Raises InputError for a name that it has not or a folder that is there, StateError for a login that is blind to it,
    BrokenRecord when what came does not hold.
    """
    with server.snapshot():
        return _fetch(server, named, out)


def _fetch(server: Server, named: str, out: Path) -> Fetched:
    known = listed(server)
    found = [one for one in known if named in (one.campaign, one.name)]
    if len(found) != 1:
        there = ", ".join(one.campaign for one in (found or known)) or "none"
        raise InputError(f"{server.where} has {len(found) or 'no'} campaigns {named!r}; it has: {there}")
    if out.exists():
        raise InputError(f"{out} is there already; name a new folder, nothing was written")
    key, name = found[0].campaign, found[0].name
    check_may_read(server, key)
    with folder_in_one_step(out, mode=0o700) as building:
        entries, head = _journal(server, key, name, building)
        chunks = _traces(server, key, name, building)
    return Fetched(key, out, entries, head, chunks)


def _journal(server: Server, key: str, name: str, folder: Path) -> tuple[int, str]:
    url = journal_url(folder)
    Journal.create(url, name).close()
    insert_rows(url, "event", _in(Entry), ((name, *entry) for entry in _entries(server, key)))
    commands = server.rows(_COMMANDS, Command, key)
    insert_rows(url, "command", _in(Command), ((name, *command) for command in commands))
    events = events_of(folder)
    problems = chain_problems(events)
    seq, head = head_of(server, key)
    if problems or (events[-1].seq, events[-1].hash) != (seq, head):
        detail = str(problems[0]) if problems else f"it ends at {events[-1].seq}, the server has {seq}"
        raise BrokenRecord(f"{server.where}: its copy of {key} does not hold: {detail}; nothing was written")
    return seq, head_text(seq, head)


def _entries(server: Server, key: str) -> Iterator[Entry]:
    after = 0
    while entries := server.rows(_EVENTS, Entry, key, after, AT_ONCE):
        yield from entries
        after = entries[-1].seq


def _traces(server: Server, key: str, name: str, folder: Path) -> int:
    url = sqlite_url(folder / TRACES)
    streams = server.rows(_STREAMS, Stream, key)
    apart = any(stream.arm_dependent for stream in streams)
    parts = {False: url}
    if apart:
        parts[True] = sealed_url(url)
        database_file(parts[True]).parent.mkdir(mode=0o700)
    TraceStore.create(url, name, apart=apart).close()
    chunks = 0
    for arm_dependent, each in parts.items():
        mine = [stream for stream in streams if stream.arm_dependent == arm_dependent]
        insert_rows(each, "stream", _in(Stream), ((name, *stream) for stream in mine))
        for stream in mine:
            rows = server.rows(_CHUNKS, Whole, key, stream.episode, stream.name)
            columns = ("campaign", "episode", "stream", *Whole._fields)
            insert_rows(each, "chunk", columns, ((name, stream.episode, stream.name, *row) for row in rows))
            chunks += len(rows)
    return chunks


def _in(row: type[Entry] | type[Command] | type[Stream]) -> tuple[str, ...]:
    """The columns of a table whose rows these are."""
    return ("campaign", *row._fields)
