"""A run that is ended from outside ends in order: its last word is in the journal, and nobody has to read it."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.machine.processes import end_with_parent
from support.runs.campaigns import events_of, make_campaign, policy, with_tests
from support.runs.live_campaign import end_of, of_kind, wait_for
from support.screens.terminal import Terminal

from labctl.cli import call
from labctl.core.events import Kind
from labctl.core.trial import State, fold
from labctl.store.verifying.verify import verify_campaign

LABCTL = [str(Path(sys.executable).with_name("labctl"))]
REAL = [pytest.mark.real_time, pytest.mark.thorough]
TIMES = [pytest.param("--simulated-time", id="simulated"), pytest.param("--real-time", id="real", marks=REAL)]
ENDED_BY = [
    pytest.param(signal.SIGHUP, "--simulated-time", id="SIGHUP-simulated"),
    pytest.param(signal.SIGTERM, "--simulated-time", id="SIGTERM-simulated", marks=pytest.mark.thorough),
    pytest.param(signal.SIGINT, "--simulated-time", id="SIGINT-simulated", marks=pytest.mark.thorough),
    pytest.param(signal.SIGHUP, "--real-time", id="SIGHUP-real", marks=REAL),  # SIGTERM: test_live.py
]


def campaign(lab: Path, time: str, **more: Any) -> Path:
    """It is still at its first episode whenever a test comes to act: that one takes minutes, or in simulated time over
    one.
    """
    real = time == "--real-time"
    long = {"items": 600, "budget": 1600.0, "arming": 5.0}
    skill, lasts = ("slow", {"items": 40, "budget": 6.0}) if real else ("swift", long)
    arms = [policy(name, skill=skill) for name in ("policy-a", "policy-b")]
    return make_campaign(lab, arms, **{"live": real, "blocks": 2} | lasts | more).folder


def own_signals() -> None:
    """As a shell starts it, whatever this suite was started under."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    end_with_parent()


class Lost:
    """The other end of a run's terminal: what is written there is taken, until it is lost."""

    def __init__(self, master: int) -> None:
        self._master, self._over = master, threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._over.is_set():
            if select.select([self._master], [], [], 0.05)[0]:
                try:
                    os.read(self._master, 65536)
                except OSError:
                    return

    def lose(self) -> None:
        self._over.set()
        self._reader.join()
        os.close(self._master)


@contextmanager
def run_on_a_terminal(folder: Path, time: str, *before: str) -> Iterator[tuple[subprocess.Popen[bytes], Lost]]:
    """`labctl run --headless` that writes on a terminal, and that terminal's other end."""
    master, slave = pty.openpty()
    words = [*before, *LABCTL, "run", str(folder), "--headless", time]
    streams = {"stdin": slave, "stdout": slave, "stderr": slave, "cwd": folder.parent, "env": with_tests()}
    run = subprocess.Popen(words, **streams, start_new_session=True, preexec_fn=own_signals)
    os.close(slave)
    try:
        yield run, Lost(master)
    finally:
        run.kill()
        run.wait()


@pytest.mark.parametrize(("number", "time"), ENDED_BY)
def test_a_lost_terminal_a_kill_and_ctrl_c_end_a_run_alike(tmp_path: Path, number: signal.Signals, time: str) -> None:
    """In an episode, with nobody left to read what is said: the motion ends, what was recorded is sealed, exit 0."""
    folder = campaign(tmp_path, time)
    with run_on_a_terminal(folder, time) as (run, terminal):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        terminal.lose()
        run.send_signal(number)
        assert end_of(run) == 0
    events = events_of(folder)
    assert (events[-1].kind, events[-1].body["reason"]) == (Kind.RUN_STOPPED, "asked")
    states = {trial.state for trial in fold(events).trials.values()}
    assert states <= {State.PLANNED, State.SCORING, State.SCORED}, "nothing is left armed or running"
    assert len(of_kind(folder, Kind.RECORDING_SEALED)) == len(of_kind(folder, Kind.EPISODE_ENDED))
    assert verify_campaign(folder).problems == []


def test_a_hang_up_that_was_to_be_ignored_is(tmp_path: Path) -> None:
    """`nohup labctl run …`, whose terminal is gone: it goes on."""
    folder = campaign(tmp_path, "--simulated-time")
    with run_on_a_terminal(folder, "--simulated-time", "nohup") as (run, terminal):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        terminal.lose()
        run.send_signal(signal.SIGHUP)
        moved = len(of_kind(folder, Kind.OPERATION_RECORDED))
        wait_for("further items", lambda: len(of_kind(folder, Kind.OPERATION_RECORDED)) > moved + 3)
        assert run.poll() is None and not of_kind(folder, Kind.EPISODE_ENDED)


@pytest.mark.parametrize("time", TIMES)
def test_stop_lets_the_trial_that_runs_be_scored_and_at_once_ends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], time: str
) -> None:
    """From another shell, which waits: when it is back, the campaign is free for the next verb."""
    blocks = 2 if time == "--real-time" else 500  # some are left, however late the stop comes
    folder = campaign(tmp_path, time, items=1 if blocks == 2 else 2, budget=6.0, blocks=blocks)
    with run_on_a_terminal(folder, time) as (run, _):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert call(["stop", str(folder), "--who", "lea"]) == 0
        assert call(["close", str(folder), "--reason", "tried"]) == 0, "its lock is free"
        assert end_of(run) == 0
    events = events_of(folder)
    stopped = next(event for event in events if event.kind == Kind.RUN_STOPPED)
    scored = of_kind(folder, Kind.OUTCOME_RECORDED)
    assert len(scored) == len(of_kind(folder, Kind.GO)) >= 1 and stopped.body["reason"] == "asked"
    assert stopped.who == ("lea" if time == "--real-time" else "labctl stop")
    assert "shutdown" not in {event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)}
    assert f"has ended: {len(scored)} scored, 0 not run, {2 * blocks - len(scored)} left" in capsys.readouterr().out


@pytest.mark.parametrize("time", TIMES)
def test_stop_now_ends_the_episode_and_the_run(tmp_path: Path, time: str) -> None:
    folder = campaign(tmp_path, time)
    with run_on_a_terminal(folder, time) as (run, _):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert call(["stop", str(folder), "--now"]) == 0
        assert end_of(run) == 0
    assert [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)] == ["shutdown"]
    assert len(of_kind(folder, Kind.RECORDING_SEALED)) == 1 and not of_kind(folder, Kind.OUTCOME_RECORDED)


@pytest.mark.real_time
@pytest.mark.thorough
def test_stop_ends_a_run_whose_sockets_somebody_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cleaner of /tmp took their folder: the run goes on recording, hears no console, and ends in order."""
    folder = campaign(tmp_path, "--real-time")
    with run_on_a_terminal(folder, "--real-time") as (run, _):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        shutil.rmtree(json.loads((folder / "run.json").read_text())["sockets"])
        assert call(["run", str(folder), "--headless"]) == 1
        assert "labctl stop trial-run" in capsys.readouterr().err
        assert call(["stop", str(folder), "--now"]) == 0
        assert end_of(run) == 0
    assert "sockets of trial-run's run is gone" in capsys.readouterr().out
    assert [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)] == ["shutdown"]
    assert len(of_kind(folder, Kind.RECORDING_SEALED)) == 1


def test_stop_of_a_campaign_that_nobody_runs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = campaign(tmp_path, "--simulated-time")
    assert call(["stop", str(folder)]) == 0
    assert capsys.readouterr().out == "no run of trial-run is going\n"


def test_a_second_run_without_a_console_says_who_holds_the_campaign_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path, "--simulated-time")
    with run_on_a_terminal(folder, "--simulated-time") as (run, _):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert call(["run", str(folder), "--headless"]) == 1
        told = capsys.readouterr().err
        assert f"is in use by `run trial-run` (process {run.pid})" in told and "labctl stop trial-run" in told
        assert run.poll() is None, "the first goes on"


@pytest.mark.real_time
def test_a_second_run_on_a_terminal_attaches_and_leaves_the_first_alone(tmp_path: Path) -> None:
    folder = campaign(tmp_path, "--real-time")
    with run_on_a_terminal(folder, "--real-time") as (run, _):
        wait_for("the run", lambda: (folder / "run.json").is_file())
        console = Terminal([*LABCTL, "run", str(folder), "--who", "ann"])
        try:
            wait_for("a console", lambda: b"STOP" in console.seen)
            assert b"is being run already" in console.seen
            console.key("q")
            wait_for("its end", lambda: console.child.poll() is not None)
            assert console.child.returncode == 0
            wait_for("its last line", lambda: b"labctl stop trial-run" in console.seen)
            assert b"ended with exit code" not in console.seen
        finally:
            console.end()
        assert run.poll() is None
