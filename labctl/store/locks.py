"""Locks: one writer per campaign, one run per cell. A killed holder leaves none behind: the system holds them.

May not: wait without a bound, or write anything into a lock file but the holder's process id and verb.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from labctl.clock import MILLISECOND, SECOND, Clock, began_before
from labctl.errors import StateError
from labctl.store.atomic_files import file_errors

POLL_NS = 20 * MILLISECOND
PATIENCE_NS = SECOND
LOCKS = ".locks"  # of a lab's cells
OF_CAMPAIGN = ".lock"
CONTACT = "run.json"  # in a campaign, where whoever looks finds the run that is going


class Lock:
    """An exclusive lock on a file, for one `with` at a time. `what` is how messages call the thing that is locked.

    With a clock, entering waits at most `patience_ns` for another holder to let go; without one it does not wait.
    Raises StateError naming the holder when it is taken, StorageError when the file cannot be made.
    """

    def __init__(
        self, path: Path, verb: str, *, what: str = "", clock: Clock | None = None, patience_ns: int = PATIENCE_NS
    ) -> None:
        self._path = path
        self._verb = verb
        self._what = what or path.name
        self._clock = clock
        self._patience_ns = patience_ns
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        clock = self._clock
        until = clock.now_ns() + self._patience_ns if clock else 0
        while not self._take():
            if clock is None or clock.now_ns() >= until:
                raise self._refusal()
            clock.sleep_until(min(clock.now_ns() + POLL_NS, until))
        return self

    def __exit__(self, *_: object) -> None:
        assert self._descriptor is not None
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def _take(self) -> bool:
        if self._descriptor is not None:
            raise StateError(f"{self._what} is locked by this very process already")
        with file_errors(str(self._path)):
            self._path.parent.mkdir(exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError:
                os.close(descriptor)
                raise
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {self._verb}\n".encode(), 0)
        self._descriptor = descriptor
        return True

    def _refusal(self) -> StateError:
        with file_errors(str(self._path)):
            pid, _, verb = self._path.read_text(encoding="utf-8").strip().partition(" ")
        holder = f"`{verb}` (process {pid})" if verb else "another process"
        _, ran, campaign = verb.partition("run ")
        how = f" with: labctl stop {campaign}" if ran else ""
        return StateError(f"{self._what} is in use by {holder}; wait for it to end, or end it{how}")


def holder(path: Path) -> str:
    """The verb of the process that holds a lock, as far as its file and this host's processes say; "" where nobody
    does. Nothing is locked by asking.
    """
    try:
        pid, _, verb = path.read_text("utf-8").strip().partition(" ")
        there = began_before(int(pid), path.stat().st_mtime)  # else it has the id of one that was killed
    except (OSError, ValueError):
        return ""
    return verb if there else ""


def held_by(path: Path) -> int | None:
    """The process that holds a lock at this moment and wrote its id there, as the kernel has it: it has that very file
    open, and locked. None where nobody does, or where that process is another user's. Nothing is locked by asking.
    """
    try:
        pid, here = int(path.read_text("utf-8").partition(" ")[0]), path.stat()
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                if os.path.samestat(descriptor.stat(), here):
                    lines = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text().splitlines()
                    if any(line.startswith("lock:") and " FLOCK " in line for line in lines):
                        return pid
    except (OSError, ValueError):
        return None
    return None


def campaign_lock(folder: Path, verb: str, clock: Clock | None = None) -> Lock:
    """The lock of a campaign's one writer; `folder` is the campaign's."""
    return Lock(folder / OF_CAMPAIGN, verb, what=f"campaign {folder.name}", clock=clock)


def cell_lock(folder: Path, cell: str, verb: str, clock: Clock | None = None) -> Lock:
    """The lock of a cell, kept in the lab of the campaign `folder`: two campaigns cannot drive one robot."""
    return cell_lock_in(folder.resolve().parent.parent, cell, verb, clock)


def cell_lock_in(lab: Path, cell: str, verb: str, clock: Clock | None = None) -> Lock:
    """The same lock, for a verb that has the lab `lab` and no campaign."""
    return Lock(lab / LOCKS / f"{cell}.lock", verb, what=f"cell {cell}", clock=clock)


def lab_lock(lab: Path, name: str, verb: str, *, what: str, clock: Clock, patience_ns: int = PATIENCE_NS) -> Lock:
    """The lock of something that a lab has once. Its file begins with a dot, which the name of no cell does."""
    return Lock(lab / LOCKS / f".{name}.lock", verb, what=what, clock=clock, patience_ns=patience_ns)
