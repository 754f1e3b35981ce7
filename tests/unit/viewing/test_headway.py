"""How far a run is: the trial of how many from its first moment on, for how long, until when, and what comes next."""

from __future__ import annotations

import pytest
from support.runs.run_states import state

from labctl.clock import SECOND, ManualClock
from labctl.viewing.headway import Headway, Lines


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def headway(clock: ManualClock) -> Headway:
    return Headway(clock)


def later(clock: ManualClock, seconds: float) -> None:
    clock.sleep_until(clock.now_ns() + round(seconds * SECOND))


def test_before_a_state_there_is_nothing_to_say(headway):
    assert headway.line() == "" and headway.news is None


def test_the_first_trial_has_its_number_its_block_and_what_the_protocol_allows_at_most(headway, clock):
    headway.hear(state(1, "staging"), live=True)
    later(clock, 5)
    assert headway.line() == (
        "trial 1 of 6, block 1 of 3 (towels/left): being staged; 0:05 elapsed; at most 15 min of trials to go; "
        "then pens/right"
    )


def test_the_pace_is_learnt_from_trials_that_were_finished_and_gives_the_end(headway, clock):
    headway.hear(state(1, "staging"), live=True)
    later(clock, 600)
    headway.hear(state(2, "planned"), live=True)
    later(clock, 300)
    headway.hear(state(2), live=True)
    assert "15:00 elapsed; about 45 min to go, until 01:00" in headway.line()
    later(clock, 900)
    assert "about 40 min to go" in headway.line(), "a trial that takes longer than the others brings no end nearer"


def test_before_it_has_timed_one_it_goes_by_the_pace_of_the_evening(headway):
    headway.hear(state(3, pace_s=120.0), live=True)
    assert "about 8 min to go" in headway.line()


def test_a_break_is_no_pace(headway, clock):
    headway.hear(state(1), live=True)
    later(clock, 3600)
    headway.hear(state(2), live=True)
    assert "at most" in headway.line()


def test_trials_that_are_finished_between_two_looks_count_each(headway, clock):
    headway.hear(state(1), live=False)
    later(clock, 10)
    headway.hear(state(5), live=False)
    assert "about 5 s to go" in headway.line()


def test_in_simulated_time_nothing_is_promised_before_a_trial_was_timed(headway):
    headway.hear(state(1, pace_s=120.0), live=False)
    assert headway.line() == "trial 1 of 6, block 1 of 3 (towels/left): running; 0:00 elapsed; then pens/right"


def test_a_trial_that_runs_says_for_how_long_and_of_what(headway, clock):
    headway.hear(state(1, times={"go_ns": 0}), live=True)
    later(clock, 31)
    assert "running 0:31 of 2:00" in headway.line()


def test_an_end_on_another_day_has_its_day(headway, clock):
    later(clock, 23 * 3600)
    headway.hear(state(1, pace_s=1200.0), live=True)
    assert "until Fri 01:00" in headway.line(), "2026-01-01 was a Thursday"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (state(1, "planned"), "next"),
        (state(1, "planned", holds=[{"text": "the robot was stopped"}]), "waits, the robot was stopped"),
        (state(1, "armed"), "armed"),
        (state(1, "scoring"), "sealing"),
        (state(1, "scoring", by_role={"assessor": ["score"]}), "to be scored"),
        (state(6), "then none: it is the last"),
        (state(7), "all 6 trials are finished"),
    ],
)
def test_what_goes_on_is_said_in_words(headway, given, said):
    headway.hear(given, live=True)
    assert said in headway.line()


@pytest.mark.parametrize("width", [40, 60, 79, 120, 200])
def test_a_line_keeps_to_its_width_and_keeps_the_trial(headway, clock, width):
    headway.hear(state(1, "staging", pace_s=300.0), live=True)
    line = headway.line(width)
    assert len(line) <= width and line.startswith("trial 1 of 6, block 1 of 3")
    assert ("then pens/right" in line) == (width > 120) and ("to go" in line) == (width >= 60)


def test_plain_lines_come_with_each_news_not_more_than_one_a_second_and_after_five_quiet_minutes(headway, clock):
    lines, told = Lines(headway, clock), []
    for doing in ("planned", "staging", "armed", "running", "scoring"):
        headway.hear(state(1, doing), live=True)
        later(clock, 2)
        for _ in range(3):
            told += lines.due()
    assert [line.partition(": ")[2].partition(";")[0] for line in told] == ["being staged", "running"]
    headway.hear(state(2, "staging"), live=True)
    later(clock, 0.5)
    lines.due()
    headway.hear(state(2, "running"), live=True)
    assert len(lines.due()) + len(lines.due()) <= 1
    later(clock, 299)
    lines.due()
    lines.spoke()
    later(clock, 299)
    assert not lines.due()
    later(clock, 2)
    (line,) = lines.due()
    assert line.startswith("trial 2 of 6") and not lines.due()
