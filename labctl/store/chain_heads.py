"""The chain's heads, kept outside the database: a cut tail or a rehashed chain cannot agree with them.

May not: open the journal or read a clock. One line per head in the campaign's `heads.log`: seq, hash, wall time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.core.events import Event
from labctl.errors import BrokenRecord
from labctl.store.atomic_files import append_line, whole_lines
from labctl.store.journal import chain_problems
from labctl.store.problem import Problem

HEADS = "heads.log"
_LINE = re.compile(r"(\d+) ([0-9a-f]{64}) (\S+)")


@dataclass(frozen=True, slots=True)
class Head:
    """What the last entry of the chain was at a wall-clock time (ISO 8601, UTC)."""

    seq: int
    hash: str
    wall: str


def append_head(folder: Path, seq: int, hash: str, wall: str, *, durable: bool = True) -> None:
    """Add a head to a campaign folder's log; on the disk when this returns (durable). Raises StorageError."""
    append_line(folder / HEADS, f"{seq} {hash} {wall}", durable=durable)


def read_heads(folder: Path) -> list[Head]:
    """All heads of a campaign folder, in the order written. Raises BrokenRecord for a line that is not one."""
    found = []
    for number, line in enumerate(whole_lines(folder / HEADS), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise BrokenRecord(f"damaged heads.log: {folder / HEADS}:{number}: not a line of seq, hash and time")
        found.append(Head(int(match[1]), match[2], match[3]))
    return found


def chain_and_head_problems(folder: Path, events: Sequence[Event]) -> list[Problem]:
    """What is wrong with a campaign's chain, in itself and against its heads. Raises BrokenRecord for damaged heads."""
    heads = read_heads(folder)
    missing = (
        [] if heads else [Problem("missing heads.log", str(folder / HEADS), "no head stands outside the database")]
    )
    return chain_problems(events) + head_problems(heads, events) + missing


def head_problems(heads: Sequence[Head], events: Sequence[Event]) -> list[Problem]:
    """Where the chain disagrees with its heads: entries that are gone from the end, or whose hashes are other ones."""
    hashes = {event.seq: event.hash for event in events}
    last = max(hashes, default=0)
    found = []
    for head in heads:
        if head.seq > last:
            detail = f"{HEADS} has entry {head.seq} at {head.wall}, the journal ends at {last}"
            found.append(Problem("cut tail", f"journal after seq {last}", detail))
        elif head.seq in hashes and hashes[head.seq] != head.hash:
            detail = f"its hash is not the one {HEADS} holds since {head.wall}"
            found.append(Problem("rehashed chain", f"journal seq {head.seq}", detail))
    return found
