"""A failure in real time says what other programs had of the machine meanwhile, and fails all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.beside import TICKS, look, others, used_s

TESTS = Path(__file__).resolve().parents[2]
FAILING = """
import pytest

@pytest.mark.real_time
def test_live():
    assert 1 == 2

def test_pure():
    assert 1 == 2
"""


def process(proc: Path, pid: int, parent: int, *ticks: int) -> None:
    """As proc_pid_stat(5) has it: its name may hold anything; user, system, and of children that have ended."""
    (proc / str(pid)).mkdir(exist_ok=True)
    fields = ["S", str(parent), *["0"] * 9, *map(str, ticks), "20"]
    (proc / str(pid) / "stat").write_bytes(f"{pid} (a ) \xff) {' '.join(fields)}\n".encode("latin-1"))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, 1, 0, 9, 9, 9, 9)
    process(tmp_path, 10, 1, 100, 10, 40, 0)
    process(tmp_path, 11, 10, 5, 5, 0, 0)
    process(tmp_path, 12, 11, 1, 0, 0, 0)
    process(tmp_path, 20, 1, 1000, 0, 0, 0)
    (tmp_path / "stat").write_text("cpu  1000 100 50 7777 0 3 2 500 0 0\ncpu0 1 1 1\n")
    return tmp_path


def test_what_a_run_used_is_of_all_that_came_from_it(proc: Path) -> None:
    assert used_s(10, proc) * TICKS == 161
    assert look(10, proc)[1] * TICKS == 1155, "what waits and what the host stole is not what programs used"


def test_what_is_left_of_the_machines_work_is_others(proc: Path) -> None:
    assert others((0.0, 10.0, 1.0), (4.0, 17.0, 4.0)) == 1.0
    assert others((0.0, 10.0, 1.0), (4.0, 11.0, 4.0)) == 0.0, "the kernel counts in ticks"


def test_a_failure_in_real_time_says_so_and_no_other_one_does(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = real_time\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "harness.beside", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "2 failed" in ran.stdout, ran.stdout
    assert ran.stdout.count("beside this test") == 1 and "other programs used " in ran.stdout
