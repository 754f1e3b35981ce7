"""What the recorded questions say of each arm: every question counts, late and unanswered ones too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labctl.clock import MILLISECOND, SECOND
from labctl.nodes.policy_stream import POLICY
from labctl.reporting.times.answer_times import answer_times, questions_of
from labctl.store.chunks import Chunk
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore
from labctl.streams import StreamSpec


def question(
    at_ms: int,
    answer_ms: int | None,
    *,
    late: bool = False,
    image_ms: int = -1,
    server_us: int = -1,
    call_us: int = -1,
    gpu_mb: int = -1,
) -> list[int]:
    """A row: the state captured 5 ms before the question, the answer executed at once unless it was late."""
    asked = SECOND + at_ms * MILLISECOND
    reply = -1 if answer_ms is None else asked + answer_ms * MILLISECOND
    used = answer_ms is not None and not late
    row = {
        "capture_ns": asked - 5 * MILLISECOND,
        "request_ns": asked,
        "reply_ns": reply,
        "actions": 8,
        "executed": 4 if used else 0,
        "dt_ns": 1,
        "first_ns": reply if used else -1,
        "server_us": server_us,
        "image_ns": -1 if image_ms < 0 else asked - image_ms * MILLISECOND,
        "late": int(late or answer_ms is None),
        "call_us": call_us,
        "gpu_memory_mb": gpu_mb,
    }
    return [row[name] for name in POLICY.columns]


@pytest.fixture
def store(tmp_path: Path):
    made = TraceStore.create(sqlite_url(tmp_path / "traces.db"), "c", durable=False)
    yield made
    made.close()


def write(store: TraceStore, episode: str, rows: list[list[int]]) -> None:
    store.declare(episode, [POLICY])
    values = np.array(rows, np.int64)
    store.write(episode, [Chunk("policy", 0, values[:, POLICY.columns.index("request_ns")], values)])


def answered(store: TraceStore, episodes: dict[str, str], arms: list[str], begun: Any = None) -> Any:
    """The answers of so many episodes, each of which was read."""
    return answer_times({episode: questions_of(store, episode) for episode in episodes}, episodes, arms, begun)


def test_spreads_are_of_all_answers_of_an_arm_over_its_episodes(store):
    write(store, "e1", [question(0, 100, image_ms=30, server_us=80_000), question(1000, 200, image_ms=50)])
    write(store, "e2", [question(0, 300), question(2000, 400)])
    (entry,) = answered(store, {"e1": "a", "e2": "a"}, ["a", "b"])
    assert (entry["arm"], entry["episodes"], entry["questions"]) == ("a", 2, 4)
    assert entry["answer_s"] == {"p50": 0.25, "p95": pytest.approx(0.385)}  # numpy's percentile of .1 .2 .3 .4
    assert entry["command_s"]["p50"] == pytest.approx(0.255)
    assert entry["picture_s"] == {"p50": 0.19, "p95": pytest.approx(0.244)}  # .13 and .25
    assert entry["server_s"] == {"p50": 0.08, "p95": 0.08}
    assert entry["answers_per_s"] == pytest.approx(2 / 3), "two intervals in one and two seconds"


def test_late_and_unanswered_questions_are_counted_and_no_command_came_of_them(store):
    write(store, "e1", [question(0, 100), question(500, 900, late=True), question(2000, None)])
    (entry,) = answered(store, {"e1": "a"}, ["a"])
    assert (entry["questions"], entry["late"], entry["unanswered"]) == (3, 1, 1)
    assert entry["answer_s"] == {"p50": 0.5, "p95": pytest.approx(0.86)}, "a late answer took its time all the same"
    assert entry["command_s"] == {"p50": 0.105, "p95": 0.105}


def test_one_question_alone_has_no_rate_and_missing_numbers_are_null(store):
    write(store, "e1", [question(0, None)])
    (entry,) = answered(store, {"e1": "a"}, ["a"])
    assert entry["answers_per_s"] is None and entry["answer_s"] is None and entry["server_s"] is None


def test_arms_come_in_the_order_given_and_only_where_something_was_recorded(store):
    write(store, "e1", [question(0, 100)])
    write(store, "e2", [question(0, 200)])
    store.declare("e3", [StreamSpec("policy", ("capture_ns",), "ns", 1.0, dtype="<i8")])
    found = answered(store, {"e1": "z", "e2": "b", "e3": "c", "e4": "d"}, ["b", "c", "d", "z"])
    assert [entry["arm"] for entry in found] == ["b", "z"]


def test_start_up_times_are_of_the_arm_that_started(store):
    write(store, "e1", [question(0, 100)])
    begun = {
        "e1": {"load_s": 2.0, "warm_s": 0.5},
        "e2": {"load_s": 4.0, "warm_s": 0.7},
        "e9": {"load_s": 9, "warm_s": 9},
    }
    (entry,) = answered(store, {"e1": "a", "e2": "a", "e9": "b"}, ["a", "b"], begun)
    assert entry["load_s"]["p50"] == 3.0 and entry["warm_s"]["p50"] == pytest.approx(0.6)


def test_the_rest_of_an_answer_is_what_its_server_did_not_account_for(store):
    """100 and 200 ms waited, 90 and 150 of them the servers'; one answer told nothing and is in neither."""
    write(store, "e1", [question(0, 100, server_us=80_000, call_us=90_000), question(500, 300)])
    write(store, "e2", [question(0, 200, server_us=140_000, call_us=150_000), question(500, None, call_us=150_000)])
    (entry,) = answered(store, {"e1": "a", "e2": "a"}, ["a"])
    assert entry["rest_s"] == {"p50": 0.03, "p95": pytest.approx(0.048)}  # of .01 and .05
    assert entry["server_s"]["p50"] == 0.11


def test_of_what_servers_told_the_greatest_stays_and_what_they_did_not_is_absent(store):
    write(store, "e1", [question(0, 100, gpu_mb=7000), question(500, 100, gpu_mb=7300)])
    write(store, "e2", [question(0, 100)])
    write(store, "e3", [question(0, 100)])
    before = {"load_s": 1.0, "warm_s": 1.0}
    begun = {
        "e1": {**before, "told": {"gpu_memory_mb": 7100.0, "parameters": 3e9}},
        "e2": {**before, "told": {"memory_mb": 900.0}},
        "e3": before,
    }
    one, other = answered(store, {"e1": "a", "e2": "a", "e3": "b"}, ["a", "b"], begun)
    assert one["told"] == {"gpu_memory_mb": 7300.0, "memory_mb": 900.0, "parameters": 3e9}
    assert other["told"] == {} and other["rest_s"] is None


def test_a_recording_from_before_calls_were_kept_is_read_all_the_same(store):
    older = replace(POLICY, columns=POLICY.columns[:-2])
    store.declare("e1", [older])
    values = np.array([question(0, 100, server_us=80_000)[:-2]], np.int64)
    store.write("e1", [Chunk("policy", 0, values[:, older.columns.index("request_ns")], values)])
    (entry,) = answered(store, {"e1": "a"}, ["a"])
    assert entry["server_s"]["p50"] == 0.08 and entry["rest_s"] is None and entry["told"] == {}
