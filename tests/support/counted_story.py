"""The journal of two trials of four items each, told by what happened in them; for claims about the rows made of it."""

from __future__ import annotations

from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.reporting.operations_table import operations

GO = 7_000_000_123
BUDGET_S = 120.0


class Story:
    """Events of a campaign of two trials; times in seconds since go."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        condition = {"id": "towels/l1", "object": "towels", "layout": "l1", "axes": [], "tags": []}
        condition |= {"tote_side": "left", "camera_side": "right", "instructions": "-"}
        slots = [{"index": i, "trial": f"t-{i}", "block": 0, "position": i, "condition": "towels/l1"} for i in range(2)]
        opened = {
            "campaign": "c",
            "schedule": slots,
            "conditions": [condition],
            "max_voids": 3,
            "void_reasons": ["arm_lost"],
        }
        self.add(Kind.CAMPAIGN_OPENED, opened)
        people = [{"id": "p-1", "roles": ["operator"]}, {"id": "p-2", "roles": ["setter"]}]
        self.add(Kind.SESSION_OPENED, {"session": "s-1", "people": people, "checks": {}})

    def add(self, kind: Kind, body: dict, trial: str | None = None, episode: str | None = None) -> None:
        seq = len(self.events) + 1
        self.events.append(Event(seq, kind, seq, "b", "w", "run", trial, episode, body))

    def episode(
        self, operations: list[tuple], end_s: float, reason: str, *, n: int = 0, void: str = "", **outcome
    ) -> None:
        """operations: (result, seconds since go[, cause]); outcome: moved, lost, remaining; void: a reason instead."""
        trial, episode = f"t-{n}", f"e-{n}{len(self.events)}"
        for kind, body in (
            (Kind.TRIAL_STAGING, {}),
            (Kind.SCENE_COMMITTED, {}),
            (Kind.ARM_REVEALED, {"sealed": "x"}),
            (Kind.EPISODE_STARTED, {"budget_s": BUDGET_S, "items_staged": 4, "kind": "sim"}),
            (Kind.GO, {"go_ns": GO}),
        ):
            self.add(kind, body, trial, episode)
        for i, (result, t_s, *cause) in enumerate(operations):
            body = {
                "op_index": i,
                "result": result,
                "t_ns": GO + round(t_s * SECOND),
                "cause": cause[0] if cause else None,
            }
            self.add(Kind.OPERATION_RECORDED, body, trial, episode)
        self.add(Kind.EPISODE_ENDED, {"reason": reason, "end_ns": GO + round(end_s * SECOND)}, trial, episode)
        self.add(Kind.RECORDING_SEALED, {"streams": {}, "root": "", "videos": {}, "gaps": 0}, trial, episode)
        if void:
            self.add(
                Kind.EPISODE_VOIDED,
                {"reason": void, "after_go": True, "evidence": 1, "by_recovery": True},
                trial,
                episode,
            )
        else:
            counts = {"items_staged": 4, "end_reason": reason, **outcome}
            self.add(Kind.OUTCOME_RECORDED, {"outcome": counts}, trial, episode)

    def unblind(self) -> None:
        schedule = [{"trial": "t-0", "arm": "human"}, {"trial": "t-1", "arm": "policy-a"}]
        for trial in ("t-0", "t-1"):
            if not any(e.kind == Kind.OUTCOME_RECORDED and e.trial == trial for e in self.events):
                self.add(Kind.TRIAL_SKIPPED, {"reason": "campaign_closed"}, trial)
        self.add(Kind.CAMPAIGN_CLOSED, {"reason": "done"})
        self.add(Kind.CAMPAIGN_FROZEN, {"reviewed": False, "head": ""})
        self.add(Kind.CAMPAIGN_UNBLINDED, {"early": False, "reason": None, "schedule": schedule})

    def rows(self) -> list[tuple]:
        return [(row["kind"], row["time_s"], row["cause"]) for row in operations(record_of(self.events))]
