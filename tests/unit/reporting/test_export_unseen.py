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


NONE = {"moved": 0, "lost": 0, "remaining": 2}


@pytest.mark.parametrize("labels", ["best", "device", "operator", "detector"])
def test_of_an_episode_in_which_nothing_was_moved_its_time_is_one_censored_row(labels: str) -> None:
    assert rows(told(NONE, []), labels) == [("censored", 50.0, "operator")]


@pytest.mark.parametrize("labels", ["best", "device", "operator", "detector"])
def test_what_only_the_assessor_counted_is_moved_evenly_in_the_longest_time_without_a_success(labels: str) -> None:
    times = [(kind, round(t, 3), cause) for kind, t, cause in rows(told(BOTH, []), labels)]
    assert times == [("success", 16.667, "untimed"), ("success", 16.667, "untimed")]


def test_one_that_was_missed_lies_in_the_longest_gap_and_the_time_at_risk_stays() -> None:
    outcome = {"moved": 2, "lost": 0, "remaining": 0}
    assert rows(told(outcome, [10.0])) == [("success", 10.0, None), ("success", 20.0, "untimed")]
    assert rows(told(outcome, [40.0])) == [("success", 20.0, "untimed"), ("success", 20.0, None)]


def test_a_placement_beyond_the_count_is_taken_back() -> None:
    one = {"moved": 1, "lost": 0, "remaining": 1}
    assert rows(told(one, [10.0, 30.0], "budget")) == [("success", 10.0, None), ("censored", 40.0, "budget")]


def test_no_stream_of_labels_contradicts_the_outcome() -> None:
    events = told(BOTH, [10.0, 30.0], "all_done")
    assert rows(events) == [("success", 10.0, None), ("success", 20.0, None)]
    assert [kind for kind, *_ in rows(events, "operator")] == ["success", "success"]
