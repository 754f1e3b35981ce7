"""The console in a real terminal beside a live run: its stop key, its death, what it costs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import numpy as np
import pytest
from support.robots.arm_states import rest_after_s
from support.robots.emulators import NAMES, Emulator
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.live_campaign import CLOCK, end_of, of_kind, running, wait_for
from support.screens.terminal import Terminal

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.store.verifying.verify import verify_campaign

pytestmark = pytest.mark.real_time

CONSOLE = "from labctl.cli import main; main()"
# The same console whose screen is busy for ever once it has been seen.
BUSY = """
from pathlib import Path
from labctl.ui.console.app import Console
drawn = Console.pump
def pump(self):
    drawn(self)
    while Path("MARK.seen").exists() and self._state and self._state["trial_state"] == "running":
        Path("MARK").touch()
Console.pump = pump
from labctl.cli import main; main()
"""


@contextmanager
def console(folder: Path, code: str = CONSOLE, *more: str) -> Iterator[Terminal]:
    terminal = Terminal([sys.executable, "-P", "-c", code, "console", str(folder), "--who", "ann", *more])
    try:
        wait_for("the console's screen", lambda: b"STOP" in terminal.seen or b"joint" in terminal.seen)
        yield terminal
    except AssertionError:
        print(f"console ended with {terminal.child.poll()}; sent last: {bytes(terminal.seen[-4000:])!r}")
        raise
    finally:
        terminal.end()


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    made = Emulator(NAMES["emulated_fr3"])
    yield made
    made.end()


@pytest.fixture
def timely() -> Iterator[Emulator]:
    """A controller that keeps its millisecond whatever else runs, as a real one does."""
    made = Emulator(NAMES["emulated_fr3"], "ahead=true")
    yield made
    made.end()


# What hangs in each trial. Where the run process does, the lapsed lease stops the robot as well.
SCREEN, RUN = "screen busy", "run frozen"
OTHERS = pytest.param(("nothing", RUN), marks=pytest.mark.thorough)


@pytest.mark.parametrize("ways", [(SCREEN,), OTHERS], ids=["screen", "run"])
def test_the_stop_key_stops_a_moving_arm_whatever_else_hangs(
    emulator: Emulator, tmp_path: Path, ways: tuple[str, ...]
) -> None:
    """With all in order, with a screen that is busy for ever, with the run process frozen."""
    opened = make_campaign(
        tmp_path,
        [policy("policy-a", skill="swift"), policy("policy-b", skill="swift")],
        base="emulated_fr3",
        cell={"127.0.0.2": emulator.host},
        live=True,
        durable=True,
        blocks=2,
        items=80,  # minutes: who presses the key finds an episode that runs, however late a console is up
        budget=3.0,
    )
    folder, busy, pressed_ns = opened.folder, tmp_path / "busy", list[int]()
    with running(folder, tmp_path / "run.log") as run:
        for number, hangs in enumerate(ways, 1):
            wait_for(f"trial {number}", lambda n=number: len(of_kind(folder, Kind.ARM_REVEALED)) >= n)
            with console(folder, BUSY.replace("MARK", str(busy)) if hangs == SCREEN else CONSOLE) as terminal:
                busy.with_suffix(".seen").touch()
                wait_for(f"go {number}", lambda n=number: len(of_kind(folder, Kind.GO)) >= n)
                if hangs == SCREEN:
                    wait_for("a busy screen", lambda: busy.is_file() or terminal.child.poll() is not None)
                    assert busy.is_file(), "the console ended"
                emulator.until_moving()
                if hangs == RUN:
                    os.kill(run.pid, SIGSTOP)
                pressed_ns.append(CLOCK.now_ns())
                terminal.key(" ")
                if hangs == RUN:  # which else goes on, and so does the robot
                    wait_for("the arm at rest", emulator.still)
                os.kill(run.pid, SIGCONT)
                wait_for(f"end {number}", lambda n=number: len(of_kind(folder, Kind.RECORDING_SEALED)) >= n)
        run.terminate()
        end_of(run)
    for hangs, from_ns, ended in zip(ways, pressed_ns, of_kind(folder, Kind.EPISODE_ENDED), strict=False):
        took_s = rest_after_s(folder, ended.episode, from_ns)
        print(f"stop key, {hangs} hangs: at rest {took_s:.2f} s of robot time later")
        assert took_s < 2.0
    why = (tmp_path / "run.log").read_text() + str([event.body for event in of_kind(folder, Kind.HOLD_RAISED)])
    assert str(of_kind(folder, Kind.EPISODE_ENDED)[0].body["reason"]) == "safety_stop", why
    assert verify_campaign(folder).problems == []


@pytest.mark.thorough
def test_consoles_killed_again_and_again_change_nothing_in_the_journal(tmp_path: Path) -> None:
    """One at each step of two trials, as far as the run is when a console is up."""
    arms = [HUMAN, policy("policy-a", skill="swift")]
    opened = make_campaign(tmp_path, arms, live=True, items=2, budget=6.0, arming=8.0, cameras=True)
    folder, steps = opened.folder, (Kind.RUN_STARTED, Kind.ARM_REVEALED, Kind.GO, Kind.EPISODE_ENDED)
    with running(folder, tmp_path / "run.log") as run:
        for kind, nth in [(kind, nth) for nth in (1, 2) for kind in steps if (kind, nth) != (Kind.RUN_STARTED, 2)]:
            wait_for(
                f"{kind}, number {nth}", lambda k=kind, n=nth: len(of_kind(folder, k)) >= n or run.poll() is not None
            )
            wait_for("the run's sockets", lambda: (folder / "run.json").is_file() or run.poll() is not None)
            if run.poll() is None:
                terminal = Terminal([sys.executable, "-P", "-c", CONSOLE, "console", str(folder), "--who", "ann"])
                wait_for("a console that is up", lambda t=terminal: b"STOP" in t.seen or run.poll() is not None)
                terminal.end()
        end_of(run)
    assert run.returncode == 0
    assert {event.who for event in events_of(folder)} <= {"labctl-run", "tester", "sim-operator"}
    assert len(of_kind(folder, Kind.OUTCOME_RECORDED)) == 2
    assert verify_campaign(folder).problems == []


@pytest.mark.benchmark
def test_what_a_console_costs_and_how_fast_it_answers_with_everything_live(timely: Emulator, tmp_path: Path) -> None:
    """Prints CPU share, memory and key-to-screen times beside a moving FR3 (states at 1 kHz) and two cameras; judges
    nothing. `m` goes to the run process and back before the screen changes; `t` opens a page.
    """
    opened = make_campaign(
        tmp_path,
        [HUMAN, {**HUMAN, "name": "policy-a", "kind": "policy"}],  # a simulated person does not run into things
        base="emulated_fr3",
        cell={"127.0.0.2": timely.host},
        live=True,
        durable=True,
        items=8,
        budget=60.0,
        arming=10.0,
        cameras=True,
    )
    folder = opened.folder
    with running(folder, tmp_path / "run.log"), console_when_up(folder) as terminal:
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        timely.until_moving()
        before, start_ns = terminal.cpu_s(), CLOCK.now_ns()
        CLOCK.sleep_until(start_ns + 10 * SECOND)
        share = (terminal.cpu_s() - before) / ((CLOCK.now_ns() - start_ns) / SECOND)
        counted, opened_ns = [], []
        for _ in range(8):
            counted.append(terminal.answer_ns("m", "counted 1 of"))
            counted.append(terminal.answer_ns("-", "counted 0 of"))
        for _ in range(8):
            opened_ns.append(terminal.answer_ns("t", "no outcomes"))
            terminal.answer_ns("\x1b", "test-cell")
        print(
            f"\nconsole: {100 * share:.0f} % of a core, {terminal.memory_mb():.0f} MB of its own, 1-minute load",
            end=" ",
        )
        print(f"{os.getloadavg()[0]:.1f}")
        for what, took in (("count through the run process", counted), ("open a page", opened_ns)):
            middle, late = np.percentile(np.array(took) / 1e6, [50, 95])
            print(f"key to screen, {what}: median {middle:.0f} ms, 95th percentile {late:.0f} ms, n = {len(took)}")


@contextmanager
def console_when_up(folder: Path) -> Iterator[Terminal]:
    wait_for("the run", lambda: (folder / "run.json").is_file())
    with console(folder) as terminal:
        yield terminal
