"""Watches a live campaign from outside: its journal, its processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from support.machine.patience import CLOCK, PATIENCE_NS, Patience
from support.machine.processes import open_files
from support.runs.campaigns import events_of, start_run

LEISURE = 4


def wait_for(what: str, found: Callable[[], object], every_ns: int = SECOND // 50) -> object:
    """Poll until something is there: a busy machine is slow, and a test fails by what it recorded. Who looks takes at
    most a fifth of a core: what is watched runs in real time beside it.
    """
    patience = Patience()
    while not patience.over():
        now = CLOCK.now_ns()
        value = found()
        if value:
            return value
        looked = CLOCK.now_ns()
        CLOCK.sleep_until(looked + max(every_ns, LEISURE * (looked - now)))
    raise AssertionError(f"{what} did not come within {PATIENCE_NS // SECOND} s of a machine that had time for it")


def end_of(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> int:
    """Wait for its end: the code that it ended with."""
    wait_for(f"the end of process {process.pid}", lambda: process.poll() is not None)
    return process.returncode


@contextmanager
def running(folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`labctl run --headless --real-time`; whatever is left of it is killed at the end."""
    run = start_run(folder, live=True, log=log)
    try:
        yield run
    finally:
        for pid in [run.pid, *children(run.pid).values()]:
            try:
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        run.wait()


def children(parent: int) -> dict[str, int]:
    """Process ids of a run's children by the lock they hold (their node name)."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                held = open_files(path.parent)
                names = [Path(target).stem for target in held if target.endswith(".lock") and "/locks/" in target]
                found[names[0] if names else f"starting-{path.parent.name}"] = int(path.parent.name)
        except (OSError, ValueError):
            continue  # it ended while it was looked at
    return found


_READ: dict[Path, tuple[int, list[Event]]] = {}


def last_seq(folder: Path, kind: Kind | None = None) -> int:
    """The last entry on disk, of one kind or of any, read as anyone can; 0 without one."""
    question = "select coalesce(max(seq), 0) from event where kind = ? or ? is null"
    with closing(sqlite3.connect(f"file:{folder / 'journal.db'}?mode=ro", uri=True)) as db:
        return db.execute(question, (kind, kind)).fetchone()[0]


def of_kind(folder: Path, kind: Kind) -> list[Event]:
    """The journal is read again once there is more of it."""
    now = last_seq(folder)
    if folder not in _READ or _READ[folder][0] != now:
        _READ.clear()
        _READ[folder] = now, events_of(folder)
    return [event for event in _READ[folder][1] if event.kind == kind]
