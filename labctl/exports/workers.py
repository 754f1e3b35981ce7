"""The files of an export, several processes at once, and what of them an export that was broken off had finished.

May not: know a format, or call a file finished before it is whole on the disk.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any

from labctl.core.events import digest
from labctl.realtime import CORES
from labctl.store.atomic_files import replace_file, sync_file

DONE = ".done"  # in a folder that is being built: an entry for each file of it that is whole
WORTH_BYTES = 40_000_000  # of what is read: less is sooner written than further processes are started

Result = Mapping[str, Any]  # of one job, as JSON gives it back
Work = Callable[..., Result]
_given: list[Any] = []  # in a worker: what its jobs are given besides


@dataclass(frozen=True, slots=True)
class Job:
    """A file to write: its path in the folder, what its work is told, and what makes it the same file next time."""

    file: str
    told: tuple[Any, ...]
    same: Any = None


@dataclass(frozen=True, slots=True)
class Bench:
    """How jobs are done. `begin(*given)` makes what each process gives to all its jobs, once; `processes` at once."""

    work: Work
    begin: Callable[..., Any] | None = None
    given: tuple[Any, ...] = field(default_factory=tuple)
    processes: int = 1


def processes_for(count: int, read_bytes: int) -> int:
    """How many processes write so many files from so many bytes: every core, unless it is soon done by one."""
    return 1 if read_bytes < WORTH_BYTES else max(1, min(count, len(CORES) or os.cpu_count() or 1))


def write_all(folder: Path, jobs: Sequence[Job], bench: Bench) -> Iterator[Result]:
    """Do the jobs that are not done yet, `work(begun, path, *told)` each; their results in order, as they come.

    Raises what a job raised; no other is begun then, and those under way are waited for.
    """
    waiting = [(job, _finished(folder, job)) for job in jobs]
    left = [job for job, done in waiting if done is None]
    if bench.processes < 2 or len(left) < 2:
        begun = bench.begin(*bench.given) if bench.begin and left else None
        for job, done in waiting:
            yield done if done is not None else _finish(folder, job, bench.work(begun, folder / job.file, *job.told))
        return
    ready = (os.getpid(), bench.begin, bench.given)
    # Not forked: a fork of a process with threads (numpy's, arrow's) may stand still.
    context = get_context("spawn")
    with ProcessPoolExecutor(min(bench.processes, len(left)), context, _start, ready) as pool:
        try:
            coming: list[Future[Result] | Result] = [
                pool.submit(_do, bench.work, folder, job) if done is None else done for job, done in waiting
            ]
            for one in coming:
                yield one.result() if isinstance(one, Future) else one
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _finished(folder: Path, job: Job) -> Result | None:
    """What a finished file's work said; None for a file that is not there whole, or was to be another."""
    try:
        said = json.loads(_mark(folder, job).read_text("utf-8"))
        whole = said["same"] == digest(job.same) and said["size"] == (folder / job.file).stat().st_size
    except (OSError, ValueError, KeyError):
        return None
    return said["result"] if whole else None


def _finish(folder: Path, job: Job, result: Result) -> Result:
    sync_file(folder / job.file)
    mark = _mark(folder, job)
    mark.parent.mkdir(exist_ok=True)
    said = {"same": digest(job.same), "size": (folder / job.file).stat().st_size, "result": result}
    replace_file(mark, json.dumps(said).encode())
    return json.loads(mark.read_text("utf-8"))["result"]


def _mark(folder: Path, job: Job) -> Path:
    return folder / DONE / (job.file.replace("/", "+") + ".json")


def _do(work: Work, folder: Path, job: Job) -> Result:
    return _finish(folder, job, work(_given[0], folder / job.file, *job.told))


def _start(parent: int, begin: Callable[..., Any] | None, given: tuple[Any, ...]) -> None:
    """In a worker: an interrupt is the parent's to answer, and a worker whose parent is gone ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    above = parent_process()
    if above is None or above.pid != parent or os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        connection.wait([above.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    _given[:] = [begin(*given) if begin else None]
