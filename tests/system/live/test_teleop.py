"""`labctl teleop` as a user types it, on a simulated cell: real processes, a real gamepad driver, a joystick in SDL."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.robots.virtual_hand import CLUTCH, SHUT, Fingers
from support.runs.campaigns import ROOT, cell_toml, make_campaign
from support.runs.live_campaign import CLOCK, end_of, wait_for
from support.screens.terminal import Terminal

from labctl.cli import call
from labctl.clock import SECOND
from labctl.store.locks import cell_lock

pytestmark = [pytest.mark.real_time, pytest.mark.thorough]

CELL = """
[teleop]
device = "support.robots.virtual_hand:build"
[teleop.options]
socket = "{socket}"
"""


class Practice:
    """`labctl teleop` in a process, with its hand and what it printed."""

    def __init__(self, lab: Path, *words: str) -> None:
        socket = lab / "hand.sock"
        (lab / "cells").mkdir(parents=True, exist_ok=True)
        (lab / "lab.toml").touch()
        cell = lab / "cells" / "hand.toml"
        cell.write_text(cell_toml(cameras=False) + CELL.format(socket=socket), "utf-8")
        self.log = lab / "teleop.log"
        command = [str(Path(sys.executable).with_name("labctl")), "teleop", "--cell", str(cell), *words]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=env, start_new_session=True)
        self.hand = Fingers(socket)

    def lines(self) -> list[str]:
        return self.log.read_text("utf-8").splitlines()

    def until(self, words: str) -> str:
        """The first line that holds these words, once it is there."""

        def found() -> str | None:
            assert self.process.poll() is None or words in self.log.read_text("utf-8"), self.log.read_text("utf-8")
            return next((line for line in self.lines() if words in line), None)

        return str(wait_for(words, found))

    def drive(self) -> None:
        """Hold the clutch, push the stick away, close the gripper, until the arm moves."""
        self.until("hold the clutch")
        assert self.hand.press(CLUTCH, SHUT) and self.hand.push(a1=-1.0)
        self.until("the hand drives | robot moving")
        self.until("gripper 0 mm")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hand.close()


@pytest.fixture
def practice(tmp_path: Path) -> Iterator[Practice]:
    made = Practice(tmp_path)
    yield made
    made.end()


def test_a_keyboard_that_no_file_names_is_the_terminal_that_teleop_was_started_in(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").touch()
    cell = tmp_path / "hand.toml"
    cell.write_text(cell_toml(cameras=False) + '\n[teleop]\ndevice = "keyboard"\n', "utf-8")
    labctl = str(Path(sys.executable).with_name("labctl"))
    terminal = Terminal([labctl, "teleop", "--cell", str(cell), "--lab", str(tmp_path)])
    pressed_ns = 0

    def drives() -> bool:
        assert terminal.child.poll() is None, terminal.seen.decode()
        nonlocal pressed_ns
        if CLOCK.now_ns() > pressed_ns + 2 * SECOND:  # a key that is held from the start on drives nothing
            pressed_ns = CLOCK.now_ns()
            terminal.key("w")
        return b"the hand drives" in terminal.seen

    try:
        wait_for("the hand drives", drives)
        terminal.child.send_signal(signal.SIGINT)  # as Ctrl-C does in a terminal that controls its programs
        assert end_of(terminal.child) == 0, terminal.seen.decode()
        wait_for("its last line", lambda: b"nothing was recorded" in terminal.seen)
    finally:
        terminal.end()


def x_m(line: str) -> float:
    return float(line.rpartition("tool ")[2].split()[0])


def everything(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def test_a_hand_drives_the_arm_and_ctrl_c_leaves_it_at_rest_and_no_trace_in_a_campaign(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path).folder
    before = everything(folder)
    practice = Practice(tmp_path)
    try:
        practice.drive()
        practice.process.send_signal(signal.SIGINT)
        assert end_of(practice.process) == 0, practice.log.read_text()
    finally:
        practice.end()
    lines = practice.lines()
    waiting = next(line for line in lines if "hold the clutch" in line)
    stopping = next(line for line in lines if line.startswith("stopping"))
    assert x_m(stopping) > x_m(waiting) + 0.02, "the stick away from the person is the base's x"
    assert lines[-1].startswith("ended after ") and lines[-1].endswith("the robot is at rest; nothing was recorded")
    assert everything(folder) == before
    assert not list(tmp_path.rglob("logs")) and not practice.hand.path.exists()


def test_a_device_pulled_out_in_motion_stops_the_arm_and_the_line_says_so(practice: Practice) -> None:
    practice.drive()
    assert practice.hand.unplug()
    assert end_of(practice.process) == 69
    text = practice.log.read_text("utf-8")
    assert "stopped: support.robots.virtual_hand:build is gone: it was unplugged" in text
    last = text.splitlines()[-1]
    assert last == "error: support.robots.virtual_hand:build is gone: it was unplugged; the robot is at rest"


def test_a_cell_that_a_campaign_holds_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_campaign(tmp_path).folder
    cell = tmp_path / "cells" / "c.toml"
    cell.write_text(cell.read_text() + CELL.format(socket=tmp_path / "hand.sock"), "utf-8")
    with cell_lock(folder, "test-cell", verb="run"):
        assert call(["teleop", "--cell", str(cell)]) == 1
    printed = capsys.readouterr()
    said = f"error: cell test-cell is in use by `run` (process {os.getpid()}); wait for it to end, or end it\n"
    assert (printed.out, printed.err) == ("", said)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("", "has no [teleop] table"),
        ('[teleop]\ndevice = "joystick"\n', "[teleop]: no driver named 'teleop_joystick'; known drivers: "),
        ('[teleop]\ndevice = "gamepad"\n[teleop.options]\nport = 1\n', "[teleop]: teleop_gamepad has no option 'port'"),
        ('[teleop]\ndevice = "gamepad"\naxes = ["x"]\n', "[teleop]: axes has 1 entry; give six"),
    ],
)
def test_a_cell_that_cannot_be_driven_is_refused_before_anything_starts(
    table: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = tmp_path / "cell.toml"
    cell.write_text(cell_toml(cameras=False) + table, "utf-8")
    assert call(["teleop", "--cell", str(cell)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith(f"error: {cell}: {says}")


def test_a_device_that_is_not_there_is_said(tmp_path: Path) -> None:
    cell = tmp_path / "cell.toml"
    cell.write_text(cell_toml(cameras=False) + '[teleop]\ndevice = "gamepad"\n', "utf-8")
    (tmp_path / "lab.toml").touch()
    command = [str(Path(sys.executable).with_name("labctl")), "teleop", "--cell", str(cell)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 69
    assert done.stderr.startswith("error: gamepad 0 is not there; SDL sees 0; plug it in")
