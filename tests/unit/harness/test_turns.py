"""Live tests begin when the cores have time for them, each in its turn, and a worker that dies keeps nothing."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.turns import LEAST, UNKNOWN, Turns, share_of

TESTS = Path(__file__).resolve().parents[2]
CORES = 1.3
WORKER = f"""
import sys, time
from pathlib import Path
from harness.turns import Turns

def waits(s, sleep=time.sleep):
    print("waits", flush=True)
    sleep(s)

time.sleep = waits
turns = Turns(Path(sys.argv[1]), {CORES})
turns.take("@b", float(sys.argv[2]))
print("began", flush=True)
sys.stdin.read()
"""


@contextmanager
def worker(path: Path, share: float) -> Iterator[subprocess.Popen[str]]:
    """Another worker, which says what it does and keeps what it has until its input ends."""
    words = [sys.executable, "-c", WORKER, str(path), str(share)]
    with subprocess.Popen(
        words, cwd=TESTS, env={"PYTHONPATH": str(TESTS)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as made:
        try:
            yield made
        finally:
            made.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turns"


def test_what_fits_begins_at_once(path: Path) -> None:
    Turns(path, CORES).take("@a", 0.9)
    with worker(path, 0.4) as other:
        assert said(other) == "began"


def test_what_does_not_fit_waits_until_a_scope_is_over(path: Path) -> None:
    mine = Turns(path, CORES)
    mine.take("@a", 0.9)
    with worker(path, 0.5) as other:
        assert said(other) == "waits"
        mine.give_back()
        while (word := said(other)) == "waits":
            pass
        assert word == "began"


def test_nobody_who_comes_later_and_wants_less_goes_before_one_who_waits(path: Path) -> None:
    Turns(path, CORES).take("@a", 0.9)
    with worker(path, 1.0) as other:
        assert said(other) == "waits"
        with path.open("r+") as file, pytest.raises(BlockingIOError):  # whose turn it is
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)


def test_a_worker_that_is_killed_keeps_nothing(path: Path) -> None:
    with worker(path, 1.3) as other:
        assert said(other) == "began"
    with worker(path, 1.3) as next_one:
        assert said(next_one) == "began"


def test_a_scope_that_wants_more_than_there_is_has_all_of_it(path: Path) -> None:
    with worker(path, 9.0) as other:
        assert said(other) == "began"


def test_a_scope_keeps_what_it_has_from_test_to_test(path: Path) -> None:
    mine = Turns(path, CORES)
    mine.take("@a", 1.3)
    mine.take("@a", 1.3)
    with worker(path, 0.1) as other:
        assert said(other) == "waits"


def test_a_share_is_of_what_is_known_and_cautious_otherwise() -> None:
    costs = {"a.py::test_robot": (20.0, 8.0), "a.py::test_wait": (50.0, 2.0), "a.py::test_short": (4.0, 4.0)}
    assert share_of(["a.py::test_robot[x]"], costs) == pytest.approx(0.4)
    assert share_of(["a.py::test_robot[x]", "a.py::test_wait"], costs) == LEAST
    assert share_of(["a.py::test_robot[x]", "a.py::test_of_today"], costs) == pytest.approx(0.4)
    assert share_of(["a.py::test_short"], costs) == UNKNOWN
    assert share_of(["a.py::test_of_today"], costs) == UNKNOWN
