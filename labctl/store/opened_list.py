"""Every campaign that a lab ever opened, in a chain of lines: one that was thrown away is still in it.

May not: hold anything that names an arm. LAB/opened.log, a line per campaign, written before its folder is there:
hash, then JSON of prev (the hash before), campaign, protocol, protocol_sha256, commitment, wall. A lab that deletes the
whole file is not found out by it; whoever noted an earlier hash finds out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from labctl.clock import SECOND, Clock
from labctl.core.events import GENESIS, canonical
from labctl.errors import BrokenRecord
from labctl.store.atomic_files import append_line, whole_lines
from labctl.store.lab_folder import MARK
from labctl.store.locks import lab_lock
from labctl.store.problem import Problem

OPENED = "opened.log"
PATIENCE_NS = 10 * SECOND


@dataclass(frozen=True, slots=True)
class OpenedOnce:
    """One line: protocol is the name in its file; wall is ISO 8601, UTC."""

    prev: str
    campaign: str
    protocol: str
    protocol_sha256: str
    commitment: str
    wall: str

    @property
    def hash(self) -> str:
        return hashlib.sha256(canonical(asdict(self))).hexdigest()


def opened_in(lab: Path) -> list[OpenedOnce]:
    """All lines, in order; [] where the lab has no such file. Raises BrokenRecord for a line that does not follow."""
    found: list[OpenedOnce] = []
    for number, line in enumerate(whole_lines(lab / OPENED), 1):
        digest, _, text = line.partition(" ")
        try:
            entry = OpenedOnce(**json.loads(text))
            own = entry.hash
        except (ValueError, TypeError, RecursionError):
            raise _broken(lab, number, "it cannot be read") from None
        if own != digest:
            raise _broken(lab, number, "it was changed")
        if entry.prev != (found[-1].hash if found else GENESIS):
            raise _broken(lab, number, "a line before it is gone or was changed")
        found.append(entry)
    return found


def add_opened(
    lab: Path, clock: Clock, *, campaign: str, protocol: str, protocol_sha256: str, commitment: str, wall: str
) -> None:
    """Add a campaign that is about to be opened; on the disk when this returns.

    Raises BrokenRecord for a list that does not hold, StorageError, StateError while another verb opens one.
    """
    what = "this lab's list of campaigns"
    with lab_lock(lab, "opened", "open", what=what, clock=clock, patience_ns=PATIENCE_NS):
        before: Sequence[OpenedOnce] = opened_in(lab)
        prev = before[-1].hash if before else GENESIS
        entry = OpenedOnce(prev, campaign, protocol, protocol_sha256, commitment, wall)
        append_line(lab / OPENED, f"{entry.hash} {canonical(asdict(entry)).decode()}")


def problems_of(lab: Path, commitment: str) -> tuple[list[Problem], list[str]]:
    """Whether the list of the lab that holds the campaign of this commitment holds, and facts about it that break
    nothing. Nothing where there is no lab: a copy elsewhere.
    """
    if not (lab / OPENED).is_file():
        none = "this lab has no list of what it opened (opened.log): what else was tried is not known"
        return [], [none] if (lab / MARK).is_file() else []
    try:
        entries = opened_in(lab)
    except BrokenRecord as error:
        return [Problem("broken list of opened campaigns", OPENED, str(error))], []
    if any(entry.commitment == commitment for entry in entries):
        return [], []
    return [], [f"{OPENED} of this lab does not have it: opened elsewhere, before there was a list, or taken out of it"]


def _broken(lab: Path, number: int, why: str) -> BrokenRecord:
    return BrokenRecord(f"{lab / OPENED}:{number}: this lab's list of opened campaigns is broken: {why}")
