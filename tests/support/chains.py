"""Chains of entries without a journal, for tests of what is looked for in them."""

from __future__ import annotations

from dataclasses import replace

from labctl.core.events import GENESIS, Event, Kind, event_hash


def chain(n: int, text: str = "x") -> list[Event]:
    """Entries 1 to n, each bound to the one before."""
    events: list[Event] = []
    for seq in range(1, n + 1):
        prev = events[-1].hash if events else GENESIS
        event = Event(seq, Kind.DEVIATION, seq, "b", "w", "run", body={"text": text}, prev=prev)
        events.append(replace(event, hash=event_hash(event)))
    return events
