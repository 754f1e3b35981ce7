"""Copies what a campaign's folder has and the lab's server has not: entries first, then traces of sealed recordings.
Done again it sends nothing.

May not: change the folder, send what the journal's chain does not hold or what tells arms apart before unblinding, or
take its own word for how far it came: it asks the server each time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from labctl.core.events import GENESIS, Kind
from labctl.errors import BrokenRecord, StateError
from labctl.plain import count
from labctl.store.chunks import root_of
from labctl.store.server.connecting import Server
from labctl.store.server.host_record import (
    Counted,
    Entry,
    HostRecord,
    Kept,
    Part,
    Whole,
    check_links,
    roots_in,
    two_texts,
)

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
KEPT = (
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
    """What a copy sent, and what the server has then: `entries` of the journal, up to the head. broken: streams that
    do not hold, and are not there.
    """

    campaign: str
    entries: int
    head: str
    sent_entries: int
    sent_chunks: int
    broken: Sequence[str] = ()

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


def copy(host: HostRecord, server: Server, *, everything: bool = True) -> Copied:
    """Send what is missing: entries, and the chunks of episodes whose recording is sealed; without `everything` those
    alone that the entries sent now seal. A stream that does not hold is left out and named.

    Raises BrokenRecord for a chain that does not hold or is another one than the server's, StorageError.
    """
    sent: list[Entry] = []
    while batch := _next_entries(host, server):
        sent += batch
    seq, head = (sent[-1].seq, sent[-1].hash) if sent else head_of(server, host.key)
    everything = everything or any(entry.kind == Kind.CAMPAIGN_UNBLINDED for entry in sent)
    just = {entry.episode or "": roots_in(entry.body) for entry in sent if entry.kind == Kind.RECORDING_SEALED}
    sealed = host.sealed() if everything else {*just}
    traces = _Traces(host, server, sealed, None if everything else just)
    for part in host.parts() if sealed else ():
        for episode in (None,) if everything else sorted(sealed):
            traces.send(part, episode)
    return Copied(host.name, seq, head, len(sent), traces.sent, traces.broken)


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


class _Traces:
    """Sends chunks of sealed episodes; counts what was sent, and names what was not."""

    def __init__(
        self, host: HostRecord, server: Server, sealed: Collection[str], roots: Mapping[str, Mapping[str, str]] | None
    ) -> None:
        """roots: by episode and stream; None: read once something is to be sent."""
        self._host, self._server, self._sealed, self._roots = host, server, sealed, roots
        self.sent = 0
        self.broken: list[str] = []

    def send(self, part: Part, episode: str | None) -> None:
        """What the server lacks of one episode, or of all."""
        key, server = self._host.key, self._server
        there = set(server.rows(_STREAMS, two_texts, key, episode, episode))
        declared = [stream for stream in part.streams(episode) if stream.episode in self._sealed]
        new = [stream for stream in declared if (stream.episode, stream.name) not in there]
        if new:
            with server.transaction():
                server.put(_STREAM, [(key, *stream) for stream in new])
        counts = set(server.rows(_COUNTS, Counted, key, episode, episode))
        for own in part.counts(episode):
            if own.episode in self._sealed and own not in counts:
                self._send_stream(part, own)

    def _send_stream(self, part: Part, own: Counted) -> None:
        key, where = self._host.key, f"stream {own.stream} of episode {own.episode}"
        here = part.kept(own.episode, own.stream)
        self._roots = self._host.roots() if self._roots is None else self._roots
        sealed = self._roots[own.episode].get(own.stream)
        if sealed is not None and sealed != root_of(kept.sha256 for kept in here):
            self.broken.append(f"{where}: its chunks are not the ones that were sealed; see: labctl verify")
            return
        there = {kept.seq: kept for kept in self._server.rows(KEPT, Kept, key, own.episode, own.stream)}
        if any(there.get(kept.seq, kept) != kept for kept in here) or there.keys() - {kept.seq for kept in here}:
            self.broken.append(f"{where}: the server has other chunks of it; see: labctl database check")
            return
        for rows in _batches(part, own, [kept.seq for kept in here if kept.seq not in there]):
            bad = next((row for row in rows if hashlib.sha256(row.payload).hexdigest() != row.sha256), None)
            if bad is not None:
                self.broken.append(f"{where}: the bytes of chunk {bad.seq} are not those of its digest")
                return
            with self._server.transaction():
                self._server.put(_CHUNK, [(key, own.episode, own.stream, *row) for row in rows])
            self.sent += len(rows)


def _batches(part: Part, own: Counted, missing: Sequence[int]) -> Iterator[list[Whole]]:
    """The missing chunks with their bytes, about BYTES at a time."""
    rows: list[Whole] = []
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
