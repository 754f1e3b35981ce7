"""The chain's heads, kept outside the database: a cut tail or a rehashed chain cannot agree with them.

`heads.log` lies in the campaign's folder, so whoever can write that can rewrite it too. What binds its owner is a head,
or the commitment, that somebody noted elsewhere (`Noted`).

May not: open the journal or read a clock. One line per head in the campaign's `heads.log`: seq, hash, wall time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labctl.core.events import Event
from labctl.errors import BrokenRecord, InputError
from labctl.store.atomic_files import append_line, whole_lines
from labctl.store.journal import chain_problems
from labctl.store.problem import Problem

HEADS = "heads.log"
_LINE = re.compile(r"([0-9]{1,18}) ([0-9a-f]{64}) (\S+)")
_NOTED = re.compile(r"(?:([1-9][0-9]{0,17})(?:\s*:\s*|\s+))?([0-9a-f]{16,64})")
_DIGITS = re.compile(r"[0-9a-f]{16,64}")
NOT_CHECKED = "not checked against an outside head: whoever can write its folder can make all of it anew"


@dataclass(frozen=True, slots=True)
class Head:
    """What the last entry of the chain was at a wall-clock time (ISO 8601, UTC)."""

    seq: int
    hash: str
    wall: str


@dataclass(frozen=True, slots=True)
class Noted:
    """What somebody noted outside a campaign's folder: a head and the commitment, each 16 hexadecimal digits or more.
    seq: None where the head was noted without its position.
    """

    seq: int | None = None
    hash: str | None = None
    commitment: str | None = None


@dataclass(frozen=True, slots=True)
class Outside:
    """What binds a record from outside its folder: the head as N:HASH and how many entries it covers, of `entries`."""

    head: str | None
    covered: int
    entries: int
    commitment: str | None

    def __str__(self) -> str:
        text = NOT_CHECKED
        if self.head is not None:
            text = f"entries 1 to {self.covered} of {self.entries} are bound by the outside head {self.head}"
            after = self.entries - self.covered
            text += f"; the {after} after it are not" if after else ""
        return text if self.commitment is None else f"{text}; the commitment is the one given"


def append_head(folder: Path, seq: int, hash: str, wall: str) -> None:
    """Add a head to a campaign folder's log; on the disk when this returns. Raises StorageError."""
    append_line(folder / HEADS, f"{seq} {hash} {wall}")


def read_heads(folder: Path) -> list[Head]:
    """All heads of a campaign folder, in the order written. Raises BrokenRecord for a line that is not one."""
    found: list[Head] = []
    for number, line in enumerate(whole_lines(folder / HEADS), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise BrokenRecord(f"damaged heads.log: {folder / HEADS}:{number}: not a line of seq, hash and time")
        found.append(Head(int(match[1]), match[2], match[3]))
    return found


def chain_and_head_problems(
    folder: Path, events: Sequence[Event], heads: Sequence[Head] | None = None
) -> list[Problem]:
    """What is wrong with a campaign's chain, in itself and against its heads. Raises BrokenRecord for damaged heads.

    heads: read before the events, where somebody may be writing; None: read now.
    """
    heads = read_heads(folder) if heads is None else heads
    missing = (
        [] if heads else [Problem("missing heads.log", str(folder / HEADS), "no head stands outside the database")]
    )
    return chain_problems(events) + head_problems(heads, events) + missing


def head_problems(heads: Sequence[Head], events: Sequence[Event]) -> list[Problem]:
    """Where the chain disagrees with its heads: entries that are gone from the end, or whose hashes are other ones."""
    hashes = {event.seq: event.hash for event in events}
    last = max(hashes, default=0)
    found: list[Problem] = []
    for head in heads:
        if head.seq < 1:
            found.append(Problem("damaged heads.log", HEADS, f"it has entry {head.seq}; entries begin at 1"))
        elif head.seq > last:
            detail = f"{HEADS} has entry {head.seq} at {head.wall}, the journal ends at {last}"
            found.append(Problem("cut tail", f"journal after seq {last}", detail))
        elif head.seq in hashes and hashes[head.seq] != head.hash:
            detail = f"its hash is not the one {HEADS} holds since {head.wall}"
            found.append(Problem("rehashed chain", f"journal seq {head.seq}", detail))
    return found


def head_text(seq: int, hash: str) -> str:
    """A head as it is printed, and as --head takes it."""
    return f"{seq}:{hash}"


def noted(head: str | None, commitment: str | None) -> Noted:
    """What was given as --head (N:HASH; "N HASH" and HASH alone will do) and --commitment. Raises InputError."""
    found = Noted()
    if head is not None:
        match = _NOTED.fullmatch(head.strip().lower())
        if match is None:
            raise InputError(
                f"--head {head!r} is no head; give it as it was printed, N:HASH, 16 digits of HASH or more"
            )
        found = Noted(int(match[1]) if match[1] else None, match[2])
    if commitment is not None:
        digits = commitment.strip().lower()
        if _DIGITS.fullmatch(digits) is None:
            raise InputError(
                f"--commitment {commitment!r} is none; give what `labctl open` printed, 16 or more of its 64 digits"
            )
        found = replace(found, commitment=digits)
    return found


def noted_problems(noted: Noted, events: Sequence[Event]) -> list[Problem]:
    """Where a chain is not the one whose head or commitment was noted."""
    found: list[Problem] = []
    if noted.hash is not None and _entry(noted, events) is None:
        here = "no entry of the journal" if noted.seq is None else f"entry {noted.seq}"
        there = {event.seq: event.hash for event in events}
        detail = f"no entry has the hash {noted.hash[:16]}… that was given"
        if noted.seq in there:
            detail = f"its hash is {there[noted.seq][:16]}…, given was {noted.hash[:16]}…"
        elif noted.seq is not None:
            detail = f"the journal ends at {max(there, default=0)}"
        found.append(Problem("head not in chain", here, detail))
    if noted.commitment is not None:
        has = str(events[0].body.get("commitment", "none")) if events else "none"
        if not has.startswith(noted.commitment):
            detail = f"the campaign was opened with {has[:16]}…, given was {noted.commitment[:16]}…"
            found.append(Problem("another commitment", "journal seq 1", detail))
    return found


def outside(noted: Noted, events: Sequence[Event]) -> Outside:
    """What of a chain without problems the noted binds."""
    entry = _entry(noted, events)
    commitment = None if noted.commitment is None else str(events[0].body["commitment"])
    if entry is None:
        return Outside(None, 0, len(events), commitment)
    return Outside(head_text(entry.seq, entry.hash), entry.seq, len(events), commitment)


def _entry(noted: Noted, events: Sequence[Event]) -> Event | None:
    if noted.hash is None:
        return None
    fits = (event for event in events if event.hash.startswith(noted.hash))
    return next((event for event in fits if noted.seq in (None, event.seq)), None)
