"""`labctl stop` of a run that ends in the same moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labctl.cli.run import ended

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab" / "campaigns" / "old"


@pytest.mark.parametrize("now", [False, True])
def test_a_run_that_ended_before_it_was_asked_to_has_ended(now: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr("labctl.runtime.attach.run_of", lambda folder: {"pid": gone.pid})
    assert [line.partition(":")[0] for line in ended(OLD, "zed", now=now)] == ["the run of old has ended"]
