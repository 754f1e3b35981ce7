"""Which waiting work fits into which shift, and when it is over. Pure.

May not: read a file or a clock, or plan a shift that nobody has.

Each entry in its turn takes what it can of the shifts in order: opening and closing a session in each, then whole
trials; what is left of a shift goes to the next entry. It is a forecast: nothing is reserved and nothing starts by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from labctl.clock import SECOND
from labctl.queue.lab_files import Shift


@dataclass(frozen=True, slots=True)
class Work:
    """What an entry has left. trial_s: at the rig for a scored trial, voids and breaks included; None: not known.
    source: where the times are from, in words; waits: it gets no time now.
    """

    name: str
    trials: int
    trial_s: float | None
    source: str
    waits: bool = False

    @property
    def hours(self) -> float | None:
        return None if self.trial_s is None else self.trials * self.trial_s / 3600


@dataclass(frozen=True, slots=True)
class Slot:
    """So many trials of an entry in a shift (its place in the list), its session opened and closed; ns since 1970."""

    name: str
    shift: int
    begins_ns: int
    ends_ns: int
    trials: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """ends_ns: by entry, of those that the shifts have time for; left: trials without a shift, of the others;
    free_s: what is left of each shift.
    """

    slots: Sequence[Slot] = ()
    ends_ns: dict[str, int] = field(default_factory=dict[str, int])
    left: dict[str, int] = field(default_factory=dict[str, int])
    free_s: Sequence[float] = ()


def forecast(works: Sequence[Work], shifts: Sequence[Shift], now_ns: int, overhead_s: float) -> Forecast:
    """works: in the order of their turn; overhead_s: to open and close a session. Shifts that are over get nothing."""
    at = [max(shift.begins_ns, now_ns) for shift in shifts]
    slots: list[Slot] = []
    ends: dict[str, int] = {}
    left: dict[str, int] = {}
    for work in works:
        if work.waits or work.trial_s is None:
            continue
        todo = work.trials
        for number, shift in enumerate(shifts):
            if todo == 0:
                break
            free_s = (shift.ends_ns - at[number]) / SECOND - overhead_s
            fits = min(todo, math.floor(free_s / work.trial_s + 1e-9))
            if fits < 1:
                continue
            over = at[number] + round((overhead_s + fits * work.trial_s) * SECOND)
            slots.append(Slot(work.name, number, at[number], over, fits))
            at[number], todo = over, todo - fits
            ends[work.name] = over
        if todo:
            ends.pop(work.name, None)
            left[work.name] = todo
    free = [max(0.0, (shift.ends_ns - begins) / SECOND) for shift, begins in zip(shifts, at, strict=True)]
    return Forecast(slots, ends, left, free)
