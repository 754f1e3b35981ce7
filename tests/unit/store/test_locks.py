"""Claims about locks: one holder, named to whoever is refused, and gone with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.clock import SECOND, ManualClock
from labctl.errors import StateError, StorageError
from labctl.store.locks import Lock, campaign_lock, cell_lock, held_by, holder, lab_lock

HOLD = """
import sys
from pathlib import Path
from pathlib import Path
from labctl.store.locks import campaign_lock
with campaign_lock(Path(sys.argv[1]), "run"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path):
    with campaign_lock(tmp_path, "run"), pytest.raises(StateError, match=rf"`run` \(process {os.getpid()}\)"):
        campaign_lock(tmp_path, "close").__enter__()


def test_a_lock_given_back_can_be_taken_again(tmp_path):
    lock = campaign_lock(tmp_path, "run")
    for _ in range(2):
        with lock:
            pass
    with campaign_lock(tmp_path, "close"):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()} close\n"


def test_two_cells_run_side_by_side(tmp_path):
    one, two = tmp_path / "campaigns" / "one", tmp_path / "campaigns" / "two"
    taken = pytest.raises(StateError, match="cell fr3 is in use by `run`")
    with cell_lock(one, "fr3", "run"), cell_lock(two, "ur5", "run"), taken:
        cell_lock(two, "fr3", "run").__enter__()
    assert {p.name for p in (tmp_path / ".locks").iterdir()} == {"fr3.lock", "ur5.lock"}


@pytest.mark.parametrize("name", ["opened", "opening", "people", "qualify", "queue"])
def test_no_cell_has_the_lock_of_something_of_the_lab(tmp_path, name):
    """A cell called "opened" kept every other campaign from being opened while it ran."""
    cell = cell_lock(tmp_path / "campaigns" / "one", name, "run")
    with cell, lab_lock(tmp_path, name, "open", what="the lab's", clock=ManualClock()):
        assert len(list((tmp_path / ".locks").iterdir())) == 2


def test_waiting_is_bounded_by_the_clock(tmp_path):
    clock = ManualClock()
    with Lock(tmp_path / "x.lock", "arm"):
        with pytest.raises(StateError, match="`arm`"), Lock(tmp_path / "x.lock", "arm", clock=clock):
            pytest.fail("two holders")
        assert clock.now_ns() == SECOND
    with Lock(tmp_path / "x.lock", "arm", clock=clock):
        pass
    assert clock.now_ns() == SECOND


def test_a_waiter_gets_the_lock_as_soon_as_it_is_free(tmp_path):
    first = Lock(tmp_path / "x.lock", "arm")

    class Freeing(ManualClock):
        def sleep_until(self, due_ns: int) -> None:
            super().sleep_until(due_ns)
            if due_ns > SECOND // 2 and not freed:
                first.__exit__()
                freed.append(due_ns)

    freed: list[int] = []
    first.__enter__()
    clock = Freeing()
    with Lock(tmp_path / "x.lock", "arm", clock=clock):
        assert SECOND // 2 < clock.now_ns() < SECOND


def test_a_killed_holder_leaves_no_lock(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None and child.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match=f"process {child.pid}"):
            campaign_lock(tmp_path, "close").__enter__()
        child.send_signal(signal.SIGKILL)
        child.wait()
    with campaign_lock(tmp_path, "close"):
        pass


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(StorageError):
        campaign_lock(tmp_path / "no" / "campaign", "run").__enter__()


def test_who_holds_a_lock_is_asked_without_locking_it(tmp_path: Path) -> None:
    """Whoever has the id of a holder that was killed, after a reboot, does not hold it."""
    path = tmp_path / ".lock"
    assert holder(path) == ""
    with Lock(path, "run first"):
        assert holder(path) == "run first"
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert holder(path) == "", "this process began later"
    assert holder(path) == ""
    path.write_text(f"{1 << 30} run first\n")
    assert holder(path) == "", "there is no such process"


def test_who_holds_a_lock_at_this_moment_is_known_by_the_system_and_not_by_a_file(tmp_path):
    path = tmp_path / ".lock"
    assert held_by(path) is None
    with campaign_lock(tmp_path, "run first"):
        assert held_by(path) == os.getpid()
        path.write_text("1 run first\n")
        assert held_by(path) is None, "that process has it not"
    path.write_text(f"{os.getpid()} run first\n")
    with path.open():
        assert held_by(path) is None, "open, and not locked"
    path.write_text("nobody\n")
    assert held_by(path) is None
