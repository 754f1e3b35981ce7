"""What is said of a run that ends in the same moment as it is to be stopped, or was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from labctl.cli.console import _leave
from labctl.cli.run import ended

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab" / "campaigns" / "old"


@pytest.mark.parametrize("now", [False, True])
def test_a_run_that_ended_before_it_was_asked_to_has_ended(now: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr("labctl.runtime.attach.run_of", lambda folder: {"pid": gone.pid})
    assert [line.partition(":")[0] for line in ended(OLD, "zed", now=now)] == ["the run of old has ended"]


def test_whoever_leaves_the_console_of_a_killed_run_reads_how_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    class Killed:
        def wait(self, timeout: float) -> int:
            return -signal.SIGKILL

    _leave(cast("subprocess.Popen[bytes]", Killed()), "first")
    said = capsys.readouterr().out
    assert "was killed (SIGKILL)" in said and "it goes on with: labctl run first" in said
