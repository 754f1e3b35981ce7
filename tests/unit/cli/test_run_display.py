"""What a headless run prints, on a terminal and elsewhere, and that nobody who does not read holds it up."""

from __future__ import annotations

import os
import pty
import sys

import pytest
from support.runs.run_states import state

from labctl.cli import run_display
from labctl.cli.run_display import WIPE, RunDisplay, displayed
from labctl.clock import SECOND, ManualClock


def test_on_a_terminal_one_line_is_kept_up_to_date_below_the_others():
    written: list[str] = []
    clock = ManualClock(0)
    display = RunDisplay(written.append, clock, lambda: 80)
    display.heard(state(1, "staging"), True)
    display.tick()
    (status,) = written
    assert status.startswith(f"{WIPE}trial 1 of 6") and "\n" not in status and len(status) - len(WIPE) < 80
    display.tick()
    assert len(written) == 1, "nothing has changed"
    display.report("recovered: nothing")
    assert written[1] == f"{WIPE}recovered: nothing\n{status.removeprefix(WIPE)}"
    clock.sleep_until(61 * SECOND)
    display.heard(state(1, "running"), True)
    display.tick()
    assert "running" in written[2] and written[2].startswith(WIPE)
    display.end()
    assert written[3] == WIPE


def test_elsewhere_lines_are_plain():
    written: list[str] = []
    clock = ManualClock(0)
    display = RunDisplay(written.append, clock, None)
    display.report("waiting for a console")
    display.heard(state(1, "staging"), True)
    clock.sleep_until(2 * SECOND)
    display.tick()
    display.end()
    assert written[0] == "waiting for a console\n"
    assert written[1].startswith("trial 1 of 6") and written[1].endswith("\n") and len(written) == 2
    assert "\x1b" not in "".join(written) and "\r" not in "".join(written)


def test_that_all_trials_are_finished_is_the_last_line_however_soon_the_run_is_over():
    written: list[str] = []
    display = RunDisplay(written.append, ManualClock(0), None)
    display.heard({**state(6, "running"), "trial": None, "trial_state": None, "progress": (6, 6)}, False)
    display.end()
    assert written == ["all 6 trials are finished; 0:00 elapsed\n"]
    display.end()
    assert len(written) == 1, "once"


def test_what_was_said_last_is_printed_before_it_is_over(capsys, monkeypatch):
    monkeypatch.setattr(run_display, "LAST_WORDS_S", 60.0)
    with displayed() as (say, watch):
        watch(state(1), True)
        for number in range(100):
            say(f"line {number}")
    assert capsys.readouterr().out.splitlines() == [f"line {number}" for number in range(100)]


@pytest.mark.parametrize("how", ["takes nothing", "is gone"])
def test_a_terminal_that_takes_nothing_or_is_gone_holds_nobody_up(monkeypatch, how):
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        if how == "is gone":
            os.close(master)
        with displayed() as (say, watch):
            for number in range(5000):
                watch(state(1), True)
                say(f"line {number} of more than a terminal keeps for who does not read")
        if how == "takes nothing":
            os.close(master)
