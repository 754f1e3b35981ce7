"""What a lab's site and its assessors have passed: a journal of its own, LAB/qualifications, that is only added to.

May not: judge, or let a result be taken back: whoever fails may try again, and both stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TypedDict

from labctl.bus import Body
from labctl.clock import SECOND, Anchor, Clock, MonotonicClock
from labctl.core.events import Event
from labctl.errors import BrokenRecord
from labctl.store.atomic_files import folder_in_one_step
from labctl.store.chain_heads import append_head, chain_and_head_problems, read_heads
from labctl.store.database_backend import sqlite_url
from labctl.store.journal import Journal, events_of
from labctl.store.lab_folder import JOURNAL
from labctl.store.locks import lab_lock

FOLDER = "qualifications"
_PATIENCE_NS = 10 * SECOND


class Kind(StrEnum):
    """What is written there."""

    SITE = "SiteChecked"
    ASSESSOR = "AssessorCalibrated"


class Calibrated(TypedDict):
    """An assessor's latest result. since: wall clock of the first entry that passed, "" for none."""

    person: str
    tries: int
    passed: bool
    since: str
    kappa: float | None
    interval: Sequence[float] | None


def qualifications(lab: Path) -> list[Event]:
    """All entries; none where nothing was qualified. Raises BrokenRecord for a chain that does not hold."""
    folder = lab / FOLDER
    if not (folder / JOURNAL).is_file():
        return []
    heads = read_heads(folder)  # before the entries: somebody may be writing
    events = events_of(folder)
    if problems := chain_and_head_problems(folder, events, heads):
        raise BrokenRecord(f"{folder}: {problems[0]}; restore it from a backup")
    return events


def write_down(lab: Path, kind: Kind, body: Body, *, who: str, clock: Clock | None = None) -> Event:
    """Add an entry. Raises StorageError, StateError while another writes, BrokenRecord."""
    folder, now = lab / FOLDER, clock or MonotonicClock()
    what = "the lab's qualifications"
    with lab_lock(lab, "qualify", "qualify", what=what, clock=now, patience_ns=_PATIENCE_NS):
        if qualifications(lab):
            return _append(Journal.open, folder, kind, now.anchor(), who, body)
        with folder_in_one_step(folder, mode=0o700) as making:  # it appears with its first entry or not at all
            return _append(Journal.create, making, kind, now.anchor(), who, body)


def _append(
    make: Callable[[str, str], Journal], folder: Path, kind: Kind, anchor: Anchor, who: str, body: Body
) -> Event:
    journal = make(sqlite_url(folder / JOURNAL), FOLDER)
    try:
        event = journal.append(kind, anchor=anchor, who=who, body=body)
        append_head(folder, event.seq, event.hash, event.wall)
    finally:
        journal.close()
    return event


def site_checks(events: Sequence[Event]) -> list[Event]:
    """The entries on the site, in order."""
    return [event for event in events if event.kind == Kind.SITE]


def calibrated(events: Sequence[Event]) -> dict[str, Calibrated]:
    """Every assessor by id, in the order of their first try."""
    found: dict[str, Calibrated] = {}
    for event in events:
        if event.kind != Kind.ASSESSOR:
            continue
        body: Mapping[str, object] = event.body
        person, passed = str(body["person"]), bool(body["passed"])
        before = found.get(person)
        since = before["since"] if before and before["since"] else str(event.wall) if passed else ""
        kappa, interval = body.get("kappa"), body.get("interval")
        found[person] = {
            "person": person,
            "tries": (before["tries"] if before else 0) + 1,
            "passed": passed or bool(before and before["passed"]),
            "since": since,
            "kappa": kappa if isinstance(kappa, float) else None,
            "interval": interval if isinstance(interval, list) else None,
        }
    return found
