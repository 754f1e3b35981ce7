"""What the doctor says of a machine, each check at the boundary it judges."""

from __future__ import annotations

import resource
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pytest

import labctl.realtime
from labctl.analysis.survival import kernel_build
from labctl.checks import computer, doctor
from labctl.checks.computer import (
    Check,
    check_clock,
    check_compiler,
    check_extras,
    check_free_disk,
    check_fsync,
    check_python,
    check_realtime,
    check_sessions,
    runnable,
)
from labctl.cli import call
from labctl.clock import ManualClock
from labctl.errors import how_to_install
from labctl.store.lab_folder import read_cell

ROOT = Path(__file__).resolve().parents[3]


class SteppingClock(ManualClock):
    """Gives the next of some steps with every reading."""

    def __init__(self, *steps_ns: int) -> None:
        super().__init__(start_ns=10**12)
        self._steps = cycle(steps_ns)

    def now_ns(self) -> int:
        self._now_ns += next(self._steps)
        return self._now_ns


@pytest.fixture
def no_kernel(tmp_path, monkeypatch):
    """None of this process, nor of an earlier one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kernel_build.library.cache_clear()
    yield
    kernel_build.library.cache_clear()


def test_the_compiler_that_is_named_is_the_one_with_which_the_statistics_make_their_kernel(
    tmp_path, monkeypatch, no_kernel
):
    """`$CC` was not looked at: what the analysis could not use was said to make its fast kernel."""
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    assert "not found" in check_compiler().text
    (tmp_path / "cc").touch(mode=0o755)
    assert check_compiler().text.startswith(f"{tmp_path / 'cc'}: ")


def test_a_compiler_that_cannot_make_the_kernel_is_said_to_make_none(tmp_path, monkeypatch, no_kernel):
    """One without headers was said to make it, and each analysis ran ten times as long without a word."""
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'stdlib.h: No such file' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    said = check_compiler()
    assert "cc failed: stdlib.h: No such file: `labctl analyze` and reports take some ten times" in said.text
    assert "headers" in said.remedy


@pytest.mark.skipif(kernel_build.compiler_here() is None, reason="no C compiler here")
def test_a_kernel_that_cannot_be_kept_is_said_to_be_made_each_time(tmp_path, no_kernel):
    assert check_compiler().text.endswith(f"made the statistics' fast kernel, kept in {tmp_path}/cache/labctl")
    (tmp_path / "cache/labctl").chmod(0o775)
    kernel_build.library.cache_clear()
    said = check_compiler()
    assert "anew in each process" in said.text and said.remedy.startswith(f"chmod 700 {tmp_path}/cache/labctl")


def test_an_old_python_fails():
    assert check_python((3, 10, 12)).level == "fail"
    assert check_python((3, 11, 0)).level == "ok"


def test_a_slow_disk_warns_and_says_what_to_do(tmp_path: Path):
    slow = check_fsync(tmp_path, SteppingClock(60_000_000))
    assert slow.level == "warn" and "60.0 ms" in slow.text and "SSD" in slow.remedy
    assert check_fsync(tmp_path, SteppingClock(4_000_000)).level == "ok"


def test_a_folder_that_cannot_be_written_fails(tmp_path: Path):
    assert check_fsync(tmp_path / "missing", SteppingClock(1)).level == "fail"


def test_nothing_is_left_in_the_folder_that_was_tried(tmp_path: Path):
    check_fsync(tmp_path, SteppingClock(1))
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_goes_back_fails_and_a_coarse_one_warns():
    assert check_clock(SteppingClock(50, -10)).level == "fail"
    assert check_clock(SteppingClock(10_000_000)).level == "warn"
    assert check_clock(ManualClock()).level == "warn"
    assert check_clock(SteppingClock(50)).level == "ok"


def test_realtime_limits_below_what_a_control_loop_asks_for_warn():
    assert check_realtime(0, 0, root=False).level == "warn"
    assert check_realtime(99, 99, root=False).level == "ok"
    assert check_realtime(*[resource.RLIM_INFINITY] * 2, root=False).level == "ok"
    assert check_realtime(0, 0, root=True).level == "ok", "no limit holds root"


@pytest.mark.parametrize("hard", [99, resource.RLIM_INFINITY])
def test_of_realtime_limits_the_soft_one_counts(hard: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With `hard` alone in limits.conf doctor said "ok", and the 1 kHz loop ran as any other program."""
    monkeypatch.setattr(computer.resource, "getrlimit", lambda _: (0, hard))
    monkeypatch.setattr(computer.os, "geteuid", lambda: 1000)
    (check,) = [check for check in computer.software(tmp_path) if check.name == "realtime"]
    assert check.level == "warn" and "the soft one counts" in check.text and "ulimit -r 99" in check.remedy
    assert not labctl.realtime.allowed(), "as the loop itself sees it"


def test_where_niceness_does_not_count_between_sessions_a_line_says_so_and_what_to_do(tmp_path: Path):
    kernel = tmp_path / "sched_autogroup_enabled"
    assert check_sessions(kernel) == [], "a kernel without them"
    kernel.write_text("0\n")
    assert check_sessions(kernel) == []
    kernel.write_text("1\n")
    (check,) = check_sessions(kernel)
    assert runnable([check]) and check.level == "ok" and "sysctl kernel.sched_autogroup_enabled=0" in check.remedy


def test_a_missing_extra_is_no_fault_and_names_its_pip_line():
    (check,) = check_extras({"teeth": ("no_such_module_anywhere", "biting")})
    assert check.level == "ok" and check.remedy == "pip install 'labctl[teeth]'"


def test_where_a_package_has_no_wheel_the_line_says_what_it_takes():
    """ur_rtde has wheels up to Python 3.12."""
    assert how_to_install("ur", (3, 12)) == "pip install 'labctl[ur]'"
    said = how_to_install("ur", (3, 13))
    assert "Python 3.11 or 3.12" in said and "libboost-all-dev" in said and "\n" not in said
    assert how_to_install("mcap", (3, 14)) == "pip install 'labctl[mcap]'"


def test_of_the_free_disk_the_cells_own_number_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """0.5 GB free, and a cell that asks for 0.2: `run` would have gone on, and doctor said that it asks for 1."""
    monkeypatch.setattr(computer.shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000_000))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "hw_configs" / "sim_fr3.toml").read_text()
    assert "min_free_gb = 1.0" in text
    for asked, code in (("0.2", 0), ("0.6", 1)):
        (tmp_path / "c.toml").write_text(text.replace("min_free_gb = 1.0", f"min_free_gb = {asked}"))
        assert call(["doctor", "c.toml"]) == code
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "free disk:" in line] == (
            ["ok"] if code == 0 else ["FAIL"]
        )
    assert call(["doctor"]) == 1 and "a cell asks for 1" in capsys.readouterr().out


def test_too_little_disk_fails(tmp_path: Path):
    assert check_free_disk(tmp_path, min_free_gb=1e9).level == "fail"
    assert check_free_disk(tmp_path, min_free_gb=0.0).level == "ok"


@pytest.mark.parametrize(("levels", "expected"), [(("ok", "warn"), True), (("ok", "fail"), False)])
def test_only_a_failed_check_stops_a_cell(levels: tuple[computer.Level, ...], expected: bool):
    assert runnable(Check("x", level, "") for level in levels) is expected


def test_the_disk_that_is_looked_at_is_the_labs_and_not_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    lab, elsewhere = tmp_path / "lab", tmp_path / "elsewhere"
    for folder in (lab, elsewhere):
        folder.mkdir()
    (lab / "lab.toml").touch()
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    monkeypatch.chdir(elsewhere)
    cell = tmp_path / "none.toml"
    for given, where in ((["--lab", str(lab)], lab), ([], elsewhere)):
        call(["doctor", str(cell), *given])
        assert f"GB free under {where}\n" in capsys.readouterr().out
    assert call(["doctor", "--lab", str(elsewhere)]) == 2
    monkeypatch.setenv("LABCTL_LAB", str(lab))
    call(["doctor"])
    assert f"GB free under {lab}\n" in capsys.readouterr().out


def test_the_simulated_cell_could_run(tmp_path: Path):
    checks = doctor.check_cell(ROOT / "hw_configs" / "sim_fr3.toml", tmp_path)
    assert [check for check in checks if check.level == "fail"] == []
    assert {check.name for check in checks} >= {"cell", "robot", "camera:wrist", "operator"}


def test_a_cell_with_an_unknown_driver_could_not(tmp_path: Path):
    cell = tmp_path / "cell.toml"
    text = (ROOT / "hw_configs" / "sim_fr3.toml").read_text()
    cell.write_text(text.replace('driver = "sim_fr3"', 'driver = "sim_fr4"'))
    failed = [check for check in doctor.check_cell(cell, tmp_path) if check.level == "fail"]
    assert [check.name for check in failed] == ["cell"]
    assert "sim_fr3" in failed[0].text


def test_a_broken_cell_file_is_a_failed_check_not_an_exception(tmp_path: Path):
    (check,) = doctor.check_cell(tmp_path / "none.toml", tmp_path)
    assert check.level == "fail" and "no such file" in check.text


def test_a_cell_that_is_wrong_by_itself_is_named_once_beside_a_protocol(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Where an emulated cell's own driver was unknown, all that doctor found was lost for the one line of an error."""
    text = (ROOT / "hw_configs" / "emulated_ros2.toml").read_text()
    (tmp_path / "cell.toml").write_text(text.replace('\ndriver = "ros2"\n', '\ndriver = "nonesuch"\n'))
    protocol = str(ROOT / "labctl" / "templates" / "first.toml")
    assert call(["doctor", str(tmp_path / "cell.toml"), "--protocol", protocol]) == 1
    said = capsys.readouterr()
    assert said.out.count("no driver named 'nonesuch'") == 1 and not said.err
    assert f"FAIL  policies: not asked: {tmp_path / 'cell.toml'} is not right by itself" in said.out


def test_every_extra_the_package_declares_is_looked_for():
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(computer.EXTRAS) == set(declared) - {"all", "docs", "fast", "lint", "release", "test"}


def test_every_core_dependency_is_looked_for():
    import re
    import tomllib

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(computer.CORE) == {re.split("[<>=]", line)[0] for line in declared}


@pytest.mark.parametrize("cell", ["fr3_droid_cell", "emulated_fr3"])
def test_states_of_an_fr3_are_taken_from_the_network_by_whoever_may(cell: str, monkeypatch: pytest.MonkeyPatch):
    made = read_cell(ROOT / "hw_configs" / f"{cell}.toml")

    def socket_of(*_: object):
        if not allowed:
            raise PermissionError(1, "Operation not permitted")
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(doctor.socket, "socket", socket_of)
    for allowed, level in ((True, "ok"), (False, "warn")):
        (check,) = doctor.check_capture(made)
        assert check.level == level and bool(check.remedy) != allowed
        assert "taken from the network" not in check.text, "nobody has heard one yet"
    told = made.robot.options["driver_options"] if cell == "emulated_fr3" else made.robot.options
    told["states"] = "client"
    assert doctor.check_capture(made) == []


def test_what_the_driver_says_of_its_connection_stands_beside_the_arm(monkeypatch: pytest.MonkeyPatch):
    """Issue 20.23: states that were not heard on the network, a UR that says nothing of its own kinematics."""
    cell = read_cell(ROOT / "hw_configs" / "emulated_fr3.toml")
    wanted = cell.robot.state_hz
    for notes in ([], ["states are taken from franky: nothing was heard", "another thing"]):
        found = {"mode": "idle", "reason": "", "states": wanted, "notes": notes}
        monkeypatch.setattr(doctor, "probe", lambda _, found=found: found)
        checks = [check for check in doctor.check_drivers(cell, ROOT, "labctl doctor c.toml") if check.name == "robot"]
        assert [check.level for check in checks] == ["ok", *["warn" for _ in notes]]
        assert [check.text for check in checks[1:]] == notes and all(check.remedy for check in checks[1:])


def test_a_robot_of_another_make_is_not_captured():
    assert doctor.check_capture(read_cell(ROOT / "hw_configs" / "emulated_ur5e.toml")) == []
    assert doctor.check_capture(read_cell(ROOT / "hw_configs" / "sim_fr3.toml")) == []
