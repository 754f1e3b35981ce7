"""A failure can be read by somebody who has never seen the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
FAILING = '''
import pytest

@pytest.mark.parametrize("how", ["killed"])
def test_a_lost_robot_costs_one_episode(tmp_path, how):
    """The next trial runs.

    Not shown.
    """
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "run.log").write_text("begun\\nthe robot does not answer\\n")
    assert how == "hung"
'''


NOT_BEGUN = """
import pytest

@pytest.fixture
def run(tmp_path):
    (tmp_path / "run.log").write_text("the run never began\\n")
    raise TimeoutError

def test_it_runs(run):
    pass
"""


def ran(folder: Path, text: str) -> str:
    (folder / "test_lost.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\ntmp_path_retention_policy = failed\n")
    words = ["-q", "-p", "harness.failures", "-p", "harness.slowest", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--basetemp={folder / 'kept'}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        timeout=120,
    ).stdout


def test_it_names_the_claim_the_folder_the_log_and_the_command(tmp_path: Path) -> None:
    said = ran(tmp_path, FAILING)
    nodeid = "test_lost.py::test_a_lost_robot_costs_one_episode[killed]"
    assert said.index(f"FAILED {nodeid} (call)") < said.index("= FAILURES ="), "at once, not at the end alone"
    assert "claim  a lost robot costs one episode (killed). The next trial runs.\n" in said
    (kept,) = [line.split()[1] for line in said.splitlines() if line.startswith("kept ")]
    assert (Path(kept) / "lab" / "run.log").is_file()
    assert "the robot does not answer" in said
    assert f"alone  .venv/bin/python -m pytest -m '' '{nodeid}'" in said


def test_of_one_whose_fixture_fails_the_folder_and_the_log_are_kept_too(tmp_path: Path) -> None:
    said = ran(tmp_path, NOT_BEGUN)
    (kept,) = [line.split()[1] for line in said.splitlines() if line.startswith("kept ")]
    assert (Path(kept) / "run.log").is_file() and "the run never began" in said
