"""Holds the server's copy of a campaign against the host's folder, row by row, and says what the copy binds.

May not: write on either side.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from labctl.plain import count
from labctl.store.chain_heads import head_text
from labctl.store.server.connecting import Server
from labctl.store.server.copying import KEPT, check_may_read, head_of
from labctl.store.server.host_record import Command, Counted, Entry, HostRecord, Kept, Part, Stream

AT_ONCE = 1000  # entries
MOST = 20  # problems of one kind that are named

_ENTRIES = (
    "SELECT seq, kind, at_ns, boot, wall, who, trial, episode, body, prev, hash FROM labctl.event "
    "WHERE campaign = %s AND seq > %s AND seq <= %s ORDER BY seq"
)
_COMMANDS = "SELECT command_id, seq FROM labctl.command WHERE campaign = %s"
_STREAMS = "SELECT episode, name, spec FROM labctl.stream WHERE campaign = %s"
_COUNTS = "SELECT episode, stream, count(*) FROM labctl.chunk WHERE campaign = %s GROUP BY 1, 2"
_DAMAGED = (
    "SELECT episode, stream, seq FROM labctl.chunk WHERE campaign = %s AND sha256 <> encode(sha256(payload), 'hex')"
)
_WITNESSED = (
    "SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM labctl.witnessed "
    "WHERE campaign = %s ORDER BY seq DESC LIMIT 1"
)


@dataclass(slots=True)
class Compared:
    """How a copy stands: entries, and chunks of sealed recordings, that the server has, of how many on the host; what
    differs; when the server's own clock saw the last head. blind: what tells arms apart is neither there nor counted.
    """

    campaign: str
    entries: int
    of_entries: int
    head: str
    witnessed: str | None
    chunks: int = 0
    of_chunks: int = 0
    blind: bool = True
    problems: list[str] = field(default_factory=list[str])

    @property
    def whole(self) -> bool:
        """Whether all that may be there is there, as it is here."""
        return not self.problems and (self.entries, self.chunks) == (self.of_entries, self.of_chunks)

    def __str__(self) -> str:
        there = (
            f"entries 1 to {self.entries} of {self.of_entries} and {self.chunks} of {count(self.of_chunks, 'chunk')}"
        )
        since = f", its head {self.head} since {self.witnessed} by the server's clock" if self.witnessed else ""
        kept = "; what tells arms apart stays here" if self.blind else ""
        return f"the server has {there}{since}{kept}"


def compare(host: HostRecord, server: Server) -> Compared:
    """Of one moment of the server's, before any of the host's: whoever is running the campaign adds to both meanwhile.

    Raises StorageError, StateError for a login that is blind to it.
    """
    with server.snapshot():
        return _compare(host, server)


def _compare(host: HostRecord, server: Server) -> Compared:
    seq, head = head_of(server, host.key)
    if seq:
        check_may_read(server, host.key)
    own_last = host.entries()[-1].seq
    seen = server.rows(_WITNESSED, str, host.key)
    found = Compared(
        host.name, seq, own_last, head_text(seq, head), seen[0] if seen else None, blind=not host.unblinded
    )
    problems = _of_entries(host, server, seq)
    problems += _of_commands(host, server, seq)
    counts = {(one.episode, one.stream): one.chunks for one in server.rows(_COUNTS, Counted, host.key)}
    declared = set(server.rows(_STREAMS, Stream, host.key))
    own_streams: set[Stream] = set()
    sealed = host.sealed()
    for part in host.parts():
        own_streams |= set(part.streams(None))
        for own in part.counts(None):
            if own.episode not in sealed:
                continue
            found.of_chunks += own.chunks
            found.chunks += counts.pop((own.episode, own.stream), 0)
            problems += _of_chunks(host, server, part, own)
    found.problems = _few(problems)
    more = [f"stream {name} of episode {episode} is there and not here" for episode, name in sorted(counts)]
    more += [
        f"the declaration of stream {s.name} of episode {s.episode} differs" for s in sorted(declared - own_streams)
    ]
    more += [
        f"chunk {row} there has other bytes than its digest says" for row in server.rows(_DAMAGED, _chunk, host.key)
    ]
    found.problems += _few(more)
    return found


def _of_entries(host: HostRecord, server: Server, last: int) -> list[str]:
    found: list[str] = []
    for after in range(0, last, AT_ONCE):
        there = {entry.seq: entry for entry in server.rows(_ENTRIES, Entry, host.key, after, after + AT_ONCE)}
        here = {entry.seq: entry for entry in host.entries(after, AT_ONCE)}
        for seq in range(after + 1, min(last, after + AT_ONCE) + 1):
            if seq not in here or seq not in there:
                found.append(f"entry {seq} is {'there and not here' if seq in there else 'missing there'}")
            elif here[seq] != there[seq]:
                differ = [name for name in Entry._fields if getattr(here[seq], name) != getattr(there[seq], name)]
                found.append(f"entry {seq} ({there[seq].kind}) differs in {', '.join(differ)}")
    return found


def _of_commands(host: HostRecord, server: Server, last: int) -> list[str]:
    there, here = set(server.rows(_COMMANDS, Command, host.key)), set(host.commands(0, last))
    return [f"command {command_id} of entry {seq} is on one side alone" for command_id, seq in sorted(there ^ here)]


def _of_chunks(host: HostRecord, server: Server, part: Part, own: Counted) -> list[str]:
    here = {kept.seq: kept for kept in part.kept(own.episode, own.stream)}
    there = server.rows(KEPT, Kept, host.key, own.episode, own.stream)
    return [
        f"chunk {kept.seq} of stream {own.stream} of episode {own.episode} differs"
        for kept in there
        if here.get(kept.seq) != kept
    ]


def _few(problems: list[str]) -> list[str]:
    more = len(problems) - MOST
    return problems if more <= 0 else [*problems[:MOST], f"and {more} more"]


def _chunk(episode: str, stream: str, seq: int) -> str:
    return f"{seq} of stream {stream} of episode {episode}"
