"""Times are said where the lab is, with their offset, by one module; a night in which the clocks change is plain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.runs.campaigns import make_campaign

from labctl import times
from labctl.cli import call
from labctl.clock import SECOND, Anchor
from labctl.config.cell_schema import parse_lab
from labctl.errors import InputError
from labctl.store.lab_folder import find_lab

ROOT = Path(__file__).resolve().parents[2]
HOUR = 3600 * SECOND
# Berlin's clocks go back from 03:00 to 02:00 on 2026-10-25, 01:00 UTC, and forward on 2026-03-29 (EU 2000/84).
BEFORE, AFTER = "2026-10-25T00:30:00.000000+00:00", "2026-10-25T01:30:00.000000+00:00"


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(times.ZONE, "Europe/Berlin")


def test_both_hours_of_one_name_are_told_apart_by_their_offset(berlin: None) -> None:
    assert times.local(BEFORE) == "2026-10-25 02:30 +02:00"
    assert times.local(AFTER) == "2026-10-25 02:30 +01:00"
    assert times.local(AFTER, seconds=True) == "2026-10-25 02:30:00 +01:00"


def test_an_end_beyond_the_change_is_counted_in_hours_that_pass(berlin: None) -> None:
    at = Anchor(0, "2026-10-24T23:30:00.000000+00:00", "b")  # 01:30 summer time
    ends = [times.time_of_day(at, hours * HOUR) for hours in range(4)]
    assert ends == ["01:30 +02:00", "02:30 +02:00", "02:30 +01:00", "03:30 +01:00"]
    spring = Anchor(0, "2026-03-29T00:30:00.000000+00:00", "b")
    assert [times.time_of_day(spring, hours * HOUR) for hours in range(2)] == ["01:30 +01:00", "03:30 +02:00"]


def test_a_day_is_the_lab_s_and_another_one_is_named(berlin: None) -> None:
    late = "2026-06-30T22:30:00.000000+00:00"
    assert times.day(late) == "2026-07-01"
    assert times.time_of_day(Anchor(0, late, "b"), 24 * HOUR) == "Thu 00:30 +02:00"


def test_a_line_of_the_record_begins_with_the_time_as_people_read_it(berlin: None) -> None:
    assert times.in_line(f"{BEFORE}: cell faulted: smoke") == "2026-10-25 02:30 +02:00: cell faulted: smoke"
    assert times.in_line("episode e-1: its clock") == "episode e-1: its clock"


def test_where_nothing_is_named_it_is_this_computer_s_and_no_offset_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(times.ZONE, raising=False)
    assert times.local(BEFORE).startswith("2026-10-25 ") or times.local(BEFORE).startswith("2026-10-24 ")
    assert "of the computer" in times.zone_words()
    monkeypatch.setenv(times.ZONE, "UTC")
    assert (times.local(BEFORE), times.local(None), times.zone_words()) == ("2026-10-25 00:30 UTC", "", "UTC")


def test_a_zone_that_is_none_is_refused_in_a_line_with_its_place() -> None:
    assert parse_lab('timezone = "Europe/Berlin"\n', "lab.toml").timezone == "Europe/Berlin"
    for wrong in ("Europe/Berln", "CEST", "../etc/passwd", "/etc/localtime"):
        with pytest.raises(InputError, match=r"^lab\.toml:2: timezone .* is no time zone known here") as refused:
            parse_lab(f'people = ["p1"]\ntimezone = "{wrong}"\n', "lab.toml")
        assert "Europe/Berlin" in str(refused.value)


def test_what_people_read_is_in_the_lab_s_zone_and_what_programs_read_is_utc(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_campaign(tmp_path, name="late")
    (tmp_path / "lab.toml").write_text('timezone = "Asia/Kolkata"\n')
    assert find_lab(tmp_path) and times.zone_words() == "Asia/Kolkata"
    assert call(["close", made.name, "--reason", "over", "--lab", str(tmp_path)]) == 0
    capsys.readouterr()
    assert call(["status", made.name, "--lab", str(tmp_path), "--json"]) == 0
    assert "+05:30" not in capsys.readouterr().out
    (tmp_path / "lab.toml").write_text("")
    find_lab(tmp_path)
    assert "Kolkata" not in times.zone_words(), "a lab that names none says none of another's"


# What records and wires need, in UTC; and analysis/, which may know no clock, of a table that another labctl wrote.
NOT_SHOWN = {
    "labctl/times.py",
    "labctl/clock.py",
    "labctl/logs.py",
    "labctl/checks/bugreport.py",
    "labctl/store/media/s3_store.py",
    "labctl/store/verifying/timestamps.py",
    "labctl/people/second_person.py",
    "analysis/report/page.py",
}
MAKES_TIMES = re.compile(r"strftime|isoformat|astimezone|%H:%M|wall\[|\.wall\)?\[:|'wall'\]\[|\.set\[:")


def test_no_other_module_makes_a_time_for_people() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for top in ("labctl", "ui", "analysis", "drivers")
        for path in sorted((ROOT / top).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in NOT_SHOWN
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MAKES_TIMES.search(line)
    ]
    assert found == [], "labctl.times says times"
    for name in NOT_SHOWN:
        assert MAKES_TIMES.search((ROOT / name).read_text("utf-8")), f"{name} needs no exception any more"


def test_a_time_that_passes_is_in_minutes_and_seconds_and_in_hours_where_it_is_long() -> None:
    assert [times.minutes(s) for s in (0, 31.9, 760, 3725)] == ["0:00", "0:31", "12:40", "1:02:05"]
