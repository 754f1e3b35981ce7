"""A journal of a few trials that a test writes entry by entry, cuts anywhere and settles as a run does at start.

May not: assert anything.
"""

from __future__ import annotations

from typing import Any

from labctl.core.events import Event, Kind
from labctl.core.recovery import Pending, reconcile
from labctl.core.trial import State, advance, fold

OUTCOME = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1, "end_reason": "budget"}
SECOND = 1_000_000_000


class Book:
    """A journal under a clock of its own: an event a second."""

    def __init__(self, trials: int = 3, max_voids: int = 2) -> None:
        self.events: list[Event] = []
        self.state = fold([])
        self.attempt = 0
        slots = [{"trial": f"t-{n}", "block": n, "position": 0, "condition": "towels/a"} for n in range(trials)]
        self.add(
            Kind.CAMPAIGN_OPENED, body={"schedule": slots, "max_voids": max_voids, "void_reasons": ["process_lost"]}
        )

    def make(self, kind: str, trial: str | None, episode: str | None, body: Any) -> Event:
        seq = len(self.events) + 1
        return Event(seq, kind, seq * SECOND, "boot", "", "p-1", trial, episode, body)

    def add(self, kind: str, trial: str | None = None, episode: str | None = None, body: Any = None) -> None:
        event = self.make(kind, trial, episode, body or {})
        self.state = advance(self.state, event)
        self.events.append(event)

    def fitting(self, kind: str, name: str) -> Event:
        """The event of a kind that would suit the trial best."""
        trial = self.state.trials[name]
        now_ns = len(self.events) * SECOND
        bodies: dict[str, Any] = {
            Kind.EPISODE_STARTED: {"budget_s": 60.0},
            Kind.GO: {"go_ns": now_ns},
            Kind.OPERATION_RECORDED: {"op_index": 0, "result": "success", "t_ns": now_ns},
            Kind.EPISODE_ENDED: {"reason": "budget", "end_ns": now_ns + SECOND},
            Kind.OUTCOME_RECORDED: {"outcome": OUTCOME},
            Kind.OUTCOME_CORRECTED: {
                "old": trial.outcome.body() if trial.outcome else {},
                "new": OUTCOME,
                "why": "again",
            },
            Kind.EPISODE_VOIDED: {"reason": "process_lost", "evidence": 1, "after_go": trial.go_ns is not None},
        }
        episode = trial.episode
        if kind == Kind.ARM_REVEALED:
            self.attempt += 1
            episode = f"e-{self.attempt}"
        return self.make(kind, name, episode, bodies.get(kind, {"reason": "a reason"}))

    def on(self, kind: str, name: str = "t-0") -> None:
        event = self.fitting(kind, name)
        self.add(event.kind, event.trial, event.episode, event.body)

    def settle(self, rule_: Any = "void", last: dict[str, int] | None = None) -> list[Pending]:
        """What a run does at start: append what is concluded, seal what ended, ask again until nothing is left."""
        said: list[Pending] = []
        for _ in range(10):
            pending = reconcile(self.events, rule=rule_, last_sample_ns=last or {})
            for item in pending:
                self.add(item.kind, item.trial, item.episode, item.body)
            said += pending
            unsealed = [t for t in self.state.trials.values() if t.state == State.SCORING and not t.sealed_recording]
            for trial in unsealed:
                self.add(Kind.RECORDING_SEALED, trial.id, trial.episode)
            if not pending and not unsealed:
                return said
        raise AssertionError("recovery does not come to rest")


def prefix(book: Book, length: int) -> Book:
    """A journal that was cut after some events."""
    cut = Book.__new__(Book)
    cut.events, cut.attempt = book.events[:length], book.attempt
    cut.state = fold(cut.events)
    return cut


TO_ARMED = (Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED, Kind.ARM_REVEALED)


def book_after(*kinds: Kind) -> Book:
    book = Book()
    for kind in kinds:
        book.on(kind)
    return book
