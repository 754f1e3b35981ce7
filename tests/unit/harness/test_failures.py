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


def test_it_names_the_claim_the_folder_the_log_and_the_command(tmp_path: Path) -> None:
    (tmp_path / "test_lost.py").write_text(FAILING)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntmp_path_retention_policy = failed\n")
    words = ["-q", "-p", "harness.failures", "-p", "harness.slowest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--basetemp={tmp_path / 'kept'}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        timeout=120,
    )
    said = done.stdout
    nodeid = "test_lost.py::test_a_lost_robot_costs_one_episode[killed]"
    assert said.index(f"FAILED {nodeid} (call)") < said.index("= FAILURES ="), "at once, not at the end alone"
    assert "claim  a lost robot costs one episode (killed). The next trial runs.\n" in said
    (kept,) = [line.split()[1] for line in said.splitlines() if line.startswith("kept ")]
    assert (Path(kept) / "lab" / "run.log").is_file()
    assert "the robot does not answer" in said
    assert f"alone  .venv/bin/python -m pytest -m '' '{nodeid}'" in said
