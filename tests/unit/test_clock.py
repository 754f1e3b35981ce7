"""A suspension of the host shows as the one clock that goes on in it drawing away from the one that does not."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from labctl import clock
from labctl.clock import MILLISECOND, SECOND, ManualClock, MonotonicClock, Suspensions, began


def test_a_suspension_is_found_once_and_the_reading_of_two_clocks_is_none():
    manual = ManualClock()
    suspensions = Suspensions(manual)
    assert suspensions.new_ns() == 0
    manual.suspend(10 * MILLISECOND)
    assert suspensions.new_ns() == 0, "two readings may lie so far apart"
    manual.suspend(2 * SECOND)
    assert suspensions.new_ns() == 2 * SECOND + 10 * MILLISECOND
    assert suspensions.new_ns() == 0 and manual.now_ns() == 0


def test_a_process_has_a_beginning_whatever_bytes_it_is_named_with():
    code = "import sys; open('/proc/self/comm', 'wb').write(b'\\xff) ('); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        first, second = began(process.pid), began(process.pid)
        process.communicate()
    assert first is not None and first == second
    assert began(process.pid) is None


def test_small_drifts_do_not_hide_a_suspension():
    manual = ManualClock()
    suspensions = Suspensions(manual)
    for _ in range(5):
        manual.suspend(20 * MILLISECOND)
    assert suspensions.new_ns() == 100 * MILLISECOND


def test_a_suspension_is_what_the_clock_since_boot_has_gone_on_for(monkeypatch: pytest.MonkeyPatch):
    """As Linux has them (clock_gettime(2)): CLOCK_BOOTTIME is CLOCK_MONOTONIC and the time that was spent suspended."""
    host = MonotonicClock()
    monkeypatch.setattr(clock.time, "monotonic_ns", lambda: 5 * SECOND)
    monkeypatch.setattr(clock.time, "clock_gettime_ns", lambda which: 5 * SECOND + 600 * SECOND * (which == 7))
    assert time.CLOCK_BOOTTIME == 7
    assert host.suspended_ns() == 600 * SECOND


def test_a_process_that_is_held_up_between_two_readings_takes_that_for_no_suspension(monkeypatch: pytest.MonkeyPatch):
    now = [0]
    held = iter([0, 3 * SECOND])  # once, between the first clock and the second

    def read() -> int:
        now[0] += next(held, 100)
        return now[0]

    monkeypatch.setattr(clock.time, "monotonic_ns", read)
    monkeypatch.setattr(clock.time, "clock_gettime_ns", lambda which: read())
    assert abs(MonotonicClock().suspended_ns()) < MILLISECOND
