"""A Dask scheduler and workers as processes of a test, on loopback, and pieces of work that kill what they run on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from labctl.exports.workers import DONE
from support.machine.processes import end_with_parent
from support.runs.live_campaign import wait_for

TESTS = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Cluster:
    """What is running: the scheduler's address and process, and the workers' processes."""

    address: str
    scheduler: int
    workers: list[int]


@contextmanager
def started(folder: Path, workers: int = 2, *, threads: int = 1) -> Iterator[Cluster]:
    """A scheduler on a free port, and so many workers without anybody who starts them again."""
    said = folder / "scheduler.json"
    with ExitStack() as stack:

        def start(*words: str) -> subprocess.Popen[bytes]:
            environment = {**os.environ, "PYTHONPATH": str(TESTS), "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s"}
            log = stack.enter_context((folder / "cluster.log").open("ab"))
            process = subprocess.Popen(
                [sys.executable, "-m", *words], cwd=folder, env=environment, stdout=log, stderr=log,
                preexec_fn=end_with_parent,
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        quiet = ("--no-dashboard", "--host", "127.0.0.1")
        head = start("distributed.cli.dask_scheduler", *quiet, "--port", "0", "--scheduler-file", str(said))
        address = str(wait_for("the scheduler says where it is", lambda: _address(said)))
        own = ("--nthreads", str(threads), "--no-nanny", "--local-directory", str(folder))
        hands = [start("distributed.cli.dask_worker", address, *quiet, *own) for _ in range(workers)]
        if workers:
            _wait_until_there(address, workers)
        yield Cluster(address, head.pid, [one.pid for one in hands])


def _address(said: Path) -> str | None:
    """What a scheduler has written, once it is whole: the file is there before its words are."""
    try:
        return json.loads(said.read_text("utf-8"))["address"]
    except (FileNotFoundError, ValueError):
        return None


def _wait_until_there(address: str, workers: int) -> None:
    from distributed import Client

    with Client(address, timeout=300, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=300)


def write(path: Path, text: str) -> int:
    """A piece that does what it is to."""
    path.write_text(text)
    return len(text)


def write_killed_once(path: Path, text: str, mark: Path) -> int:
    """A piece whose process is killed -9 half way, the first time: one process alone, of two that begin at once."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return write(path, text)
    path.write_text(text[:1])
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def write_killed(path: Path, text: str) -> int:
    """A piece whose process is killed each time that it comes to the letter c, once the two before it are finished."""
    if text.startswith("c"):
        before = [path.parent / DONE / f"{name}.txt.json" for name in ("aa", "bbb")]
        wait_for("the two before", lambda: all(mark.is_file() for mark in before))
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, text)


def write_without_scheduler(path: Path, text: str, scheduler: int) -> int:
    """A piece that takes its scheduler away at the letter c, when two are finished."""
    if text.startswith("c"):
        os.kill(scheduler, signal.SIGKILL)
    return write(path, text)
