"""Claims about episodes of which nobody saw an operation: in the table all the same, with all of their time."""

from __future__ import annotations

import pytest

from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.reporting.operations_table import operations

GO = 7 * SECOND
BOTH = {"moved": 2, "lost": 0, "remaining": 0}


def told(outcome: dict[str, int], seen: list[float], reason: str = "operator") -> list[Event]:
    """A campaign of one episode of two items and 50 s, with what devices saw moved, seconds since go."""
    condition = {"id": "towels/l1", "object": "towels", "axes": [], "tote_side": "left", "camera_side": "right"}
    slot = {"index": 0, "trial": "t", "block": 0, "position": 0, "condition": "towels/l1"}
    opened = {"schedule": [slot], "conditions": [condition], "max_voids": 3, "void_reasons": []}
    moved = [{"op_index": i, "result": "success", "t_ns": GO + round(s * SECOND)} for i, s in enumerate(seen)]
    bodies = [
        (Kind.TRIAL_STAGING, {}),
        (Kind.SCENE_COMMITTED, {}),
        (Kind.ARM_REVEALED, {"sealed": "x"}),
        (Kind.EPISODE_STARTED, {"budget_s": 120.0}),
        (Kind.GO, {"go_ns": GO}),
        *((Kind.OPERATION_RECORDED, body) for body in moved),
        (Kind.EPISODE_ENDED, {"reason": reason, "end_ns": GO + 50 * SECOND}),
        (Kind.RECORDING_SEALED, {"streams": {}}),
        (Kind.OUTCOME_RECORDED, {"outcome": {"items_staged": 2, "end_reason": reason, **outcome}}),
    ]
    about = [Event(seq, kind, seq, "b", "w", "run", "t", "e", body) for seq, (kind, body) in enumerate(bodies, 2)]
    return [Event(1, Kind.CAMPAIGN_OPENED, 1, "b", "w", "run", body=opened), *about]


def rows(events: list[Event], labels: str = "best") -> list[tuple[str, float, str | None]]:
    return [(row["kind"], row["time_s"], row["cause"]) for row in operations(record_of(events), labels=labels)]


@pytest.mark.parametrize("outcome", [BOTH, {"moved": 0, "lost": 0, "remaining": 2}], ids=["all moved", "none moved"])
@pytest.mark.parametrize("labels", ["best", "device", "operator", "detector"])
def test_its_time_is_one_censored_row_whatever_the_outcome_says(outcome: dict[str, int], labels: str) -> None:
    assert rows(told(outcome, []), labels) == [("censored", 50.0, "operator")]


def test_a_stream_of_labels_that_saw_nothing_of_it_keeps_it_too() -> None:
    events = told(BOTH, [10.0, 30.0], "all_done")
    assert rows(events) == [("success", 10.0, None), ("success", 20.0, None)]
    assert rows(events, "operator") == [("censored", 50.0, "all_done")]
