"""Where hours went: every second of a run once, holds by reason, a person's share, and nothing of a trial by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.night import Night

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.reporting.times.hours import COLUMNS, DOING, NOBODY, UNDER_WAY, cells, clock, hold_lines, hours
from labctl.reporting.times.hours_page import html_of
from labctl.reporting.times.timeline import timeline

WHOLE = (("reset", 60), ("staging", 30), ("arming", 6), ("running", 100), ("scoring", 20))


@pytest.fixture
def night() -> Night:
    """A run with one operator."""
    night = Night()
    night.start()
    night.session("ana")
    return night


def test_every_second_of_a_run_went_somewhere_once(night: Night):
    night.whole("t-0")
    night.whole("t-1", running_s=50)
    night.tell(10, Kind.RUN_STOPPED, reason="left")
    night.tell(5000, Kind.NOTE, text="the next day")
    total = hours(night.record)["total"]
    expected = {"reset": 130, "staging": 60, "arming": 12, "running": 150, "scoring": 40, "hold": 0}
    assert total["by"] == pytest.approx(expected) and total["total_s"] == pytest.approx(sum(expected.values()))
    assert total["trials"] == 2


def test_a_hold_takes_what_it_kept_from_reset_and_staging_by_reason(night: Night):
    night.whole("t-0")
    night.tell(10, Kind.HOLD_RAISED, code="operator_stop", text="stopped")
    night.tell(300, Kind.HOLD_CLEARED, code="operator_stop", acknowledged_by="ana")
    night.tell(5, Kind.CELL_FAULTED, reason="gripper")
    night.tell(40, Kind.FAULT_ACKNOWLEDGED, acknowledged_by="ana")
    night.whole("t-1")
    total = hours(night.record)["total"]
    assert total["holds"] == pytest.approx({"operator_stop": 300, "faulted": 40})
    assert total["by"]["hold"] == pytest.approx(340) and total["by"]["reset"] == pytest.approx(60 + 10 + 5 + 60)
    assert hold_lines(total) == ["hold operator_stop: 5 min 00 s", "hold faulted: 40 s"]


def test_a_hold_asked_for_after_a_block_takes_nothing_of_that_block(night: Night):
    night.begin("t-0")
    night.tell(0, Kind.HOLD_RAISED, code="after_block:0", text="supper")
    night.end("t-0")
    night.score("t-0")
    night.whole("t-1")
    night.tell(600, Kind.HOLD_CLEARED, code="after_block:0", acknowledged_by="ana")
    night.whole("t-2")
    found = hours(night.record)
    assert found["total"]["holds"] == pytest.approx({"after_block": 600})


def test_a_killed_run_leaves_the_time_until_its_next_start_uncounted(night: Night):
    night.begin("t-0")
    night.tell(30, Kind.ITEM_COUNTED, "t-0", "e-t-0", moved=1, t_ns=0)
    end_ns = round(night.now_s * SECOND)
    night.tell(7200, Kind.EPISODE_ENDED, "t-0", "e-t-0", reason="process_lost", end_ns=end_ns)
    night.tell(1, Kind.RECORDING_SEALED, "t-0", "e-t-0", streams={}, root="0" * 64, videos={}, gaps=0)
    night.start(1, recovered=["ended", "sealed"])
    night.score("t-0")
    total = hours(night.record)["total"]
    assert total["by"]["running"] == pytest.approx(30)
    assert total["by"]["scoring"] == pytest.approx(1 + 1 + 20)


def test_a_run_killed_at_the_score_keeps_what_its_robot_did_however_short_it_lay_dead(night: Night):
    """A start that concluded nothing wrote neither the end nor the seal: the dead time is what lies before it."""
    night.begin("t-0")
    night.end("t-0", running_s=100)
    night.start(40)
    night.score("t-0")
    by = hours(night.record)["total"]["by"]
    assert by["running"] == pytest.approx(100) and by["scoring"] == pytest.approx(20)


def test_a_run_that_was_stopped_in_an_episode_leaves_its_time_and_the_wait_for_its_score_to_that_trial(night: Night):
    """It was the next trial's, which here is of another block and may be of another arm."""
    night.whole("t-0")
    night.begin("t-1")
    night.end("t-1", running_s=10)
    night.tell(1, Kind.RUN_STOPPED, reason="asked")
    night.start(3600)
    night.score("t-1", scoring_s=40)
    night.tell(5, Kind.RUN_STOPPED, reason="asked")
    night.start(3600)
    night.whole("t-2")
    own = [(one.doing, one.seconds) for one in night.record.spent if one.trial == "t-1" and one.seconds]
    expected = (("reset", 60), ("staging", 30), ("arming", 6), ("running", 10), ("scoring", 1), ("scoring", 40))
    assert own == [(doing, pytest.approx(seconds)) for doing, seconds in expected]
    first, second = hours(replace(night.record, unblinding={}))["blocks"]  # type: ignore[arg-type]
    assert (first["trials"], second["trials"]) == (2, 1)
    assert first["total_s"] == pytest.approx(216 + 147) and second["total_s"] == pytest.approx(5 + 216)


@pytest.mark.parametrize("away", ["a weekend", "another boot"])
def test_dead_time_that_was_never_counted_takes_no_other_time_with_it(night: Night, away: str):
    night.begin("t-0")
    night.end("t-0", running_s=100)
    if away == "another boot":
        night.boot, night.now_s = "another", 0.0
    night.start(0 if away == "another boot" else 60 * 3600)
    night.score("t-0")
    by = hours(night.record)["total"]["by"]
    assert by["running"] == pytest.approx(100) and by["scoring"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Kind.MEDIA_STORED, {"place": "file:///m", "checked": "read_back", "files": []}),
        (Kind.MEDIA_TRIMMED, {"files": []}),
        (Kind.LOOK_TAKEN, {"number": 1, "looks": 2, "blocks": 1, "labels": "device", "says": "go on"}),
    ],
)
def test_what_another_command_writes_after_a_kill_is_no_time_of_the_run_that_was_killed(
    night: Night, kind: Kind, body: dict[str, Any]
):
    """Uploads, trims and looks hold the campaign's lock: while they write no run goes, nor until its next start."""
    night.whole("t-0")
    night.begin("t-1")
    night.tell(30, Kind.ITEM_COUNTED, "t-1", "e-t-1", moved=1, t_ns=0)
    sign_ns = round(night.now_s * SECOND)
    night.tell(7200, kind, **body)
    night.tell(1800, kind, **body)
    night.tell(3600, Kind.EPISODE_ENDED, "t-1", "e-t-1", reason="process_lost", end_ns=sign_ns)
    night.tell(1, Kind.RECORDING_SEALED, "t-1", "e-t-1", streams={}, root="0" * 64, videos={}, gaps=0)
    night.start(1, recovered=["ended", "sealed"])
    night.score("t-1")
    total = hours(night.record)["total"]
    assert total["by"]["running"] == pytest.approx(100 + 30) and total["by"]["scoring"] == pytest.approx(20 + 20)
    assert total["total_s"] == pytest.approx(216 + 60 + 30 + 6 + 30 + 20)


PRACTISED = {"person": "ana", "object": "towels", "moved": 4, "staged": 4, "duration_s": 60.0, "note": ""}


@pytest.mark.parametrize("rest_s", [(7200, 60, 1800), (7200, 3600, 10), (40, 7200, 20)])
def test_practice_written_down_after_a_kill_is_no_time_of_the_run_that_was_killed(
    night: Night, rest_s: tuple[float, float, float]
):
    """The run or, where none goes, `labctl practice` itself writes such an entry: its hours were counted as the run's.
    The longest stretch, by which a killed run's time is bounded, has the kill, and behind it nothing ran.
    """
    night.whole("t-0")
    night.tell(5, Kind.NOTE, text="supper")
    first_s, second_s, start_s = rest_s
    night.tell(first_s, Kind.PRACTICE_RECORDED, **PRACTISED)
    night.tell(second_s, Kind.PRACTICE_RECORDED, **PRACTISED)
    night.start(start_s)
    night.whole("t-1")
    alive_s = first_s if first_s < second_s else 0  # the first was written by the run
    total = hours(night.record)["total"]
    assert total["by"]["reset"] == pytest.approx(2 * 60 + 5 + alive_s)
    assert total["total_s"] == pytest.approx(2 * 216 + 5 + alive_s)


def test_practice_and_reviews_of_a_run_that_goes_on_are_of_its_time(night: Night):
    night.whole("t-0")
    night.tell(30, Kind.PRACTICE_RECORDED, **PRACTISED)
    night.tell(20, Kind.OUTCOME_CONFIRMED, "t-0", "e-t-0", note="")
    night.whole("t-1")
    assert hours(night.record)["total"]["total_s"] == pytest.approx(2 * 216 + 50)


@pytest.mark.parametrize("left_open", [True, False])
def test_an_assessor_who_is_entered_after_a_kill_is_no_time_of_the_run_that_was_killed(night: Night, left_open: bool):
    """`labctl review --register` ends a session that was left open and has its own begin and end, all at one time."""
    night.whole("t-0")
    if not left_open:
        night.tell(0, Kind.SESSION_CLOSED, session="s-2", handover="tired")
    night.tell(30, Kind.OUTCOME_CONFIRMED, "t-0", "e-t-0", note="")
    wait_s = 7200.0
    if left_open:
        night.tell(wait_s, Kind.SESSION_CLOSED, session="s-2", handover="left open; ended when …")
        wait_s = 0
    night.tell(wait_s, Kind.SESSION_OPENED, session="s-r", people=[{"id": "ida", "roles": ["assessor"]}])
    night.tell(0, Kind.SESSION_CLOSED, session="s-r", handover="")
    night.tell(1800, Kind.OUTCOME_CONFIRMED, "t-0", "e-t-0", note="")
    night.start(3600)
    night.session("ana")
    night.whole("t-1")
    found = hours(night.record)
    assert found["total"]["total_s"] == pytest.approx(2 * 216 + 30)
    assert "ida" not in [line["of"] for line in found["operators"]]


def test_sessions_of_a_run_that_goes_on_are_of_its_time(night: Night):
    night.whole("t-0")
    night.tell(30, Kind.SESSION_CLOSED, session="s-2", handover="tired")
    night.tell(60, Kind.SESSION_OPENED, session="s-b", people=[{"id": "bo", "roles": ["operator", "setter"]}])
    night.tell(0, Kind.TRIAL_STAGING, "t-1", setter="bo")
    night.tell(5, Kind.SESSION_CLOSED, session="s-b", handover="")
    assert hours(night.record)["total"]["total_s"] == pytest.approx(216 + 30 + 60 + 5)


def test_what_is_reviewed_between_a_kill_and_what_the_next_start_concludes_is_no_time_of_either(night: Night):
    night.whole("t-0")
    night.begin("t-1")
    night.tell(30, Kind.ITEM_COUNTED, "t-1", "e-t-1", moved=1, t_ns=0)
    sign_ns = round(night.now_s * SECOND)
    night.tell(1200, Kind.OUTCOME_CONFIRMED, "t-0", "e-t-0", note="")
    night.tell(60, Kind.PRACTICE_RECORDED, **PRACTISED)
    night.tell(600, Kind.EPISODE_ENDED, "t-1", "e-t-1", reason="process_lost", end_ns=sign_ns)
    night.tell(1, Kind.RECORDING_SEALED, "t-1", "e-t-1", streams={}, root="0" * 64, videos={}, gaps=0)
    night.start(1, recovered=["ended", "sealed"])
    night.score("t-1")
    by = hours(night.record)["total"]["by"]
    assert by["running"] == pytest.approx(100 + 30) and by["scoring"] == pytest.approx(20 + 1 + 1 + 20)


def test_a_look_that_says_stop_ends_the_time_of_a_killed_run_at_its_last_entry(night: Night):
    night.whole("t-0")
    night.tell(5, Kind.NOTE, text="supper")
    night.tell(7200, Kind.HOLD_RAISED, code="look_said_stop", text="stop")
    night.tell(0, Kind.LOOK_TAKEN, number=1, looks=2, blocks=1, labels="device", says="stop")
    night.start(3600)
    night.tell(50, Kind.HOLD_CLEARED, code="look_said_stop", acknowledged_by="ana")
    total = hours(night.record)["total"]
    assert total["total_s"] == pytest.approx(216 + 5 + 50) and total["holds"] == pytest.approx({"look_said_stop": 50})


def test_a_start_that_was_killed_at_its_conclusions_leaves_two_dead_times(night: Night):
    night.begin("t-0")
    night.tell(30, Kind.ITEM_COUNTED, "t-0", "e-t-0", moved=1, t_ns=0)
    end_ns = round(night.now_s * SECOND)
    night.tell(7200, Kind.EPISODE_ENDED, "t-0", "e-t-0", reason="process_lost", end_ns=end_ns)
    night.tell(3600, Kind.GAP, "t-0", "e-t-0", stream="arm/state", from_ns=0, to_ns=None, lost=None, why="lost")
    night.tell(0, Kind.RECORDING_SEALED, "t-0", "e-t-0", streams={}, root="0" * 64, videos={}, gaps=1)
    night.start(0, recovered=["sealed"])
    night.score("t-0")
    by = hours(night.record)["total"]["by"]
    assert by["running"] == pytest.approx(30) and by["scoring"] == pytest.approx(20)


def test_closing_after_a_kill_counts_to_the_last_entry_of_the_run(night: Night):
    night.whole("t-0")
    night.begin("t-1", reset_s=10)
    night.end("t-1", running_s=100)
    counts = {"items_staged": 4, "moved": 4, "lost": 0, "remaining": 0, "end_reason": "budget"}
    night.tell(20, Kind.OUTCOME_RECORDED, "t-1", "e-t-1", outcome=counts)
    night.tell(60, Kind.TRIAL_STAGING, "t-2", setter="ana")
    night.tell(50, Kind.TRIAL_RELEASED, "t-2", reason="campaign_closed")
    for trial in ("t-2", "t-3"):
        night.tell(0, Kind.TRIAL_SKIPPED, trial, reason="campaign_closed")
    night.tell(0, Kind.CAMPAIGN_CLOSED, reason="enough")
    by = hours(night.record)["total"]["by"]
    assert by["staging"] == pytest.approx(60) and by["reset"] == pytest.approx(60 + 10 + 60)


def test_another_boot_is_no_time_at_all(night: Night):
    night.whole("t-0")
    night.boot, night.now_s = "another", 0.0
    night.start(0)
    night.whole("t-1")
    assert hours(night.record)["total"]["total_s"] == pytest.approx(2 * (60 + 30 + 6 + 100 + 20))


def test_an_operator_has_the_hours_of_their_sessions(night: Night):
    night.whole("t-0")
    night.tell(0, Kind.SESSION_CLOSED, session="s-2", handover="tired")
    night.tell(90, Kind.NOTE, text="nobody is here")
    night.session("ana", "bo")
    night.whole("t-1")
    people = {line["of"]: line for line in hours(night.record)["operators"]}
    assert people["ana"]["trials"] == 2 and people["bo"]["trials"] == 1
    assert people["ana"]["total_s"] == pytest.approx(216 * 2) and people["bo"]["total_s"] == pytest.approx(216)
    assert people[NOBODY]["by"]["reset"] == pytest.approx(90)


def test_while_arms_are_sealed_no_line_is_of_a_block_under_way(night: Night):
    for trial in ("t-0", "t-1", "t-2"):
        night.whole(trial)
    found = hours(night.record)
    assert [line["of"] for line in found["blocks"]] == ["1", UNDER_WAY]
    assert "t-2" not in str(found) and "e-t-" not in str(found)


def test_the_page_and_the_table_say_the_same(night: Night):
    night.whole("t-0")
    night.whole("t-1")
    found = hours(night.record)
    page = html_of(found)
    for line in (*found["blocks"], *found["operators"], found["total"]):
        assert all(f"<td>{cell}</td>" in page for cell in cells(line))
    assert "<script" not in page and "http" not in page
    assert len(cells(found["total"])) == 2 + len(COLUMNS) == 4 + 3 + len(DOING)


def test_keys_and_the_operators_time_stand_beside_the_robots_for_a_mean_trial(night: Night):
    for trial, keys, waited_s, running_s in (("t-0", 6, 90.0, 100), ("t-1", 9, 30.0, 50)):
        night.begin(trial)
        night.end(trial, running_s=running_s)
        night.score(trial, hands={"keys": keys, "waited_s": waited_s})
    night.whole("t-2")  # which two runs had: the robot's time is known of it all the same
    night.begin("t-3")
    night.end("t-3", running_s=20)
    night.score("t-3", hands={"keys": 17, "waited_s": 10.0})
    found = hours(night.record)
    assert found["blocks"][0]["console"] == {"trials": 2, "keys": 15, "waited_s": 120.0, "robot_s": 150.0}
    row = dict(zip(("block", "trials", *COLUMNS), cells(found["blocks"][0]), strict=True))
    assert (row["keys"], row["operator"], row["robot"]) == ("7.5", "1 min 00 s", "1 min 15 s")
    row = dict(zip(("block", "trials", *COLUMNS), cells(found["blocks"][1]), strict=True))
    assert (row["trials"], row["keys"], row["operator"], row["robot"]) == ("2", "17.0 of 1", "10 s of 1", "1 min 00 s")
    assert {"keys", "operator", "robot"} < set(found["what"])


def test_times_are_told_as_people_tell_them():
    assert [clock(s) for s in (41, 725, 3900)] == ["41 s", "12 min 05 s", "1 h 05 min"]


def test_what_a_block_cost_is_told_stretch_by_stretch_once_arms_are_open(night: Night):
    night.whole("t-0")
    night.tell(0, Kind.HOLD_RAISED, code="clock_skew", text="a clock")
    night.tell(40, Kind.HOLD_CLEARED, code="clock_skew", acknowledged_by="ana")
    night.whole("t-1")
    assert timeline(night.record) == [], "a trial's time may tell an arm"
    assert "stretch by stretch" not in html_of(hours(night.record), lines=timeline(night.record))
    record = replace(night.record, unblinding={})  # type: ignore[arg-type]
    (line,) = timeline(record)
    told = [(one.position, one.doing, one.hold, round(one.seconds)) for one in line.stretches]
    assert told == [
        *((1, doing, "", seconds) for doing, seconds in WHOLE),
        (2, "hold", "clock_skew", 40),
        *((2, doing, "", seconds) for doing, seconds in WHOLE),
    ]
    assert line.seconds == pytest.approx(hours(record)["blocks"][0]["total_s"])
    page = html_of(hours(record), lines=[line])
    assert "block 1: 2 trials, 7 min 52 s" in page and "trial 2: hold (clock_skew) 40 s, from " in page
    assert "<script" not in page and "http" not in page


def test_time_between_runs_is_a_pause_of_a_block_and_no_cost(night: Night):
    night.whole("t-0")
    night.tell(0, Kind.RUN_STOPPED)
    night.start(3600)
    night.whole("t-1")
    (line,) = timeline(replace(night.record, unblinding={}))  # type: ignore[arg-type]
    assert line.seconds == pytest.approx(432) and list(line.pauses_s.values()) == [pytest.approx(3600)]
    assert "pause of 1 h 00 min" in html_of(hours(night.record), lines=[line])
