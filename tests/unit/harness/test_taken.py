"""A live test that fails while the host takes a core away is told as not judged; any other failure is a failure, and so
is a run in which too much was not judged.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import taken

TESTS = Path(__file__).resolve().parents[2]
CONFTEST = """
import itertools
import types
import harness.taken
steps, times = itertools.count(0.0, {step}), itertools.count(0.0, 0.25)
harness.taken.EVERY_S = 600.0  # it looks before a test and after it
harness.taken.stolen_s = lambda: (0.0, next(steps))
harness.taken.time = types.SimpleNamespace(monotonic=lambda: next(times))  # however long a test takes here
"""
FAILING = """
import pytest

@pytest.mark.real_time
def test_live():
    assert 1 == 2, "the robot was lost"

@pytest.mark.real_time
def test_bug():
    no_such_name

@pytest.fixture
def left():
    yield
    assert 1 == 2, "something was left"

@pytest.mark.real_time
def test_put_away(left):
    pass

def test_pure():
    assert 1 == 2
"""
LIVE = """
import pytest

@pytest.mark.real_time
@pytest.mark.parametrize("n", range({n}))
def test_live(n):
    assert 1 == 2
"""


def ran(folder: Path, text: str, step: float, *words: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST.format(step=step))
    (folder / "test_one.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    real_time: x\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rsf", "-p", "harness.taken", "-p", "no:hypothesispytest", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS), "COLUMNS": "300", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=120,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("step", "told"), [(0.15, "3 failed, 1 passed, 1 error"), (0.25, "2 failed, 1 passed, 1 skipped, 1 error")]
)
def test_only_what_goes_by_the_clock_while_much_is_taken_is_not_judged(tmp_path: Path, step: float, told: str) -> None:
    _, said = ran(tmp_path, FAILING, step)
    assert told in said and "FAILED test_one.py::test_pure" in said, said
    assert "FAILED test_one.py::test_bug" in said and "ERROR at teardown of test_put_away" in said
    line = "NOT JUDGED, the host took a core away for 0.25 s of half a second meanwhile: test_live: AssertionError: the"
    assert (line in said) == (step > 0.2)
    assert (">       assert 1 == 2" if step < 0.2 else "NOT JUDGED test_one.py::test_live") in said


def looks(*taken_s: float, every_s: float = 0.05) -> list[taken.Look]:
    """What was taken of the second of two cores by each look."""
    return [(n * every_s, (0.0, one)) for n, one in enumerate(taken_s)]


def test_what_is_taken_at_once_counts_and_not_the_sum_of_a_long_test() -> None:
    drizzle = looks(*(0.01 * n for n in range(1200)))  # a fifth of a core for a minute: 12 s in all
    assert taken.at_once_s(drizzle) == pytest.approx(0.1)
    assert taken.at_once_s([*looks(0.0, 0.0, 0.15, 0.3), (60.0, (0.0, 0.4))]) == pytest.approx(0.3)


def test_a_host_that_takes_a_share_of_a_core_all_the_time_is_told_from_one_that_takes_a_little() -> None:
    """Seen on 2026-11-23: 31.8 s of two cores in 110 s, and an emulated robot that came late everywhere."""
    assert taken.steadily(looks(*(0.007 * n for n in range(1200)))) == pytest.approx(0.14)
    assert taken.steadily(looks(*(0.001 * n for n in range(1200)))) < taken.STEADY
    assert taken.steadily(looks(*(0.007 * n for n in range(20)))) == 0.0, "0.13 s of a second is nothing yet"


def test_a_little_of_each_core_is_not_added_up() -> None:
    each = [(0.0, (0.0, 0.0)), (0.4, (0.15, 0.15))]
    assert taken.at_once_s(each) == pytest.approx(0.15)


def test_who_could_not_look_for_a_while_counts_the_share_of_half_a_second() -> None:
    assert taken.at_once_s(looks(0.0, 0.3, every_s=3.0)) == pytest.approx(0.05)
    assert taken.at_once_s(looks(0.0, 3.0, every_s=3.0)) == pytest.approx(0.5)
    assert taken.at_once_s(looks(0.0)) == 0.0


def test_the_kernel_accounts_for_each_core() -> None:
    assert len(taken.stolen_s()) >= 1 and min(taken.stolen_s()) >= 0.0


def test_what_was_not_judged_is_judged_the_next_time(tmp_path: Path) -> None:
    code, said = ran(tmp_path, LIVE.format(n=3), 0.25)
    assert code == 0 and f"3 not judged, of at most {taken.MOST}" in said, said
    code, said = ran(tmp_path, LIVE.format(n=3), 0.25)
    assert code == 1 and "3 failed" in said and "but this test was excused the last time too" in said


def test_a_run_in_which_too_many_were_not_judged_fails_and_names_them(tmp_path: Path) -> None:
    code, said = ran(
        tmp_path, LIVE.format(n=taken.MOST + 1), 0.25, "-p", "no:cacheprovider", "--tx", "popen", "--dist", "load"
    )
    assert code == 1 and "FAILED: too many tests were not judged" in said, said
    assert all(f"NOT JUDGED test_one.py::test_live[{n}]" in said for n in range(taken.MOST + 1))


@pytest.mark.thorough
def test_one_that_was_judged_since_may_be_excused_again(tmp_path: Path) -> None:
    assert [ran(tmp_path, LIVE.format(n=1), 0.25)[0] for _ in range(3)] == [0, 1, 0]
