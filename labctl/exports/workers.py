"""The files of an export, several processes at once, and what of them an export that was broken off had finished.

May not: know a format, or call a file finished before it is whole on the disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, TypeVarTuple

from labctl.pieces import HERE, Place, each
from labctl.processes import WORTH_BYTES, cores
from labctl.store.atomic_files import replace_file, sync_file

DONE = ".done"  # in a folder that is being built: an entry for each file of it that is whole

Given = TypeVarTuple("Given")  # what the work of a job is given
Result = TypeVar("Result")  # of one job, as JSON gives it back
# Work on a job is a function of a module, `work(path, *given)`: other processes find it by its name.


@dataclass(frozen=True, slots=True)
class Job(Generic[*Given]):
    """A file to write: its path in the folder, what its work is given, and what makes it the same file next time."""

    file: str
    given: tuple[*Given]
    same: str = ""


def processes_for(count: int, read_bytes: int) -> int:
    """How many processes write so many files from so many bytes: every core, unless it is soon done by one."""
    return 1 if read_bytes < WORTH_BYTES else max(1, min(count, cores()))


def write_all(
    folder: Path,
    jobs: Sequence[Job[*Given]],
    work: Callable[[Path, *Given], Result],
    count: int = 1,
    place: Place = HERE,
) -> Iterator[Result]:
    """Do the jobs that are not done yet, `work(path, *given)` each, in `count` processes or where `place` says; their
    results in order.

    Raises what a job raised (no other is begun then, and those under way are waited for), and what `pieces.each` does.
    """
    folder = folder.absolute()  # a worker of a cluster has another working folder
    waiting = [(job, _finished(folder, job)) for job in jobs]
    left = [(work, folder, job) for job, done in waiting if done is None]
    coming = each(place, _do, left, count, folder) if left else iter(())
    for _, done in waiting:
        yield next(coming) if done is None else json.loads(done)["result"]


def _finished(folder: Path, job: Job[*Given]) -> str | None:
    """The entry of a finished file, as JSON; None for a file that is not there whole, or was to be another."""
    try:
        text = _mark(folder, job).read_text("utf-8")
        mark = json.loads(text)
        whole = mark["same"] == job.same and mark["size"] == (folder / job.file).stat().st_size
    except (OSError, ValueError, KeyError):
        return None
    return text if whole else None


def _finish(folder: Path, job: Job[*Given], result: Result) -> Result:
    sync_file(folder / job.file)
    mark = _mark(folder, job)
    mark.parent.mkdir(exist_ok=True)
    entry = json.dumps({"same": job.same, "size": (folder / job.file).stat().st_size, "result": result})
    replace_file(mark, entry.encode())
    return json.loads(entry)["result"]


def _mark(folder: Path, job: Job[*Given]) -> Path:
    return folder / DONE / (job.file.replace("/", "+") + ".json")


def _do(work: Callable[[Path, *Given], Result], folder: Path, job: Job[*Given]) -> Result:
    return _finish(folder, job, work(folder / job.file, *job.given))
