"""What the processes of a cell import: a new controller starts for every trial, between its reveal and its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

DATABASE = ("sqlalchemy", "sqlmodel")


@pytest.mark.parametrize("node", ["robot", "camera", "controller"])
def test_no_process_but_the_recorder_and_the_run_imports_a_database(node: str) -> None:
    """It took half a second of a core in each of them, of 0.75 s; the recorder and the run process alone write."""
    code = (
        f"import sys, labctl.runtime.hosting.cell_nodes, labctl.nodes.{node}\n"
        f"print([name for name in {DATABASE!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
