"""A test waits two minutes on a machine that has something left, and longer on one that has not; never for ever."""

from __future__ import annotations

import os

from support.machine.patience import PATIENCE_NS, SLOWER, Patience, idle_ns

from labctl.clock import SECOND, ManualClock


def lasts_s(idle: float | None) -> float:
    """idle: share of the cores' time in which they are."""
    clock, cores = ManualClock(0), os.cpu_count() or 1
    patience = Patience(clock, lambda: None if idle is None else idle * cores * clock.now_ns())
    while not patience.over():
        clock.sleep_until(clock.now_ns() + SECOND // 50)
    return clock.now_ns() / SECOND


def test_two_minutes_where_a_core_is_idle_now_and_then() -> None:
    assert lasts_s(0.3) == lasts_s(None) == PATIENCE_NS / SECOND == 120


def test_longer_where_other_programs_have_every_core_and_less_than_a_test_may_take() -> None:
    assert lasts_s(0.01) == SLOWER * 120 < 600


def test_this_machine_says_how_long_its_cores_were_idle() -> None:
    before = idle_ns()
    assert before is None or (idle_ns() or 0) >= before > 0
