"""Switches of the instruction that controllers took in mid-episode, from the journal. Pure.

May not: count a switch that no controller said it took. What may be scripted is in `labctl.config.switches`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labctl.core.events import Event, Kind


@dataclass(frozen=True, slots=True)
class Taken:
    """A switch of an episode that its controller took: when it was planned and when it was taken, monotonic ns."""

    number: int
    name: str
    instruction: str
    planned_ns: int
    t_ns: int


def taken(events: Iterable[Event]) -> dict[str, list[Taken]]:
    """Every episode in which a controller took a switch, in order; of each its switches in order."""
    found: dict[str, list[Taken]] = {}
    for event in events:
        if event.kind == Kind.INSTRUCTION_SWITCHED and event.episode:
            found.setdefault(event.episode, []).append(Taken(**event.body))
    return found


def switch_words(body: Mapping[str, Any]) -> str:
    """The event as a person would say it."""
    return f"switch {body['name']}: {body['instruction']}"
