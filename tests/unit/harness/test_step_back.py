"""A worker that computes gives way to other sessions too, which a campaign in real time has of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness.pools import AUTOGROUP

TESTS = Path(__file__).resolve().parents[2]
ASK = (
    "import sys; from pathlib import Path; from harness.pools import step_back; "
    "step_back(int(sys.argv[1]), Path(sys.argv[2]))"
)
SESSION = "; import os; print(os.getsid(0) == os.getpid())"


def stepped(nice: int, autogroup: Path) -> str:
    words = [sys.executable, "-c", ASK + SESSION, str(nice), str(autogroup)]
    done = subprocess.run(words, cwd=TESTS, env={"PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_one_that_is_nice_has_a_session_of_its_own_that_is_as_nice(tmp_path: Path) -> None:
    (tmp_path / "autogroup").write_text("/autogroup-7 nice 0\n")
    assert stepped(15, tmp_path / "autogroup") == "True"
    assert (tmp_path / "autogroup").read_text() == "15"


def test_one_that_is_not_shares_its_weight_with_no_other_worker(tmp_path: Path) -> None:
    (tmp_path / "autogroup").write_text("/autogroup-7 nice 0\n")
    assert stepped(0, tmp_path / "autogroup") == "True"
    assert (tmp_path / "autogroup").read_text() == "/autogroup-7 nice 0\n"


def test_a_kernel_without_autogroups_changes_nothing(tmp_path: Path) -> None:
    assert stepped(15, tmp_path / "none") == "False"


def test_one_that_computes_once_no_live_test_is_left_steps_back_in_the_session_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "autogroup").write_text("/autogroup-7 nice 0\n")
    again = [sys.executable, "-c", ASK + "; step_back(5, Path(sys.argv[2]))", "0", str(tmp_path / "autogroup")]
    subprocess.run(again, cwd=TESTS, env={"PYTHONPATH": str(TESTS)}, check=True)
    assert (tmp_path / "autogroup").read_text() == "5"


LATER = """
import sys
from itertools import count
from pathlib import Path
from harness.pools import step_back

asked, write = count(), Path.write_text

def refuse(path, text):
    if next(asked) < 3:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return write(path, text)

Path.write_text = refuse
step_back(15, Path(sys.argv[1]))
"""


def test_a_kernel_that_takes_none_just_now_is_asked_again(tmp_path: Path) -> None:
    """But for root it takes one in a tenth of a second: of two workers that began at once the other computed with the
    weight of a robot's session.
    """
    (tmp_path / "autogroup").write_text("/autogroup-7 nice 0\n")
    words = [sys.executable, "-c", LATER, str(tmp_path / "autogroup")]
    subprocess.run(words, cwd=TESTS, env={"PYTHONPATH": str(TESTS)}, check=True)
    assert (tmp_path / "autogroup").read_text() == "15"


def test_the_kernel_takes_it(tmp_path: Path) -> None:
    if not AUTOGROUP.exists():
        pytest.skip("this kernel has no autogroups")
    words = [sys.executable, "-c", f"{ASK}; print(Path('{AUTOGROUP}').read_text())", "15", str(AUTOGROUP)]
    done = subprocess.run(words, cwd=TESTS, env={"PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("nice 15")
