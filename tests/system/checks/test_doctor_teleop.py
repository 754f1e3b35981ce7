"""`labctl doctor` on a cell with [teleop]: a device that can be read, each that cannot, and what to do about it."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.robots.teleop_devices import Puck, Servos
from support.runs.campaigns import ROOT, cell_toml

from labctl.checks.computer import Check
from labctl.checks.doctor import check_teleop
from labctl.checks.probing import feel
from labctl.cli import call
from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Setup
from labctl.drivers.teleop import spacemouse as teleop_spacemouse
from labctl.drivers.teleop.pucks import PUCKS
from labctl.errors import MissingExtra
from labctl.runtime.hosting.cell_nodes import stand_in
from labctl.store.lab_folder import read_cell

pytestmark = pytest.mark.real_time

CRASHES = "import os, signal\n\ndef build(options):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
LEADER = 'port = "{port}"\nsigns = {signs}\noffsets_rad = {offsets}\nids = {ids}'


def cell_of(folder: Path, device: str, options: str = "") -> Cell:
    path = folder / "cell.toml"
    table = f'\n[teleop]\ndevice = "{device}"\n[teleop.options]\n{options}\n'
    path.write_text(cell_toml(cameras=False) + table, "utf-8")
    return read_cell(path)


def told(folder: Path, device: str, options: str = "") -> Check:
    (check,) = check_teleop(cell_of(folder, device, options), "labctl doctor cell.toml")
    assert check.name == "teleop" and "\n" not in check.text
    return check


def typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """`labctl doctor CELL.toml`: its exit code and its line about the device."""
    code = call(["doctor", str(folder / "cell.toml")])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "  teleop:" in line]
    return code, line


def setup(cell: Cell) -> Setup:
    return Setup(cell=cell, fixture=stand_in())


def leader(servos: Servos, joints: int) -> str:
    ids = [*range(1, joints + 1)]
    return LEADER.format(port=servos.port, signs=[1] * joints, offsets=[0.0] * joints, ids=ids) + "\ntrigger_id = 8"


@pytest.fixture
def servos() -> Iterator[Servos]:
    made = Servos({number: 0 for number in range(1, 9)})
    yield made
    made.end()


def test_a_cell_without_a_device_is_not_asked_for_one(tmp_path: Path) -> None:
    path = tmp_path / "cell.toml"
    path.write_text(cell_toml(cameras=False), "utf-8")
    assert check_teleop(read_cell(path), "") == []


def test_a_gamepad_that_sdl_sees_is_read_and_doctor_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verb as a user types it; the pad exists in SDL alone, in the process that doctor asks it in."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    cell_of(tmp_path, "support.robots.virtual_hand:build", f'socket = "{tmp_path / "s"}"')
    code, line = typed(tmp_path, capsys)
    assert code == 0, line
    assert "is there and can be read; it would now wait: hold the clutch; nothing was moved" in line


def test_a_gamepad_that_is_not_there_fails_the_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell_of(tmp_path, "gamepad", "number = 7")
    code, line = typed(tmp_path, capsys)
    assert code == 1 and line.startswith("FAIL") and "gamepad 7 is not there; SDL sees" in line
    assert line.endswith(f"plug it in, or correct [teleop] -> then: labctl doctor {tmp_path / 'cell.toml'}")


def test_a_keyboard_is_read_in_its_terminal_and_the_terminal_given_back(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    try:
        found = told(tmp_path, "keyboard", f'terminal = "{os.ttyname(slave)}"')
        assert (found.level, "can be read; it would now wait: hold a key: W S A D" in found.text) == ("ok", True), found
        os.write(slave, b"as before\n")
        assert os.read(master, 64) == b"as before\r\n", "its settings are as they were"
    finally:
        os.close(slave)
        os.close(master)
    gone = told(tmp_path, "keyboard", 'terminal = "/dev/pts/none"')
    assert gone.level == "fail" and "/dev/pts/none is no terminal that can be read" in gone.text


def test_a_leader_that_answers_one_that_is_silent_and_one_of_another_arm(tmp_path: Path, servos: Servos) -> None:
    found = told(tmp_path, "gello", leader(servos, 7))
    assert found.level == "ok" and "can be read" in found.text, found
    other = told(tmp_path, "gello", leader(servos, 6))
    assert other.remedy.startswith("correct [teleop.options]")
    assert other.level == "fail" and "another number of joints (6) than the robot (7)" in other.text
    servos.silent = True
    silent = told(tmp_path, "gello", leader(servos, 7))
    assert silent.level == "fail" and "check power and cable" in silent.text, silent


def test_a_puck_is_felt_and_one_whose_cable_breaks_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puck = Puck()
    monkeypatch.setattr(teleop_spacemouse, "_open", lambda path: (puck, PUCKS[0x256F, 0xC635]))
    cell = cell_of(tmp_path, "spacemouse")
    assert feel(setup(cell)) == {"waits": "hold the clutch", "engaged": False}
    clock, read = MonotonicClock(), puck.read
    until_ns = clock.now_ns() + SECOND // 5

    def breaking(size: int, timeout_ms: int) -> list[int]:
        puck.unplugged = clock.now_ns() > until_ns
        return read(size, timeout_ms)

    monkeypatch.setattr(puck, "read", breaking)
    assert "its connection broke" in feel(setup(cell))["problem"]


def test_a_library_that_is_missing_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingExtra, match=r"pip install 'labctl\[teleop\]'"):
        feel(setup(cell_of(tmp_path, "gamepad")))


def test_an_option_no_device_has_and_a_library_that_crashes_are_one_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = told(tmp_path, "gamepad", "port = 1")
    assert (wrong.level, wrong.remedy) == (
        "fail",
        "correct [teleop] of the cell file; then: labctl doctor cell.toml",
    ) and "port" in wrong.text
    (tmp_path / "crashing").mkdir()
    (tmp_path / "crashing" / "device.py").write_text(CRASHES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    crashed = told(tmp_path, "crashing.device:build")
    assert crashed.level == "fail" and "ended its process (SIGSEGV)" in crashed.text
