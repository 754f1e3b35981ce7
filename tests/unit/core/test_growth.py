"""What it costs to fold a campaign grows with its journal."""

from __future__ import annotations

import sys
from dataclasses import replace

from support.runs.handwritten_journal import BODIES, OPENED, PATHS, SCHEDULE, Book

from labctl.core.events import Event
from labctl.core.trial import State, fold


def calls(trials: int) -> int:
    """How many functions are called for so many trials, each of one episode: the same on every machine."""
    schedule = [{**SCHEDULE[0], "trial": f"t-{n}"} for n in range(trials)]
    events = [replace(Book().events[0], body={**OPENED, "schedule": schedule})]
    for n in range(trials):
        for kind in PATHS[State.SCORED]:
            seq = len(events) + 1
            events.append(Event(seq, kind, 0, "boot", "", "p-1", f"t-{n}", f"e-{n}", BODIES[kind]))
    made: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, what, more: made.append(what))
    try:
        fold(events)
    finally:
        sys.setprofile(before)
    return len(made)


def test_twice_the_trials_take_twice_the_work_and_not_four_times() -> None:
    assert calls(300) < 2.1 * calls(150)
