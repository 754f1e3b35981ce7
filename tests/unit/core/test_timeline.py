"""Timelines and lines of an episode: each says what the journal said, at the time it says it happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.core import timeline
from labctl.core.event_bodies import GapBody
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.timeline import Mark
from labctl.core.trial import CampaignState

EPISODE, TRIAL = "e-2", "t-1"


def event(seq: int, kind: Kind, at_s: float, *, episode: str | None = EPISODE, trial: str | None = TRIAL, **body: Any):
    return Event(seq, kind, round(at_s * SECOND), "boot", "2026-01-01T00:00:00+00:00", "who", trial, episode, body)


def moved(seq: int, index: int, at_s: float, result: str = "success") -> Event:
    """Written a tenth of a second after it happened."""
    t_ns = round(at_s * SECOND)
    return event(seq, Kind.OPERATION_RECORDED, at_s + 0.1, op_index=index, result=result, t_ns=t_ns, cause=None)


STORY = [
    event(1, Kind.TRIAL_STAGING, 1, episode=None, setter="setter-1"),
    event(2, Kind.SCENE_COMMITTED, 2, episode=None),
    event(3, Kind.ARM_REVEALED, 2, episode="e-1"),
    event(4, Kind.EPISODE_VOIDED, 5, episode="e-1", reason="not_ready"),
    event(5, Kind.SCENE_COMMITTED, 8, episode=None),
    event(6, Kind.ARM_REVEALED, 8),
    event(7, Kind.EPISODE_STARTED, 12),
    event(8, Kind.GO, 12.1, go_ns=12 * SECOND),
    moved(9, 0, 20),
    event(10, Kind.HOLD_RAISED, 21, episode=None, trial=None, code="safety_stop", text="the robot stopped itself"),
    moved(11, 1, 23, "lost"),
    event(12, Kind.EPISODE_ENDED, 30.1, reason="budget", end_ns=30 * SECOND),
    event(13, Kind.GAP, 30.2, stream="arm/state", from_ns=29 * SECOND, to_ns=30 * SECOND, lost=7, why="a reason"),
    event(14, Kind.RECORDING_SEALED, 31),
    event(15, Kind.HOLD_CLEARED, 32, episode=None, trial=None, code="safety_stop", acknowledged_by="who"),
    event(16, Kind.OUTCOME_RECORDED, 33, outcome={"moved": 1, "items_staged": 3}),
    event(17, Kind.TRIAL_STAGING, 40, episode=None, trial="t-2", setter="setter-1"),
]
TOLD = timeline.attempt(STORY, EPISODE)
EPISODES = record_of(STORY, CampaignState()).episodes


def spoken(marks: list[Mark]) -> list[tuple[float, str]]:
    return [(mark.t_ns / SECOND, mark.label) for mark in marks]


def test_an_attempt_is_its_own_events_its_staging_and_the_holds_meanwhile():
    assert [e.seq for e in TOLD] == [4, 5, *range(6, 17)]
    assert timeline.attempt(STORY, "e-1")[0].seq == 1
    assert timeline.attempt(STORY, "e-unknown") == []


def test_what_was_written_after_a_reboot_comes_after_what_was_written_before_it():
    """The clock of the next boot begins near zero: an episode that was scored then was scored before it was staged."""
    wall = "2026-01-01T00:10:00+00:00"  # ten minutes after the rest
    scored = replace(STORY[15], at_ns=3 * SECOND, boot="next boot", wall=wall)
    told = timeline.attempt([*STORY[:15], scored], EPISODE)
    assert told[:-1] == TOLD[:-1]
    assert told[-1].at_ns == 8 * SECOND + 600 * SECOND
    assert timeline.phase_timeline(told)[-1].label == "scored"


def test_what_is_said_of_an_episode_later_takes_no_holds_of_others_with_it():
    """A correction after the evening gave its episode the stops of all that were run since."""
    between = [
        event(18, Kind.HOLD_RAISED, 41, episode=None, trial=None, code="operator_stop", text="who stopped the robot"),
        event(19, Kind.HOLD_CLEARED, 42, episode=None, trial=None, code="operator_stop", acknowledged_by="who"),
        event(20, Kind.CELL_FAULTED, 43, episode=None, trial=None, reason="a fault"),
    ]
    corrected = event(21, Kind.OUTCOME_CORRECTED, 90, why="one more had moved")
    told = timeline.attempt([*STORY, *between, corrected], EPISODE)
    assert told == [*TOLD, corrected]


def test_an_attempt_is_over_when_it_is_scored_or_voided_or_with_its_last_entry_before_a_reboot():
    later = event(21, Kind.OUTCOME_CORRECTED, 90, why="one more had moved")
    assert timeline.over_ns(timeline.attempt([*STORY, later], EPISODE)) == 33 * SECOND
    assert timeline.over_ns(timeline.attempt(STORY, "e-1")) == 5 * SECOND
    scored = replace(STORY[15], at_ns=3 * SECOND, boot="next boot", wall="2026-01-01T00:10:00+00:00")
    assert timeline.over_ns(timeline.attempt([*STORY[:15], scored], EPISODE)) == 32 * SECOND
    assert timeline.over_ns(timeline.attempt(STORY[:9], EPISODE)) == round(20.1 * SECOND)


def test_phases_begin_when_they_did_and_a_void_stages_the_scene_again():
    assert spoken(timeline.phase_timeline(TOLD)) == [
        (5, "staging"),
        (8, "armed"),
        (12, "running"),
        (30, "ended"),
        (31, "sealed"),
        (33, "scored"),
    ]
    assert spoken(timeline.phase_timeline(timeline.attempt(STORY, "e-1"))) == [
        (1, "staging"),
        (2, "armed"),
        (5, "voided"),
    ]


def test_an_item_takes_the_time_since_the_one_before_and_what_is_left_is_said():
    assert spoken(timeline.operation_timeline(EPISODES[EPISODE])) == [
        (12, "1 moved 8.0 s"),
        (20, "2 lost 3.0 s"),
        (23, "7.0 s without a move"),
        (30, ""),
    ]


def test_nothing_was_to_be_moved_where_a_task_is_not_counted_in_items():
    """The six seconds in which a task was done were "6.0 s without a move"."""
    marks = timeline.operation_timeline(EPISODES[EPISODE], in_items=False)
    assert spoken(marks) == [(12, "1 moved 8.0 s"), (20, "2 lost 3.0 s"), (30, "")]


def test_an_episode_that_ends_with_its_last_move_has_no_rest():
    told = [e for e in STORY if e.kind != Kind.EPISODE_ENDED and e.episode == EPISODE]
    told.append(event(12, Kind.EPISODE_ENDED, 23.2, reason="all_done", end_ns=23 * SECOND))
    episode = record_of(sorted(told, key=lambda e: e.seq), CampaignState()).episodes[EPISODE]
    assert spoken(timeline.operation_timeline(episode))[-1] == (23, "")


def test_an_episode_that_never_went_has_no_operations():
    assert timeline.operation_timeline(EPISODES["e-1"]) == []


def test_a_hold_stands_from_when_it_was_raised_until_it_was_cleared():
    assert spoken(timeline.hold_timeline(TOLD)) == [(21, "safety_stop"), (32, "")]


def test_two_holds_at_once_are_both_named():
    also = event(11, Kind.HOLD_RAISED, 22, episode=None, trial=None, code="disk", text="little disk")
    told = sorted([*TOLD, also], key=lambda e: e.seq)
    assert [mark.label for mark in timeline.hold_timeline(told)] == ["safety_stop", "safety_stop, disk", "disk"]


def test_a_note_is_drawn_for_half_a_second_from_its_time():
    marks = spoken(timeline.note_timeline(TOLD))
    assert (21, "hold safety_stop: the robot stopped itself") in marks and (21.5, "") in marks
    assert (23, "item 2 lost") in marks


def test_gaps_are_where_the_journal_or_the_samples_have_them_and_overlaps_join():
    assert timeline.recorded_gaps(EPISODES[EPISODE].gaps, 99 * SECOND) == {
        "arm/state": [(29 * SECOND, 30 * SECOND, "7 lost: a reason")],
    }
    t_ns = np.array([0, 10, 20, 120, 130]) * MILLISECOND
    assert timeline.measured_gaps(t_ns, 100.0) == [(20 * MILLISECOND, 120 * MILLISECOND, "100 ms")]
    assert spoken(timeline.gap_timeline([(0, 5 * SECOND, "a"), (3 * SECOND, 6 * SECOND, "b")])) == [(0, "a"), (6, "")]


def test_what_robots_and_their_bases_say_of_themselves_has_measured_gaps_as_cameras_and_sensors_have():
    steady = ("arm/state", "right/state", "base/odometry", "camera/wrist", "sensor/force")
    assert [name for name in steady if not timeline.is_steady(name)] == []
    assert not any(timeline.is_steady(name) for name in ("arm/action", "arm/device", "policy", "tracker"))


def test_a_gap_without_an_end_lasts_to_the_end_of_the_record():
    gap: GapBody = {"stream": "camera/wrist", "from_ns": 2 * SECOND, "to_ns": None, "lost": None, "why": "x"}
    assert timeline.recorded_gaps([gap], 9 * SECOND) == {"camera/wrist": [(2 * SECOND, 9 * SECOND, "x")]}


def test_a_lane_is_cut_to_a_span_and_begins_with_what_stood_then():
    marks = timeline.phase_timeline(TOLD)
    assert spoken(timeline.within(marks, 9 * SECOND, 31 * SECOND)) == [
        (9, "armed"),
        (12, "running"),
        (30, "ended"),
        (31, "sealed"),
    ]
    assert spoken(timeline.within(timeline.hold_timeline(TOLD), 0, 30 * SECOND)) == [(21, "safety_stop")]


@given(st.lists(st.integers(1, 10**9), max_size=40), st.floats(1, 1000))
def test_no_measured_gap_is_shorter_than_three_periods_or_50_ms(steps: list[int], rate_hz: float):
    t_ns = np.cumsum([0, *steps])
    for start, end, _ in timeline.measured_gaps(t_ns, rate_hz):
        assert end - start > 3 * SECOND / rate_hz and end - start > 50 * MILLISECOND


def test_lines_are_in_order_of_when_things_happened_with_a_level():
    lines = timeline.event_lines(TOLD)
    assert [t_ns for t_ns, _, _ in lines] == sorted(t_ns for t_ns, _, _ in lines)
    said = {text: level for _, level, text in lines}
    assert said["item 1 moved"] == "INFO" and said["item 2 lost"] == "WARN"
    assert said["gap in arm/state: 7 lost: a reason"] == "WARN" and said["scored: 1 of 3 moved"] == "INFO"


WRONG_END = {"wrong_end": True, "remaining": 1}


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ({"moved": 2, "items_staged": 3}, "2 of 3 moved"),
        ({"moved": 2, "items_staged": 3, **WRONG_END}, "2 of 3 moved, 1 remained after a wrong end"),
        ({"moved": 0, "items_staged": 1, "score": 0.5}, "score 0.5"),
        ({"moved": 0, "items_staged": 1, "score": 0.0, **WRONG_END}, "score 0, after a wrong end"),
        ({"moved": 0, "items_staged": 1, "reached_s": [1.0]}, "1 stage reached"),
        ({"moved": 0, "items_staged": 1, "reached_s": [1.0, None], **WRONG_END}, "2 stages reached, after a wrong end"),
        ({"moved": 0, "items_staged": 1, "reached_s": []}, "nothing done"),
        ({"moved": 1, "items_staged": 1, "reached_s": [1.0, 2.0]}, "done"),
    ],
)
def test_an_outcome_is_said_by_the_measure_of_its_task(outcome: dict[str, Any], said: str):
    """A score of a half and one stage of two were "0 of 1 moved"."""
    ((_, _, text),) = timeline.event_lines([event(1, Kind.OUTCOME_RECORDED, 1, outcome=outcome)])
    assert text == f"scored: {said}"


@pytest.mark.parametrize(
    ("reached", "said"), [(0, "0 stages reached"), (1, "1 stage reached"), (2, "2 stages reached")]
)
def test_a_stage_is_said_by_how_many_are_reached_by_then(reached: int, said: str):
    ((_, _, text),) = timeline.event_lines([event(1, Kind.STAGE_REACHED, 1, reached=reached, t_ns=1)])
    assert text == said


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_event_has_words(kind: Kind):
    """With a body as `events.Kind` lists it, no entry is left without a line of its own."""
    body = dict(
        op_index=0, result="safety_stop", t_ns=1, cause="x", reason="r", stream="s", why="w", code="c", text="t",
        acknowledged_by="a", outcome={"moved": 1, "items_staged": 1}, setter="s", go_ns=1, end_ns=1, from_ns=1,
        name="n", instruction="i", reached=1,
    )  # fmt: skip
    ((_, _, text),) = timeline.event_lines([event(1, kind, 1, **body)])
    assert text and text == text.strip()
