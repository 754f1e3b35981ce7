"""Which work fits into which shift: counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl import times
from labctl.clock import SECOND, wall_ns
from labctl.errors import InputError
from labctl.queue.forecast import Work, forecast
from labctl.queue.lab_files import Shift, read_shifts

HOUR_NS = 3600 * SECOND


def shift(begins_h: float, ends_h: float, *who: str) -> Shift:
    return Shift(round(begins_h * HOUR_NS), round(ends_h * HOUR_NS), who or ("p07",))


def work(name: str, trials: int, trial_s: float | None = 360.0, *, waits: bool = False) -> Work:
    return Work(name, trials, trial_s, "measured", waits)


def test_each_takes_whole_trials_of_the_shifts_in_its_turn_and_the_next_what_is_left() -> None:
    # Three hours less 20 minutes are 26 trials of 6 minutes and 4 minutes over; a session more takes 20 minutes.
    found = forecast([work("first", 30), work("second", 10)], [shift(0, 3), shift(24, 27)], 0, 1200)
    assert [(slot.name, slot.shift, slot.trials) for slot in found.slots] == [
        ("first", 0, 26),
        ("first", 1, 4),
        ("second", 1, 10),
    ]
    assert found.ends_ns["first"] == 24 * HOUR_NS + (1200 + 4 * 360) * SECOND
    assert found.ends_ns["second"] == found.ends_ns["first"] + (1200 + 10 * 360) * SECOND
    assert found.free_s == [240.0, 3 * 3600 - 1200 - 4 * 360 - 1200 - 3600]
    assert found.left == {}


def test_a_small_one_takes_what_a_large_one_leaves_and_a_paused_one_nothing() -> None:
    works = [work("long", 2, 5000.0), work("paused", 1, waits=True), work("unknown", 3, None), work("short", 2, 60.0)]
    found = forecast(works, [shift(0, 2)], 0, 600)
    assert [(slot.name, slot.trials) for slot in found.slots] == [("long", 1), ("short", 2)]
    assert found.left == {"long": 1} and set(found.ends_ns) == {"short"}


def test_a_shift_under_way_has_what_is_left_of_it_and_one_that_is_over_nothing() -> None:
    found = forecast([work("first", 100)], [shift(0, 1), shift(2, 4)], 3 * HOUR_NS, 0)
    assert [(slot.shift, slot.begins_ns, slot.trials) for slot in found.slots] == [(1, 3 * HOUR_NS, 10)]
    assert found.left == {"first": 90} and found.ends_ns == {}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.floats(1, 4000)), max_size=6),
    st.lists(st.integers(1, 6), max_size=5),
    st.floats(0, 3600),
)
def test_nothing_is_planned_twice_or_beyond_a_shift(
    wanted: list[tuple[int, float]], hours: list[int], overhead_s: float
) -> None:
    shifts = [shift(10 * number, 10 * number + length) for number, length in enumerate(hours)]
    works = [work(str(number), trials, trial_s) for number, (trials, trial_s) in enumerate(wanted)]
    found = forecast(works, shifts, 0, overhead_s)
    for one in works:
        planned = sum(slot.trials for slot in found.slots if slot.name == one.name)
        assert planned + found.left.get(one.name, 0) == one.trials
    for number, one in enumerate(shifts):
        mine = [slot for slot in found.slots if slot.shift == number]
        at = one.begins_ns
        for slot in mine:
            assert at <= slot.begins_ns <= slot.ends_ns <= one.ends_ns + SECOND
            at = slot.ends_ns


def shifts_of(lab: Path, text: str) -> list[Shift]:
    (lab / "shifts.toml").write_text(text)
    return read_shifts(lab)


def test_shifts_are_read_in_the_labs_own_time_and_in_order(tmp_path: Path) -> None:
    times.use("Europe/Berlin")
    try:
        found = shifts_of(
            tmp_path,
            '[[shift]]\nfrom = 2026-10-26T18:00:00\nto = 2026-10-26T21:00:00\nwho = ["p09"]\n'
            '[[shift]]\nfrom = 2026-10-24T18:00:00\nto = 2026-10-24T21:00:00+02:00\nwho = ["p07", "p09"]\n',
        )
    finally:
        times.use(None)
    # Clocks are put back in the night to 25 October 2026.
    in_utc = ["2026-10-24T16:00:00+00:00", "2026-10-26T17:00:00+00:00"]
    assert [one.begins_ns for one in found] == [wall_ns(wall) for wall in in_utc]
    assert found[0].who == ("p07", "p09")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from = 2026-10-26T18:00:00Z\nto = 2026-10-26T18:00:00Z\nwho = ['p1']", "not after it begins"),
        ("from = 2026-10-26T18:00:00Z\nto = 2026-10-26T21:00:00Z\nwho = []", "who is empty"),
        ("from = 2026-10-26\nto = 2026-10-26T21:00:00Z\nwho = ['p1']", "from"),
        ("to = 2026-10-26T21:00:00Z\nwho = ['p1']", "needs the key 'from'"),
        ("from = 0001-01-01T00:00:00+10:00\nto = 2026-10-26T21:00:00Z\nwho = ['p1']", "out of range"),
        (
            "from = 2026-10-26T18:00:00Z\nto = 2026-10-26T21:00:00Z\nwho = ['p1']\n[[shift]]\n"
            "from = 2026-10-26T20:00:00Z\nto = 2026-10-26T22:00:00Z\nwho = ['p2']",
            "one rig has one shift at a time",
        ),
    ],
)
def test_a_shift_that_cannot_be_is_refused_at_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        shifts_of(tmp_path, f"[[shift]]\n{text}\n")
    assert "shifts.toml:" in str(error.value)


def test_a_time_of_a_zone_that_is_not_known_here_is_refused_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(times.ZONE, "Mars/Olympus")
    with pytest.raises(InputError, match=r"shifts\.toml:1: 'Mars/Olympus' is no time zone known here"):
        shifts_of(tmp_path, "[[shift]]\nfrom = 2026-10-26T18:00:00\nto = 2026-10-26T21:00:00\nwho = ['p1']\n")


def test_a_lab_without_shifts_has_none(tmp_path: Path) -> None:
    assert read_shifts(tmp_path) == []
