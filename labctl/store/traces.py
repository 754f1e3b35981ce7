"""The trace store: one row per stream and about one second, digested, and sealed before an episode is scored.

May not: interpret samples, delete or overwrite a chunk, or read a clock. `chunks` says what the bytes of a row mean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np

from labctl.core.events import digest
from labctl.errors import BrokenRecord, in_words
from labctl.messages.body_parts import ChunkGap, StreamEntry
from labctl.plain import count
from labctl.store import database_backend
from labctl.store.chunks import NUMBERS, Chunk, Samples, chunk_times, decode_chunk, encode_chunk, summary, together
from labctl.store.ledger import FOLDER as SEAL
from labctl.store.problem import Problem
from labctl.streams import StreamSpec, spec_of

if TYPE_CHECKING:
    from sqlalchemy import Insert, Table

Made = TypeVar("Made")
Chunks: TypeAlias = dict[str, list[Samples]]
Row = dict[str, str | int | bytes]


@cache
def _tables() -> tuple[Table, Table]:
    """Streams and chunks, for whoever writes: only that takes SQLAlchemy."""
    from sqlalchemy import BigInteger, Column, LargeBinary, Text
    from sqlmodel import Field, SQLModel

    class StreamRow(SQLModel, table=True):
        """A declared stream of an episode; `spec` is its StreamSpec as JSON."""

        __tablename__ = "stream"  # pyright: ignore[reportAssignmentType]
        campaign: str = Field(primary_key=True)
        episode: str = Field(primary_key=True)
        name: str = Field(primary_key=True)
        spec: str = Field(sa_column=Column(Text, nullable=False))

    class ChunkRow(SQLModel, table=True):
        """One chunk: times of its first and last sample, number of samples, sha256 of the payload, payload."""

        __tablename__ = "chunk"  # pyright: ignore[reportAssignmentType]
        campaign: str = Field(primary_key=True)
        episode: str = Field(primary_key=True)
        stream: str = Field(primary_key=True)
        seq: int = Field(primary_key=True)
        t0_ns: int = Field(sa_type=BigInteger)
        t1_ns: int = Field(sa_type=BigInteger)
        n: int
        sha256: str
        payload: bytes = Field(sa_column=Column(LargeBinary, nullable=False))

    return StreamRow.metadata.tables["stream"], ChunkRow.metadata.tables["chunk"]


@cache
def _inserts() -> tuple[Insert, Insert]:
    """Into streams and chunks; a row whose key is there already stays as it is."""
    from sqlalchemy.dialects import sqlite

    streams, chunks = _tables()
    return sqlite.insert(streams).on_conflict_do_nothing(), sqlite.insert(chunks).on_conflict_do_nothing()


class _Chunk(NamedTuple):
    """A chunk as it is kept; without its bytes where these were not asked for."""

    stream: str
    seq: int
    t0_ns: int
    t1_ns: int
    n: int
    sha256: str
    payload: bytes = b""


def _of_numbers(spec: StreamSpec) -> StreamSpec:
    """Raises ValueError or TypeError for a declaration whose values are said to be no numbers."""
    if np.dtype(spec.dtype).kind not in NUMBERS:
        raise ValueError(f"its values are said to be {spec.dtype!r}, which are no numbers")
    return spec


def _chunk(stream: str, seq: int, t0_ns: int, t1_ns: int, n: int, sha256: str, payload: bytes = b"") -> _Chunk:
    """SQLite holds no column to its type. Raises BrokenRecord for a row that labctl did not write."""
    texts, numbers = type(stream) is str and type(sha256) is str, (seq, t0_ns, t1_ns, n)
    if not texts or type(payload) is not bytes or not all(type(one) is int for one in numbers):
        raise BrokenRecord(f"changed trace index: stream {stream!s:.60} chunk {seq!s:.20}: a column is not of its type")
    return _Chunk(stream, seq, t0_ns, t1_ns, n, sha256, payload)


_MINE = "WHERE campaign = :campaign AND episode = :episode"
_IN_ORDER = "ORDER BY stream, seq"
_ENTRIES = f"SELECT stream, seq, t0_ns, t1_ns, n, sha256 FROM chunk {_MINE} {_IN_ORDER}"
_STORED = f"SELECT stream, seq, t0_ns, t1_ns, n, sha256, payload FROM chunk {_MINE}"


class TraceStore:
    """One campaign's traces.

    Streams that tell arms apart (`StreamSpec.arm_dependent`) lie in a database of their own below `seal/`, and all
    others in the one named; a store that was made without it, as before 2026-11-23, keeps all of them in one.
    A durable store runs SQLite's write-ahead log with synchronous=NORMAL: the death of any process loses nothing
    committed, loss of power may lose what was committed since the last `sync`. Not durable (simulation): OFF.
    """

    def __init__(
        self, campaign: str, urls: Sequence[str], mode: database_backend.Mode, *, durable: bool, held: bool = False
    ) -> None:
        """urls: the database of all streams, or of those that a blind role may read and of the others."""
        synchronous: database_backend.Synchronous = "NORMAL" if durable else "OFF"
        self.campaign, self._durable = campaign, durable
        self._parts = [
            database_backend.Database(url, mode, _tables, synchronous=synchronous, held=held) for url in urls
        ]
        self._where = self._parts[0].where
        self._specs: dict[tuple[str, str], StreamSpec] = {}

    @classmethod
    def create(cls, url: str, campaign: str, *, durable: bool = True, apart: bool = False) -> TraceStore:
        """The store at `url`, made if it is not there. apart: arm-dependent streams have a database of their own, in
        a folder `seal` that is there beside it. Raises StorageError.
        """
        return cls(campaign, [url, sealed_url(url)] if apart else [url], "create", durable=durable)

    @classmethod
    def open(
        cls, url: str, campaign: str, readonly: bool = False, *, durable: bool = True, held: bool = False
    ) -> TraceStore:
        """An existing store; readers work beside a writer and create no file. held: as `database_backend.Reader`, for
        whoever reads a whole campaign and then closes it. Raises StorageError when missing.
        """
        beside = sealed_url(url)
        urls = [url, beside] if database_backend.database_file(beside).is_file() else [url]
        return cls(campaign, urls, "read" if readonly else "write", durable=durable, held=held)

    def declare(self, episode: str, specs: Iterable[StreamSpec]) -> None:
        """Say which streams an episode has, before anything connects. A stream declared already stays as it is."""
        rows: list[tuple[StreamSpec, Row]] = []
        for spec in specs:
            self._specs.setdefault((episode, spec.name), spec)
            text = json.dumps(asdict(spec), sort_keys=True)
            row: Row = {"campaign": self.campaign, "episode": episode, "name": spec.name, "spec": text}
            rows.append((self._specs[episode, spec.name], row))
        self._commit(_inserts()[0], rows)

    def write(self, episode: str, chunks: Sequence[Chunk]) -> None:
        """Commit chunks, in one transaction of each database. One that is there already (episode, stream, seq) stays as
        it is.

        Raises ValueError for an undeclared stream, an empty chunk or values that do not fit, StorageError.
        """
        rows: list[tuple[StreamSpec, Row]] = []
        for chunk in chunks:
            if not len(chunk.t_ns):
                raise ValueError(f"chunk {chunk.seq} of stream {chunk.stream!r} is empty")
            spec = self._spec(episode, chunk.stream)
            payload = encode_chunk(spec, chunk.t_ns, chunk.values)
            row: Row = {
                "campaign": self.campaign,
                "episode": episode,
                "stream": chunk.stream,
                "seq": int(chunk.seq),
                "t0_ns": int(chunk.t_ns[0]),
                "t1_ns": int(chunk.t_ns[-1]),
                "n": len(chunk.t_ns),
                "sha256": hashlib.sha256(payload).hexdigest(),
                "payload": payload,
            }
            rows.append((spec, row))
        self._commit(_inserts()[1], rows)

    def streams(self, episode: str) -> list[StreamSpec]:
        """The declared streams of an episode, by name. Raises BrokenRecord for a declaration that is none."""
        found = [self._declared(episode, name, text) for name, text in self._declarations(episode)]
        self._specs.update({(episode, spec.name): spec for spec in found})
        return found

    def episodes(self) -> list[str]:
        """Ids of the episodes with a declared stream or a chunk, sorted."""
        found: set[str] = set()
        for table in ("stream", "chunk"):
            found.update(self._rows(f"SELECT DISTINCT episode FROM {table} WHERE campaign = :campaign", str))
        return sorted(found)

    def has(self, episode: str) -> bool:
        """Whether a stream of an episode is declared."""
        return bool(self._rows(f"SELECT name FROM stream {_MINE} LIMIT 1", str, episode=episode))

    def read(self, episode: str, stream: str, *, most_rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """All samples of a stream: t_ns (n,) int64, values (n, columns). n is 0 for a declared stream without samples.

        most_rows: no more than about so many, in whole chunks spread evenly over the episode, its last among them.
        Raises ValueError for an undeclared stream, BrokenRecord when a chunk does not match its digest.
        """
        spec = self._spec(episode, stream)
        found: list[Samples] = []
        which, values_of = "AND stream = :stream", {"episode": episode, "stream": stream}
        if most_rows is not None:
            sealed = self.seal(episode)[stream]
            which += " AND (seq % :every = 0 OR t1_ns = :last)"
            values_of |= {"every": max(1, -(-sealed["n"] // most_rows)), "last": sealed.get("t1_ns") or 0}
        for row in self._rows(f"{_STORED} {which} {_IN_ORDER}", _chunk, **values_of):
            if hashlib.sha256(row.payload).hexdigest() != row.sha256:
                where = f"{self._where} episode {episode} stream {stream} chunk {row.seq}"
                raise BrokenRecord(f"changed trace chunk: {where}: its bytes do not match its digest")
            found.append(decode_chunk(row.payload))
        return together(spec, found)

    def last_sample_ns(self, episode: str) -> int | None:
        """Time of the newest sample of any stream of the episode, None without samples."""
        newest = self._rows(f"SELECT coalesce(max(t1_ns), -1) FROM chunk {_MINE}", _time, episode=episode)
        return last if (last := max(newest)) >= 0 else None

    def seal(self, episode: str) -> dict[str, StreamEntry]:
        """{stream: {n, chunks, root, t0_ns, t1_ns, spec}} of every declared stream; times are None without samples.

        root = sha256 over the chunks' sha256 (raw bytes) in order of seq; spec = sha256 of the declaration's canonical
        JSON.
        """
        rows = self._rows(_ENTRIES, _chunk, episode=episode)
        specs = self._spec_digests(episode)
        found = {name: summary(()) for name in specs}
        for name in dict.fromkeys(row.stream for row in rows):
            found[name] = summary([(r.t0_ns, r.t1_ns, r.n, r.sha256) for r in rows if r.stream == name])
        return {name: {**entry, "spec": specs[name]} if name in specs else entry for name, entry in found.items()}

    def gaps(self, episode: str) -> list[ChunkGap]:
        """Chunks missing before the last one of a stream: [{stream, seq, from_ns, to_ns, lost, why}].

        from_ns is the last sample before the hole (None at the start), to_ns the first after it; lost is unknown: None.
        """
        found: list[ChunkGap] = []
        stream, expected, last = None, 0, None
        for row in self._rows(_ENTRIES, _chunk, episode=episode):
            if row.stream != stream:
                stream, expected, last = row.stream, 0, None
            for seq in range(expected, row.seq):
                gap = ChunkGap(
                    stream=row.stream, seq=seq, from_ns=last, to_ns=row.t0_ns, lost=None, why="chunk never arrived"
                )
                found.append(gap)
            expected, last = row.seq + 1, row.t1_ns
        return found

    def check(self, episode: str, sealed: Mapping[str, StreamEntry], read: Chunks | None = None) -> list[Problem]:
        """What differs between an episode's declarations and chunks, re-hashed and re-read, and what `seal` said about
        them. Of a recording that was sealed before declarations were, they are not compared. read: the streams in it
        get (t_ns, values) of each chunk, as `read`; one with a chunk that does not match its digest is taken out.
        """
        found, read = self._check_declarations(episode, sealed), {} if read is None else read
        seen: dict[str, list[tuple[int, int, int, str]]] = {name: [] for name in sealed}
        for row in self._rows(f"{_STORED} {_IN_ORDER}", _chunk, episode=episode):
            where = f"{self._where} episode {episode} stream {row.stream} chunk {row.seq}"
            sha256 = hashlib.sha256(row.payload).hexdigest()
            seen.setdefault(row.stream, []).append((row.t0_ns, row.t1_ns, row.n, sha256))
            if sha256 != row.sha256:
                found.append(Problem("changed trace chunk", where, "its bytes do not match its digest"))
                read.pop(row.stream, None)
                continue
            t_ns, values = decode_chunk(row.payload) if row.stream in read else (chunk_times(row.payload), None)
            if values is not None:
                read[row.stream].append((t_ns, values))
            if (int(t_ns[0]), int(t_ns[-1]), len(t_ns)) != (row.t0_ns, row.t1_ns, row.n):
                found.append(Problem("changed trace index", where, "its times or count are not those of its samples"))
        damaged = {problem.where.rsplit(" chunk ", 1)[0] for problem in found}
        for name, chunks in seen.items():
            where = f"{self._where} episode {episode} stream {name}"
            then, now = sealed.get(name), summary(chunks)
            if then is None:
                unsealed = f"{count(now['chunks'], 'chunk')} of a stream that was not sealed"
                found.append(Problem("unsealed trace", where, unsealed))
            elif now["chunks"] != then["chunks"]:
                counts = f"{count(now['chunks'], 'chunk')}, {then['chunks']} were sealed"
                found.append(Problem("missing or added trace chunk", where, counts))
            elif where not in damaged and any(now[key] != then.get(key) for key in ("root", "n")):
                found.append(Problem("changed trace chunk", where, "its chunks are not the ones that were sealed"))
        return found

    def _check_declarations(self, episode: str, sealed: Mapping[str, StreamEntry]) -> list[Problem]:
        found: list[Problem] = []
        now = self._spec_digests(episode)
        for name in sorted({*now, *sealed}):
            where, then = f"{self._where} episode {episode} stream {name}", sealed.get(name)
            if then is None:
                found.append(Problem("unsealed trace", where, "this stream was not sealed"))
            elif "spec" in then and name not in now:
                found.append(Problem("changed stream declaration", where, "it is missing; it was sealed"))
            elif "spec" in then and now[name] != then["spec"]:
                text = "its columns, unit, rate or kind are not the ones that were sealed"
                found.append(Problem("changed stream declaration", where, text))
        return found

    def sync(self) -> None:
        """Have everything that was committed on the disk when this returns, if the store is durable. Raises
        StorageError.
        """
        for part in self._parts if self._durable else ():
            part.sync()

    def close(self) -> None:
        """Give the databases back. Idempotent."""
        for part in self._parts:
            part.close()

    def _spec(self, episode: str, stream: str) -> StreamSpec:
        key = (episode, stream)
        if key not in self._specs:
            self.streams(episode)
        if key not in self._specs:
            raise ValueError(f"episode {episode} has no declared stream {stream!r}")
        return self._specs[key]

    def _declarations(self, episode: str) -> list[tuple[str, str]]:
        """Name and text of each, by name. Raises BrokenRecord for a stream that both databases declare."""
        found = sorted(self._rows(f"SELECT name, spec FROM stream {_MINE}", _pair, episode=episode))
        for (name, _), (later, _) in pairwise(found):
            if name == later:
                where = f"{self._where} episode {episode} stream {name}"
                raise BrokenRecord(f"changed stream declaration: {where}: it is declared here and in seal/ too")
        return found

    def _declared(self, episode: str, name: str, text: str) -> StreamSpec:
        try:
            return _of_numbers(spec_of(json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            where = f"{self._where} episode {episode} stream {name}"
            raise BrokenRecord(f"changed stream declaration: {where}: it cannot be read: {in_words(error)}") from error

    def _spec_digests(self, episode: str) -> dict[str, str]:
        """By stream, as it is stored; what is no JSON has the digest of its text."""
        found: dict[str, str] = {}
        for name, text in self._declarations(episode):
            try:
                found[name] = digest(json.loads(text))
            except (ValueError, RecursionError):
                found[name] = digest(text)
        return found

    def _rows(self, question: str, make: Callable[..., Made], **values: str | int) -> list[Made]:
        """Of all databases, one after the other: what is ordered by stream stays together."""
        values["campaign"] = self.campaign
        return [row for part in self._parts for row in part.rows(question, make, **values)]

    def _commit(self, insert: Insert, rows: Sequence[tuple[StreamSpec, Row]]) -> None:
        for part in self._parts:
            mine = [row for spec, row in rows if self._parts[-1 if spec.arm_dependent else 0] is part]
            if mine:
                with part.transaction() as writer:
                    writer.execute(insert, mine)


def sealed_url(url: str) -> str:
    """Where a store keeps what tells arms apart."""
    path = database_backend.database_file(url)
    return database_backend.sqlite_url(path.parent / SEAL / path.name)


def _pair(name: str, text: str) -> tuple[str, str]:
    if type(name) is not str or type(text) is not str:
        raise BrokenRecord(f"changed stream declaration: {name!s:.60}: a column is not of its type")
    return name, text


def _time(newest: int) -> int:
    if type(newest) is not int:
        raise BrokenRecord("changed trace index: the time of the newest sample is no whole number")
    return newest
