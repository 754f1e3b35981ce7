"""Claims about a cut tail: however little was cut, the head beyond it names it, and says where the journal ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labctl.core.events import GENESIS, Event, event_hash
from labctl.store.chain_heads import Head, head_problems


def chain(n: int) -> list[Event]:
    events: list[Event] = []
    for seq in range(1, n + 1):
        prev = events[-1].hash if events else GENESIS
        event = Event(seq, "Deviation", seq, "b", "w", "run", prev=prev)
        events.append(replace(event, hash=event_hash(event)))
    return events


@pytest.mark.parametrize("cut", [1, 2, 5], ids="cut by {}".format)
def test_a_tail_is_named_however_little_was_cut(cut: int) -> None:
    events = chain(6)
    heads = [Head(event.seq, event.hash, "w") for event in (events[0], events[-1])]
    (problem,) = head_problems(heads, events[:-cut])
    assert (problem.what, problem.where) == ("cut tail", f"journal after seq {6 - cut}")
