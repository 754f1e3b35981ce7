"""The assessor's queue on a simulated terminal: what stands in for a campaign, and how keys are pressed.

May not: assert anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from textual.pilot import Pilot

from labctl.clock import SECOND, Clock
from labctl.core.events import EndReason
from labctl.core.outcome import Outcome
from labctl.core.reviewed import Item, checked
from labctl.core.trial import State, Trial
from labctl.errors import InputError, StateError
from labctl.ui.review.review import Review
from support.screens.unhurried import Unhurried


def trial(name: str, moved: int = 2) -> Trial:
    outcome = Outcome(2, moved, 0, 2 - moved, EndReason.BUDGET)
    return Trial(
        name,
        0,
        0,
        "towels/layout-1",
        "trial 1 of 2",
        state=State.SCORED,
        episode=f"e-{name}",
        episodes=(f"e-{name}",),
        max_voids=3,
        outcome=outcome,
        ended=EndReason.BUDGET,
        go_ns=10 * SECOND,
        end_ns=70 * SECOND,
    )


def operation(at_s: float, result: str = "success") -> dict[str, Any]:
    return {"op_index": 0, "result": result, "t_ns": round((10 + at_s) * SECOND), "cause": None}


class Book:
    """What stands in for a campaign: two episodes, the second of which the detector saw otherwise."""

    def __init__(self) -> None:
        self.items = [
            Item(trial("t-b"), [operation(5.0)], counted=2),
            Item(trial("t-a"), [operation(4.0), operation(9.0)]),
        ]
        self.saved: list[tuple[str, list[dict[str, Any]]]] = []
        self.watched: list[str] = []
        self.corrected: list[tuple[str, dict[str, Any], str]] = []
        self.looked: list[tuple[str, int, float]] = []
        self.finished = 0

    def load(self) -> list[Item]:
        return sorted(self.items, key=lambda item: item.reviewed is not None)

    def look(self, episode: str, camera: int, at_s: Sequence[float], width: int) -> tuple[str, list[Any]]:
        self.looked.append((episode, camera, at_s[len(at_s) // 2]))
        return f"camera-{camera % 2}", [(at, np.full((24, 32, 3), 90, np.uint8)) for at in at_s]

    def save(self, name: str, operations: list[dict[str, Any]], seen: int) -> None:
        item = next(item for item in self.items if item.trial.id == name)
        item.reviewed = checked(item.trial, operations)
        self.saved.append((name, item.reviewed))

    def finish(self) -> str:
        self.finished += 1
        if self.finished == 1:
            raise StateError("it is open; its review is finished once it is closed")
        return "reviewed; next: freeze"

    def correct(self, name: str, outcome: Any, why: str, seen: int) -> None:
        if outcome["moved"] > 2:
            raise InputError("more than were staged")
        self.corrected.append((name, dict(outcome), why))
        item = next(item for item in self.items if item.trial.id == name)
        counts = {key: outcome[key] for key in ("items_staged", "moved", "lost", "remaining")}
        item.trial = replace(item.trial, outcome=Outcome(**counts, end_reason=EndReason.BUDGET))


class Sorted(Book):
    """As a campaign's queue is: what disagrees most comes first, so a correction sends an episode further back."""

    def __init__(self) -> None:
        super().__init__()
        self.items = [self.items[1], replace(self.items[0], counted=None)]

    def load(self) -> list[Item]:
        return sorted(self.items, key=lambda item: (item.reviewed is not None, -len(item.differences)))


class Agreeing(Book):
    """Three episodes on which all witnesses agree."""

    def __init__(self) -> None:
        super().__init__()
        self.items = [Item(trial(name), [operation(4.0), operation(9.0)]) for name in ("t-a", "t-b", "t-c")]


def reviewing(
    play: Callable[[Pilot[Any], Callable[[], str]], Awaitable[None]],
    book: Book | None = None,
    hands: Clock | None = None,
    size: tuple[int, int] = (110, 30),
) -> Book:
    book, hands = book or Book(), hands or Unhurried()

    async def session() -> None:
        app = Review(book.load, book.save, book.correct, book.watched.append, book.look, book.finish, hands=hands)
        async with app.run_test(size=size) as pilot:

            def text() -> str:
                strips = app.screen._compositor.render_strips()
                return "\n".join("".join(segment.text for segment in strip) for strip in strips)

            await pilot.pause()
            await play(pilot, text)

    asyncio.run(session())
    return book
