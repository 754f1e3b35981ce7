"""An evening of trials as a journal has it, told entry by entry, each so many seconds after the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.record import Record
from labctl.core.record_fold import record_of

SCHEDULE = [{"trial": f"t-{n}", "block": n // 2, "position": n % 2, "condition": "towels/layout-1"} for n in range(4)]
OPENED = {
    "campaign": "first",
    "commitment": "c" * 64,
    "schedule": SCHEDULE,
    "max_voids": 2,
    "void_reasons": ["arm_lost"],
    "items_staged": 4,
}


class Night:
    """A journal in which a given number of seconds passes before each entry."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now_s = 0.0
        self.boot = "boot"
        self.tell(0, Kind.CAMPAIGN_OPENED, **OPENED)

    def tell(
        self, after_s: float, event: Kind, trial: str | None = None, episode: str | None = None, /, **body: Any
    ) -> None:
        self.now_s += after_s
        seq, wall = len(self.events) + 1, f"2026-01-01T00:00:{len(self.events) % 60:02d}+00:00"
        at_ns = round(self.now_s * SECOND)
        self.events.append(Event(seq, event, at_ns, self.boot, wall, "run", trial, episode, body))

    def start(self, after_s: float = 0, *, recovered: Sequence[str] = ()) -> None:
        """recovered: a line for each conclusion and each recording that this start sealed, as `recover` has them."""
        self.tell(after_s, Kind.RUN_STARTED, pins={}, recovered=list(recovered))

    def session(self, *people: str) -> None:
        entries = [{"id": person, "roles": ["operator", "setter", "assessor"]} for person in people]
        self.tell(0, Kind.SESSION_OPENED, session=f"s-{len(self.events)}", people=entries)

    def begin(self, trial: str, *, reset_s: float = 60, staging_s: float = 30) -> None:
        self.tell(reset_s, Kind.TRIAL_STAGING, trial, setter="ana")
        self.tell(staging_s, Kind.SCENE_COMMITTED, trial, photo=None, snapshot={})
        self.tell(0, Kind.ARM_REVEALED, trial, f"e-{trial}", sealed="0" * 64)
        about = {"kind": "sim", "durable": True, "sealed": "0" * 64}
        self.tell(6, Kind.EPISODE_STARTED, trial, f"e-{trial}", **about)
        self.tell(0, Kind.GO, trial, f"e-{trial}", go_ns=round(self.now_s * SECOND))

    def end(self, trial: str, *, running_s: float = 100) -> None:
        end_ns = round((self.now_s + running_s) * SECOND)
        self.tell(running_s, Kind.EPISODE_ENDED, trial, f"e-{trial}", reason="budget", end_ns=end_ns)
        about = {"streams": {}, "root": "0" * 64, "videos": {}, "gaps": 0}
        self.tell(0, Kind.RECORDING_SEALED, trial, f"e-{trial}", **about)

    def score(self, trial: str, *, scoring_s: float = 20, **more: Any) -> None:
        counts = {"items_staged": 4, "moved": 4, "lost": 0, "remaining": 0, "end_reason": "budget"}
        self.tell(scoring_s, Kind.OUTCOME_RECORDED, trial, f"e-{trial}", outcome=counts, **more)

    def whole(self, trial: str, **seconds: float) -> None:
        self.begin(trial, reset_s=seconds.get("reset_s", 60))
        self.end(trial, running_s=seconds.get("running_s", 100))
        self.score(trial)

    @property
    def record(self) -> Record:
        return record_of(self.events)
