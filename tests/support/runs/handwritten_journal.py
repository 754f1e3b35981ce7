"""A journal written by hand, for claims about the trial table and the campaign's phases."""

from __future__ import annotations

from typing import Any

from labctl.core.events import Event, Kind
from labctl.core.interlock import Hold
from labctl.core.trial import State, advance, fold

OUTCOME = {"items_staged": 4, "moved": 3, "lost": 1, "remaining": 0, "end_reason": "all_done"}
STANDING = {**OUTCOME, "notes": "", "stage_reached": None}
SCHEDULE = [{"trial": f"t-{n}", "block": n // 2, "position": n % 2, "condition": "towels/layout-1"} for n in range(4)]
OPENED = {"schedule": SCHEDULE, "max_voids": 2, "void_reasons": ["process_lost", "arm_lost", "hardware_fault"]}
HOLD = Hold("arm_stale", "the robot was never heard", "the robot's process answers again")

# A body that would be accepted if the state were right.
BODIES: dict[str, dict[str, Any]] = {
    Kind.TRIAL_STAGING: {"setter": "p-1"},
    Kind.TRIAL_SKIPPED: {"reason": "closed"},
    Kind.SCENE_COMMITTED: {"photo": None, "snapshot": {}},
    Kind.TRIAL_RELEASED: {"reason": "a towel was missing"},
    Kind.ARM_REVEALED: {"sealed": "0" * 64},
    Kind.EPISODE_STARTED: {"budget_s": 120.0, "items_staged": 4},
    Kind.GO: {"go_ns": 100},
    Kind.OPERATION_RECORDED: {"op_index": 0, "result": "success", "t_ns": 150, "cause": None},
    Kind.EPISODE_ENDED: {"reason": "all_done", "end_ns": 200},
    Kind.RECORDING_SEALED: {"streams": {}, "root": "0" * 64, "videos": {}, "gaps": 0},
    Kind.OUTCOME_RECORDED: {"outcome": OUTCOME},
    Kind.OUTCOME_CORRECTED: {"old": STANDING, "new": {**OUTCOME, "moved": 4, "lost": 0}, "why": "it was under a towel"},
    Kind.EPISODE_VOIDED: {"reason": "arm_lost", "evidence": 2, "confirmed_by": None, "after_go": False},
}
EPISODIC = set(BODIES) - {Kind.TRIAL_STAGING, Kind.TRIAL_SKIPPED, Kind.SCENE_COMMITTED, Kind.TRIAL_RELEASED}
TO_ARMED = (Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED, Kind.ARM_REVEALED)
TO_SCORING = (*TO_ARMED, Kind.EPISODE_STARTED, Kind.GO, Kind.EPISODE_ENDED)
PATHS: dict[State, tuple[Kind, ...]] = {
    State.PLANNED: (),
    State.STAGING: TO_ARMED[:1],
    State.COMMITTED: TO_ARMED[:2],
    State.ARMED: TO_ARMED,
    State.RUNNING: (*TO_ARMED, Kind.EPISODE_STARTED),
    State.SCORING: (*TO_SCORING, Kind.RECORDING_SEALED),
    State.SCORED: (*TO_SCORING, Kind.RECORDING_SEALED, Kind.OUTCOME_RECORDED),
    State.NOT_RUN: (Kind.TRIAL_SKIPPED,),
}


class Book:
    """A journal written by hand: every event is folded in as it is added."""

    def __init__(self, *kinds: Kind) -> None:
        self.events: list[Event] = []
        self.state = fold([])
        self.attempt = 0
        self.add(Kind.CAMPAIGN_OPENED, **OPENED)
        for kind in kinds:
            self.on(kind)

    def add(
        self, kind: Kind, trial: str | None = None, episode: str | None = None, who: str = "p-1", **body: Any
    ) -> None:
        seq = len(self.events) + 1
        event = Event(seq, kind, seq * 1000, "boot", "2026-01-01T00:00:00Z", who, trial, episode, body, hash=f"h{seq}")
        self.state = advance(self.state, event)
        self.events.append(event)

    def on(self, kind: Kind, trial: str = "t-0", who: str = "p-1", **changes: Any) -> None:
        """An event about a trial, acceptable but for `changes`."""
        if kind == Kind.ARM_REVEALED:
            self.attempt += 1
        episode = changes.pop("episode", f"e-{self.attempt}") if kind in EPISODIC else None
        self.add(kind, trial, episode, who, **{**BODIES[kind], **changes})

    def trial(self, name: str = "t-0"):
        return self.state.trials[name]
