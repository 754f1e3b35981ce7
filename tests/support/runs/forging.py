"""A record made anew by its owner: whoever can write the campaign's folder can make every hash in it fit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from labctl.core.events import Event, Kind, canonical, event_hash
from labctl.store.chain_heads import HEADS
from support.runs.campaigns import events_of


def every_item_moved(event: Event) -> Event:
    """An outcome turned into a perfect one; any other entry as it is."""
    if event.kind != Kind.OUTCOME_RECORDED:
        return event
    outcome = {**event.body["outcome"], "moved": event.body["outcome"]["items_staged"], "lost": 0, "remaining": 0}
    return replace(event, body={**event.body, "outcome": outcome})


def rehashed(events: Sequence[Event], change: Callable[[Event], Event]) -> list[Event]:
    """The chain with every entry changed and given the hash that fits."""
    made: list[Event] = []
    for event in events:
        changed = replace(change(event), prev=made[-1].hash if made else event.prev)
        made.append(replace(changed, hash=event_hash(changed)))
    return made


def forge(folder: Path, change: Callable[[Event], Event] = every_item_moved) -> list[Event]:
    """Rewrite a campaign's journal with every hash made to fit; its heads are left as they are."""
    made = rehashed(events_of(folder), change)
    with closing(sqlite3.connect(folder / "journal.db")) as raw, raw:
        for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        rows: list[tuple[Any, ...]] = [(canonical(e.body).decode(), e.prev, e.hash, e.seq) for e in made]
        raw.executemany("UPDATE event SET body = ?, prev = ?, hash = ? WHERE seq = ?", rows)
    return made


def rewrite_heads(folder: Path, events: Sequence[Event]) -> None:
    """Every line of heads.log again, with the hash that its entry has now."""
    hashes = {str(event.seq): event.hash for event in events}
    lines = [line.split() for line in (folder / HEADS).read_text().splitlines()]
    (folder / HEADS).write_text("".join(f"{seq} {hashes[seq]} {wall}\n" for seq, _, wall in lines))


def cut_heads(folder: Path, events: Sequence[Event]) -> None:
    """heads.log down to one head, of the first entry."""
    (folder / HEADS).write_text(f"1 {events[0].hash} {events[0].wall}\n")
