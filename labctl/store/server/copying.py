"""Copies what a campaign's folder has and the lab's server has not: entries first, then traces. Done again it sends
nothing.

May not: change the folder, send what the journal's chain does not hold or what tells arms apart before unblinding, or
take its own word for how far it came: it asks the server each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from labctl.core.events import GENESIS
from labctl.errors import BrokenRecord, StateError
from labctl.plain import count
from labctl.store.server.connecting import Server
from labctl.store.server.host_record import Counted, Entry, HostRecord, Kept, Part, check_links

ENTRIES = 256  # in one transaction
BYTES = 1 << 20  # of chunks in one transaction
CHUNKS = 64  # read at once

_EVENT = (
    "INSERT INTO labctl.event (campaign, seq, kind, at_ns, boot, wall, who, trial, episode, body, prev, hash) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_COMMAND = "INSERT INTO labctl.command (campaign, command_id, seq) VALUES (%s, %s, %s)"
_CAMPAIGN = "INSERT INTO labctl.campaign (campaign, name, first) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_WITNESS = "INSERT INTO labctl.witnessed (campaign, seq, hash) VALUES (%s, %s, %s)"
_STREAM = (
    "INSERT INTO labctl.stream (campaign, episode, name, spec) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (campaign, episode, name) DO NOTHING"
)
_CHUNK = (
    "INSERT INTO labctl.chunk (campaign, episode, stream, seq, t0_ns, t1_ns, n, sha256, payload) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (campaign, episode, stream, seq) DO NOTHING"
)
_HEAD = "SELECT seq, hash FROM labctl.event WHERE campaign = %s ORDER BY seq DESC LIMIT 1"
_KEPT = (
    "SELECT seq, t0_ns, t1_ns, n, sha256 FROM labctl.chunk "
    "WHERE campaign = %s AND episode = %s AND stream = %s ORDER BY seq"
)
_COUNTS = (
    "SELECT episode, stream, count(*) FROM labctl.chunk WHERE campaign = %s AND (%s::text IS NULL OR episode = %s) "
    "GROUP BY 1, 2"
)
_STREAMS = (
    "SELECT episode, name FROM labctl.stream WHERE campaign = %s AND (%s::text IS NULL OR episode = %s) ORDER BY 1, 2"
)
_MAY_READ = (
    "SELECT labctl.mine(%s) OR EXISTS (SELECT FROM labctl.event WHERE campaign = %s AND kind = 'CampaignUnblinded')"
)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy sent, and what the server has then: `entries` of the journal, up to the head. recent: the episodes of
    the entries that were sent, in order.
    """

    campaign: str
    entries: int
    head: str
    sent_entries: int
    sent_chunks: int
    recent: Sequence[str] = ()

    @property
    def sent(self) -> int:
        """Entries and chunks."""
        return self.sent_entries + self.sent_chunks

    def __str__(self) -> str:
        what = f"{count(self.sent_entries, 'entry', 'entries')} and {count(self.sent_chunks, 'chunk')} of traces sent"
        return f"{what if self.sent else 'nothing to send'}; the server has entries 1 to {self.entries}"


def head_of(server: Server, key: str) -> tuple[int, str]:
    """(seq, hash) of the last entry that the server has of a campaign; (0, GENESIS) without one."""
    found = server.rows(_HEAD, _pair, key)
    return found[0] if found else (0, GENESIS)


def check_may_read(server: Server, key: str) -> None:
    """Raises StateError for a login that the server keeps blind to a campaign's samples."""
    if not server.rows(_MAY_READ, bool, key, key)[0]:
        raise StateError(
            f"{server.where}: samples of {key} are for the cell that copied them until the campaign is unblinded; "
            "use its login, or grant its role to this one"
        )


def copy(host: HostRecord, server: Server, *, episodes: Sequence[str] | None = None) -> Copied:
    """Send what is missing. episodes: whose traces are looked at, None: all.

    Raises BrokenRecord for a chain that does not hold or is another one than the server's, StorageError.
    """
    sent: list[Entry] = []
    while batch := _next_entries(host, server):
        sent += batch
    seq, head = (sent[-1].seq, sent[-1].hash) if sent else head_of(server, host.key)
    recent = list(dict.fromkeys(entry.episode for entry in sent if entry.episode))
    chunks = 0
    for part in host.parts():
        for episode in (None,) if episodes is None else dict.fromkeys([*episodes, *recent]):
            chunks += _send_traces(host.key, part, server, episode)
    return Copied(host.name, seq, head, len(sent), chunks, recent)


def _next_entries(host: HostRecord, server: Server) -> Sequence[Entry]:
    """Send the next entries after the server's last, and return them."""
    with server.transaction():
        server.ask(_LOCK, host.key)  # another process of this or another host may be at it
        last = server.ask(_HEAD, host.key)
        seq, head = (int(str(last[0])), str(last[1])) if last else (0, GENESIS)
        entries = host.entries(max(0, seq - 1), ENTRIES + 1)
        if seq:
            _check_same(host, entries[:1], seq, head, server.where)
            entries = entries[1:]
        if not entries:
            return ()
        check_links(entries, seq, head, str(host.folder / "journal.db"))
        if not seq:
            server.put(_CAMPAIGN, [(host.key, host.name, host.first)])
        server.put(_EVENT, [(host.key, *entry) for entry in entries])
        commands = host.commands(seq, entries[-1].seq)
        server.put(_COMMAND, [(host.key, *command) for command in commands])
        server.put(_WITNESS, [(host.key, entries[-1].seq, entries[-1].hash)])
    return entries


def _check_same(host: HostRecord, own: Sequence[Entry], seq: int, head: str, where: str) -> None:
    if not own:
        text = f"{where} has entry {seq} of {host.name}, the journal of {host.folder} ends before it"
        raise BrokenRecord(f"{text}: its end was cut off, or an older copy was put back; see: labctl database check")
    if own[0].hash != head:
        text = f"{where} has another entry {seq} of {host.name} than {host.folder}"
        raise BrokenRecord(f"{text}: one of them was changed; nothing is sent; see: labctl database check")


def _send_traces(key: str, part: Part, server: Server, episode: str | None) -> int:
    declared = part.streams(episode)
    there = set(server.rows(_STREAMS, _pair_of_texts, key, episode, episode))
    new = [stream for stream in declared if (stream.episode, stream.name) not in there]
    if new:
        with server.transaction():
            server.put(_STREAM, [(key, *stream) for stream in new])
    counts = set(server.rows(_COUNTS, Counted, key, episode, episode))
    return sum(_send_stream(key, part, server, own) for own in part.counts(episode) if own not in counts)


def _send_stream(key: str, part: Part, server: Server, own: Counted) -> int:
    there = {kept.seq: kept for kept in server.rows(_KEPT, Kept, key, own.episode, own.stream)}
    missing: list[int] = []
    for kept in part.kept(own.episode, own.stream):
        if kept.seq not in there:
            missing.append(kept.seq)
        elif there[kept.seq] != kept:
            where = f"episode {own.episode} stream {own.stream} chunk {kept.seq}"
            raise BrokenRecord(f"{server.where} has another {where} than this host; see: labctl database check")
    sent = 0
    for rows in _batches(part, own, missing):
        with server.transaction():
            server.put(_CHUNK, [(key, own.episode, own.stream, *row) for row in rows])
        sent += len(rows)
    return sent


def _batches(part: Part, own: Counted, missing: Sequence[int]) -> Iterator[list[tuple[int | str | bytes, ...]]]:
    """The missing chunks with their bytes, about BYTES at a time."""
    rows: list[tuple[int | str | bytes, ...]] = []
    size = 0
    for _, run in groupby(enumerate(missing), lambda at: (at[1] - at[0], at[0] // CHUNKS)):
        numbers = [seq for _, seq in run]
        for chunk in part.chunks(own.episode, own.stream, numbers[0], numbers[-1]):
            rows.append(chunk)
            size += len(chunk.payload)
            if size >= BYTES:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


def copy_campaign(folder: Path, url: str, timeout_s: float) -> Copied:
    """Send all that is missing of a campaign folder. Raises as `copy`."""
    host, server = HostRecord(folder), Server(url, timeout_s)
    try:
        return copy(host, server)
    finally:
        server.close()


def _pair(seq: int, digest: str) -> tuple[int, str]:
    return seq, digest


def _pair_of_texts(episode: str, name: str) -> tuple[str, str]:
    return episode, name
