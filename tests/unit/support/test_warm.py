"""Forked processes are told apart from nothing but by how soon they begin."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machine.warm import Warm

# Instead of a campaign: what `labctl` is given decides how the process ends.
STAND_IN = """
import os, sys, time

def main(words):
    print(os.getsid(0) == os.getpid(), sys.stdin.read() == "", *words, flush=True)
    if words[0] == "stay":
        time.sleep(600)
    sys.exit(int(words[1]))
"""


@pytest.fixture
def warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warm]:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Warm(["stand_in"])
    yield made
    made.close()


def test_each_is_a_process_of_its_own_with_its_words_its_file_and_its_exit_code(warm: Warm, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    one, other = warm.start(["end", "0"], log), warm.start(["end", "7"], log)
    assert (other.wait(), one.wait(), one.poll()) == (7, 0, 0) and one.pid != other.pid
    assert sorted(log.read_text().splitlines()) == ["True True end 0", "True True end 7"]


def test_one_that_is_killed_says_so_and_the_next_begins(warm: Warm, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    one = warm.start(["stay"], log)
    assert one.poll() is None
    os.kill(one.pid, signal.SIGKILL)
    assert one.wait() == -signal.SIGKILL
    assert warm.start(["end", "3"], log).wait() == 3


def test_none_outlives_the_one_that_forked_it(warm: Warm, tmp_path: Path) -> None:
    one = warm.start(["stay"], tmp_path / "run.log")
    gone = os.pidfd_open(one.pid)
    warm._process.kill()
    assert select.select([gone], [], [], 60)[0]
    os.close(gone)
