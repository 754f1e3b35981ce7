"""A campaign's rows as they lie on the host, read beside whoever writes them; arm-dependent ones only once unblinded.

May not: write, hold up a writer, or open the seal's database of a campaign that is blind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labctl.core.events import GENESIS, Event, Kind, event_hash
from labctl.errors import BrokenRecord, StorageError, in_words
from labctl.store.database_backend import Made, Reader, database_file, sqlite_url
from labctl.store.journal import journal_url
from labctl.store.ledger import TRACES
from labctl.store.traces import sealed_url
from labctl.streams import spec_of


class Entry(NamedTuple):
    """One entry of a journal, its body as the text that is kept."""

    seq: int
    kind: str
    at_ns: int
    boot: str
    wall: str
    who: str
    trial: str | None
    episode: str | None
    body: str
    prev: str
    hash: str

    def event(self) -> Event:
        """Raises ValueError for a body that is not JSON."""
        body = json.loads(self.body)
        return Event(*self[:8], body, self.prev, self.hash)


class Command(NamedTuple):
    """An accepted command and the entry that it led to."""

    command_id: str
    seq: int


class Stream(NamedTuple):
    """A declared stream of an episode."""

    episode: str
    name: str
    spec: str

    @property
    def arm_dependent(self) -> bool:
        """Whether it tells arms apart. What cannot be read is taken to."""
        try:
            return spec_of(json.loads(self.spec)).arm_dependent
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return True


class Kept(NamedTuple):
    """A chunk without its bytes."""

    seq: int
    t0_ns: int
    t1_ns: int
    n: int
    sha256: str


class Whole(NamedTuple):
    """A chunk with its bytes."""

    seq: int
    t0_ns: int
    t1_ns: int
    n: int
    sha256: str
    payload: bytes


class Counted(NamedTuple):
    """How many chunks of a stream there are."""

    episode: str
    stream: str
    chunks: int


_COLUMNS = ", ".join(Entry._fields)
_STREAM = "campaign = :campaign AND episode = :episode AND stream = :stream"
_RANGE = "AND seq >= :first AND seq <= :last ORDER BY seq"


class HostRecord:
    """One campaign's folder, to read. `key` is what the server calls the campaign."""

    def __init__(self, folder: Path) -> None:
        """Raises StorageError when the folder holds no campaign."""
        self.folder = folder
        self._journal = Reader(journal_url(folder))
        first = self._journal.rows("SELECT campaign, hash FROM event WHERE seq = 1", two_texts)
        if len(first) != 1:
            raise StorageError(
                f"{folder / 'journal.db'} holds {len(first)} campaigns, not one; see: labctl verify {folder.name}"
            )
        self.name, self.first = first[0]
        self.key = f"{self.name}@{self.first[:16]}"
        self._unblinded = False

    def entries(self, after: int = 0, most: int = -1) -> list[Entry]:
        """Those after one, in order, all or the first few. Raises StorageError."""
        which = "WHERE campaign = :campaign AND seq > :after ORDER BY seq LIMIT :most"
        return self._journal.rows(
            f"SELECT {_COLUMNS} FROM event {which}", Entry, campaign=self.name, after=after, most=most
        )

    def commands(self, after: int, upto: int) -> list[Command]:
        """Those of the entries after one and up to another."""
        question = "SELECT command_id, seq FROM command WHERE campaign = :campaign AND seq > :after AND seq <= :upto"
        return self._journal.rows(question, Command, campaign=self.name, after=after, upto=upto)

    @property
    def unblinded(self) -> bool:
        """Whether the journal says so."""
        if not self._unblinded:
            question = "SELECT seq FROM event WHERE campaign = :campaign AND kind = :kind"
            self._unblinded = bool(
                self._journal.rows(question, int, campaign=self.name, kind=str(Kind.CAMPAIGN_UNBLINDED))
            )
        return self._unblinded

    def sealed(self) -> set[str]:
        """Episodes whose recording is sealed: their chunks are on the disk, and none is added or lost any more."""
        question = "SELECT DISTINCT episode FROM event WHERE campaign = :campaign AND kind = :kind"
        return set(self._journal.rows(question, str, campaign=self.name, kind=str(Kind.RECORDING_SEALED)))

    def roots(self) -> dict[str, dict[str, str]]:
        """By episode, the root of each stream's digests as the journal sealed it; arm-dependent ones are not among
        them.
        """
        question = "SELECT episode, body FROM event WHERE campaign = :campaign AND kind = :kind ORDER BY seq"
        found = self._journal.rows(question, two_texts, campaign=self.name, kind=str(Kind.RECORDING_SEALED))
        return {episode: roots_in(body) for episode, body in found}

    def parts(self) -> Iterator[Part]:
        """The databases of traces that may leave the host now."""
        url = sqlite_url(self.folder / TRACES)
        for each in (url, sealed_url(url)) if self.unblinded else (url,):
            if database_file(each).is_file():
                yield Part(Reader(each), self.name, all_streams=self.unblinded)


class Part:
    """One database of traces, without the streams that may not leave."""

    def __init__(self, reader: Reader, campaign: str, *, all_streams: bool) -> None:
        self._reader, self._campaign, self._all = reader, campaign, all_streams

    def streams(self, episode: str | None) -> list[Stream]:
        """Declared, of one episode or of all."""
        found = self._rows("SELECT episode, name, spec FROM stream", Stream, episode)
        return [stream for stream in found if self._all or not stream.arm_dependent]

    def counts(self, episode: str | None) -> list[Counted]:
        """Chunks by stream, of declared streams that may leave."""
        may = {(stream.episode, stream.name) for stream in self.streams(episode)}
        found = self._rows("SELECT episode, stream, count(*) FROM chunk", Counted, episode, " GROUP BY 1, 2")
        return [one for one in found if (one.episode, one.stream) in may]

    def kept(self, episode: str, stream: str) -> list[Kept]:
        """The chunks of a stream without their bytes, in order."""
        question = f"SELECT seq, t0_ns, t1_ns, n, sha256 FROM chunk WHERE {_STREAM} ORDER BY seq"
        return self._reader.rows(question, Kept, campaign=self._campaign, episode=episode, stream=stream)

    def chunks(self, episode: str, stream: str, first: int, last: int) -> list[Whole]:
        """Chunks of a stream with their bytes, of a range of numbers."""
        question = f"SELECT seq, t0_ns, t1_ns, n, sha256, payload FROM chunk WHERE {_STREAM} {_RANGE}"
        at: dict[str, str | int] = {"campaign": self._campaign, "episode": episode, "stream": stream}
        return self._reader.rows(question, Whole, **at, first=first, last=last)

    def _rows(self, select: str, make: Callable[..., Made], episode: str | None, end: str = "") -> list[Made]:
        """Of one episode or of all."""
        values = {"campaign": self._campaign} | ({} if episode is None else {"episode": episode})
        which = " AND ".join(f"{name} = :{name}" for name in values)
        return self._reader.rows(f"{select} WHERE {which}{end}", make, **values)


def check_links(entries: Sequence[Entry], seq: int, prev: str, where: str) -> None:
    """That entries follow one another and the entry before them. Raises BrokenRecord naming the first that does not."""
    for entry in entries:
        if entry.seq != seq + 1 or entry.prev != (prev or GENESIS):
            raise BrokenRecord(
                f"{where} seq {entry.seq} ({entry.kind}) does not follow entry {seq}; see: labctl verify"
            )
        try:
            whole = event_hash(entry.event()) == entry.hash
        except (TypeError, ValueError, RecursionError) as error:
            raise BrokenRecord(f"{where} seq {entry.seq}: its body cannot be read: {in_words(error)}") from error
        if not whole:
            raise BrokenRecord(f"{where} seq {entry.seq} ({entry.kind}) does not match its hash; see: labctl verify")
        seq, prev = entry.seq, entry.hash


def roots_in(body: str) -> dict[str, str]:
    """The same of one RecordingSealed. Raises BrokenRecord."""
    try:
        return {name: str(entry["root"]) for name, entry in json.loads(body)["streams"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BrokenRecord(f"what was sealed of a recording cannot be read: {in_words(error)}") from error


def two_texts(one: str, two: str) -> tuple[str, str]:
    """A row of two texts."""
    return one, two
