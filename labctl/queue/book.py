"""The queue on the disk: a journal of its own by the store's parts (chained, append-only, heads beside it), a lock, and
a sealed folder for what a blind role must not read.

May not: let anything be appended that may not follow, or put into the journal what is in the seal.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Anchor, Clock
from labctl.core.events import GENESIS, Event
from labctl.errors import BrokenRecord, StateError
from labctl.plain import Json
from labctl.queue.entries import Did, Queue, after, fold
from labctl.store.atomic_files import folder_in_one_step, replace_file
from labctl.store.chain_heads import append_head, chain_and_head_problems, head_text, read_heads
from labctl.store.database_backend import sqlite_url
from labctl.store.journal import Journal
from labctl.store.locks import lab_lock
from labctl.store.problem import Problem

FOLDER, DATABASE, SEAL, NAME = "queue", "queue.db", "sealed", "queue"
LOOK = "labctl queue verify"
NONE = head_text(0, GENESIS)  # the head of a queue that is not there
PRIVATE, OWNER_ONLY = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class Book:
    """A lab's queue as it was read, with the head of its chain."""

    lab: Path
    queue: Queue
    head: str

    def sealed(self, id: str, part: str = "request") -> dict[str, Json]:
        """What is sealed of a submission: "request", or its newest "dry-run". Raises BrokenRecord, StateError."""
        names = [name for name in self.queue.submission(id).sealed if part in name]
        if not names:
            raise StateError(f"submission {id} has no {part} yet")
        return unsealed(self.lab, names[-1], self.queue.submission(id).sealed[names[-1]])


def read(lab: Path) -> Book:
    """The queue of a lab; an empty one where nothing was ever put into it. Raises BrokenRecord, StorageError."""
    if not (lab / FOLDER).is_dir():
        return Book(lab, Queue(), NONE)
    events, problems = _looked(lab)
    if problems:
        raise BrokenRecord(f"the queue's record does not hold: {problems[0]}; see: {LOOK}")
    return Book(lab, fold(events), head_text(events[-1].seq, events[-1].hash))


def verify(lab: Path) -> tuple[int, str, list[Problem]]:
    """How many entries there are, the head, and what does not hold: chain, heads, order of entries, sealed files."""
    if not (lab / FOLDER).is_dir():
        return 0, NONE, []
    events, problems = _looked(lab)
    try:
        submissions = fold(events).submissions.values()
    except BrokenRecord as error:
        submissions = ()
        problems.append(Problem("impossible entry", FOLDER, str(error)))
    for submission in submissions:
        for name, digest in submission.sealed.items():
            try:
                unsealed(lab, name, digest)
            except BrokenRecord as error:
                problems.append(Problem("broken seal", f"{FOLDER}/{SEAL}/{name}", str(error)))
    last = events[-1] if events else None
    return len(events), head_text(last.seq, last.hash) if last else NONE, problems


class Writer:
    """The one writer of a queue, while its lock is held. A queue that is not there yet is made with its first entry."""

    def __init__(self, lab: Path, journal: Journal | None, queue: Queue, clock: Clock, who: str) -> None:
        self.lab, self.queue, self.clock, self.who = lab, queue, clock, who
        self._journal = journal

    @property
    def book(self) -> Book:
        """The same to read from."""
        return Book(self.lab, self.queue, NONE if self._journal is None else head_text(*self._journal.head()))

    def log(self, did: Did, body: Mapping[str, Json], *, once: str | None = None) -> str:
        """Commit an entry; the head after it. once: what may be in the queue one single time, ever.

        Raises StateError before anything is written for an entry that may not follow, DuplicateCommand for `once`.
        """
        anchor = self.clock.anchor()
        self.queue = after(self.queue, _event(did, body, anchor, self.who))
        event = self._made().append(did, anchor=anchor, who=self.who, body=dict(body), command_id=once)
        append_head(self.lab / FOLDER, event.seq, event.hash, anchor.wall)
        return head_text(event.seq, event.hash)

    def seal(self, name: str, content: Mapping[str, Json]) -> dict[str, str]:
        """Put something into the seal, on the disk when this returns; {its file: digest} for the journal. Until an
        entry names it, it is not there. The salt keeps the digest from telling what was guessed.
        """
        self._made()
        data = json.dumps({"salt": secrets.token_hex(32), **content}, indent=1, ensure_ascii=False).encode()
        replace_file(self.lab / FOLDER / SEAL / name, data, mode=OWNER_ONLY)
        return {name: hashlib.sha256(data).hexdigest()}

    def unseal(self, sealed: Mapping[str, str]) -> None:
        """Take files away again that no entry names, as nothing came of them."""
        for name in sealed:
            (self.lab / FOLDER / SEAL / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()

    def _made(self) -> Journal:
        if self._journal is None:
            _make(self.lab, self.clock, self.who)
            self._journal = _journal(self.lab)
        return self._journal


@contextmanager
def writing(lab: Path, verb: str, clock: Clock, who: str) -> Generator[Writer, None, None]:
    """Hold a lab's queue to write to it. Raises StateError naming who holds it, BrokenRecord for one whose chain does
    not hold, StorageError.
    """
    with lab_lock(lab, "queue", f"queue {verb}", what="the queue", clock=clock):
        there = (lab / FOLDER).is_dir()
        events, problems = _looked(lab) if there else ([], [])
        if problems:
            raise BrokenRecord(
                f"the queue's record does not hold: {problems[0]}; nothing more is written to it; see: {LOOK}"
            )
        writer = Writer(lab, _journal(lab) if there else None, fold(events), clock, who)
        try:
            yield writer
        finally:
            writer.close()


def unsealed(lab: Path, name: str, digest: str) -> dict[str, Json]:
    """A file of the seal as it was put there. Raises BrokenRecord."""
    path = lab / FOLDER / SEAL / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BrokenRecord(f"{path} cannot be read ({error.strerror}); restore it from a backup") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise BrokenRecord(f"{path} is not what was sealed; restore it from a backup")
    return json.loads(data)


def _event(did: Did, body: Mapping[str, Json], anchor: Anchor, who: str) -> Event:
    return Event(0, did, anchor.mono_ns, anchor.boot, anchor.wall, who, body=dict(body))


def _looked(lab: Path) -> tuple[list[Event], list[Problem]]:
    folder = lab / FOLDER
    heads = read_heads(folder)  # before the entries: somebody may be writing
    journal = _journal(lab, readonly=True)
    try:
        events = journal.events()
    finally:
        journal.close()
    return events, chain_and_head_problems(folder, events, heads)


def _journal(lab: Path, *, readonly: bool = False) -> Journal:
    return Journal.open(sqlite_url(lab / FOLDER / DATABASE), NAME, readonly=readonly)


def _make(lab: Path, clock: Clock, who: str) -> None:
    """The folder appears whole or not at all."""
    with folder_in_one_step(lab / FOLDER, mode=PRIVATE) as making:
        (making / SEAL).mkdir(mode=PRIVATE)
        journal = Journal.create(sqlite_url(making / DATABASE), NAME)
        try:
            anchor = clock.anchor()
            event = journal.append(Did.QUEUE_OPENED, anchor=anchor, who=who)
            append_head(making, event.seq, event.hash, anchor.wall)
        finally:
            journal.close()
