"""A live test that fails while the host takes cores away is told as not judged; any other failure is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
CONFTEST = """
import itertools
import harness.taken
steps = itertools.count(0.0, {step})
harness.taken.stolen_s = lambda: next(steps)
"""
FAILING = """
import pytest

@pytest.mark.real_time
def test_live():
    assert 1 == 2, "the robot was lost"

@pytest.mark.real_time
def test_bug():
    no_such_name

def test_pure():
    assert 1 == 2
"""


@pytest.mark.parametrize(("step", "told"), [(0.15, "3 failed"), (0.25, "2 failed, 1 skipped")])
def test_only_what_goes_by_the_clock_while_much_is_taken_is_not_judged(tmp_path: Path, step: float, told: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(step=step))
    (tmp_path / "test_one.py").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    real_time: x\n")
    words = ["-q", "-rsf", "-p", "harness.taken", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS), "COLUMNS": "300"},
        timeout=120,
    )
    assert told in done.stdout and "FAILED test_one.py::test_pure" in done.stdout, done.stdout
    assert "FAILED test_one.py::test_bug" in done.stdout
    said = "NOT JUDGED, the host took 0.2 s of this machine's cores meanwhile: test_live: AssertionError: the robot was"
    assert (said in done.stdout) == (step > 0.2)
