"""The queue as `labctl queue` shows it, the same for a screen and as JSON.

May not: hold anything from the seal: whoever operates reads this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from labctl.checks.protocol_size import Effort
from labctl.clock import wall_ns, wall_of
from labctl.errors import InputError
from labctl.queue.book import Book
from labctl.queue.entries import OVER, Step
from labctl.queue.estimates import works
from labctl.queue.forecast import forecast
from labctl.queue.lab_files import Shift, read_shifts
from labctl.queue.standing import ended


class Fits(TypedDict):
    """So many trials of an entry in a shift; times in UTC."""

    begins: str
    ends: str
    trials: int
    who: list[str]


class Waits(TypedDict):
    """An entry in its turn. trials: left of it; hours: at the rig, null where they are not known; times: where they are
    from; ends: expected, null where the shifts have no time for `left_over` trials of it, or it gets none.
    """

    name: str
    kind: str
    priority: int
    paused: str
    trials: int
    hours: float | None
    times: str
    fits: list[Fits]
    ends: str | None
    left_over: int


class OnShift(TypedDict):
    """A shift that is not over. free_h: what no entry takes; not_blind: of `who`, those who read what is sealed of a
    submission that is an arm by now, or may become one.
    """

    begins: str
    ends: str
    who: list[str]
    entries: list[str]
    free_h: float
    not_blind: list[str]


class Submitted(TypedDict):
    """A submission, by its id. entered: the protocol that has it as an arm, or had it until it was withdrawn; ended:
    why one that is under way can become no arm any more, as it has expired; null where it can.
    """

    submission: str
    wished: str
    step: str
    expires: str
    entered: str | None
    ended: str | None


class Shown(TypedDict):
    """`labctl queue`. head: of the queue's own chain; faults: what is wrong with shifts.toml or queue-keys.toml, and
    not counted with: a line of each, with its place.
    """

    schema: str
    lab: str
    at: str
    head: str
    entries: list[Waits]
    shifts: list[OnShift]
    submissions: list[Submitted]
    faults: list[str]


def shown(lab: Path, found: Book, wall: str) -> Shown:
    """wall: now, ISO 8601. A file of the lab's that is wrong is said, and everything else is shown without it."""
    now_ns = wall_ns(wall)
    over, faults = ended(found, wall)
    shifts: list[Shift] = []
    try:
        shifts += [shift for shift in read_shifts(lab) if shift.ends_ns > now_ns]
    except InputError as error:
        faults.append(error)
    work = works(lab, found.queue, over)
    fits = forecast(work, shifts, now_ns, Effort().session_overhead_s)
    entries: list[Waits] = []
    for entry, one in zip(found.queue.entries, work, strict=True):
        mine = [slot for slot in fits.slots if slot.name == entry.name]
        ends = fits.ends_ns.get(entry.name)
        entries.append(
            {
                "name": entry.name,
                "kind": entry.kind,
                "priority": entry.priority,
                "paused": entry.paused,
                "trials": one.trials,
                "hours": one.hours,
                "times": one.source,
                "fits": [
                    {
                        "begins": wall_of(slot.begins_ns),
                        "ends": wall_of(slot.ends_ns),
                        "trials": slot.trials,
                        "who": list(shifts[slot.shift].who),
                    }
                    for slot in mine
                ],
                "ends": wall_of(ends) if ends else None,
                "left_over": fits.left.get(entry.name, 0),
            }
        )
    return {
        "schema": "labctl.queue/1",
        "lab": str(lab),
        "at": wall,
        "head": found.head,
        "entries": entries,
        "shifts": [
            {
                "begins": wall_of(shift.begins_ns),
                "ends": wall_of(shift.ends_ns),
                "who": list(shift.who),
                "entries": [slot.name for slot in fits.slots if slot.shift == number],
                "free_h": fits.free_s[number] / 3600,
                "not_blind": not_blind(shift, found),
            }
            for number, shift in enumerate(shifts)
        ],
        "submissions": [
            {
                "submission": one.id,
                "wished": one.wished,
                "step": str(one.step),
                "expires": one.expires,
                "entered": one.entered,
                "ended": over.get(one.id),
            }
            for one in found.queue.submissions.values()
        ],
        "faults": [str(fault) for fault in faults],
    }


def not_blind(shift: Shift, found: Book) -> list[str]:
    """Who of a shift has read whose a submission is that is an arm, or may become one."""
    readers: set[str] = set()
    for one in found.queue.submissions.values():
        if one.entered is not None or one.step not in OVER:
            readers |= set(one.read_by)
    return [person for person in shift.who if person in readers]


def open_submissions(listed: Sequence[Submitted]) -> list[Submitted]:
    """Those that still want something of somebody, as to be withdrawn once they ended."""
    over = {str(step) for step in OVER} | {str(Step.APPROVED)}
    return [one for one in listed if one["step"] not in over or one["ended"]]
