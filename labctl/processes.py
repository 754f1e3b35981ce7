"""Further processes of a command: for work of more than one core, and for a question whose answer may never come.

May not: know what the work is, or serve a run: the processes of a robot have a supervisor.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from typing import NoReturn

from labctl.realtime import CORES

WORTH_BYTES = 40_000_000  # of what is read: less is sooner done than further processes are started


def cores() -> int:
    """How many this process was given."""
    return len(CORES) or os.cpu_count() or 1


@contextmanager
def processes(count: int) -> Generator[ProcessPoolExecutor, None, None]:
    """So many, which find their work by its name in a module. After an error none begins on more, and those at work are
    waited for.
    """
    # Not forked: a fork of a process with threads (numpy's, arrow's) may stand still.
    with ProcessPoolExecutor(count, get_context("spawn"), _start, (os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def one_beside(read_bytes: int, *, imports: Sequence[str] = ()) -> Generator[ProcessPoolExecutor | None, None, None]:
    """A process beside this one; None where there is no core for it, or too little to read. imports: the modules that
    its work will need, which it begins with, before there is any.
    """
    if cores() < 2 or read_bytes < WORTH_BYTES:
        yield None
        return
    with processes(1) as pool:
        if imports:
            pool.submit(_import, tuple(imports))
        yield pool


def json_answer(
    entry: str, given: str, within_s: float, *, environment: Mapping[str, str] | None = None
) -> tuple[str, str | None]:
    """The last JSON object in a line that "module:function" prints in a process of its own, which reads `given` on its
    standard input; "" without one, and how the process ended, None where it had to be ended after `within_s`.

    It has a session of its own, and whatever it started ends with it.
    """
    module, _, function = entry.partition(":")
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {module} import {function}; {function}()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        encoding="utf-8",
        errors="replace",  # a library may print whatever it likes
    )
    try:
        printed, _ = process.communicate(given, timeout=within_s)
    except subprocess.TimeoutExpired:
        return "", None
    finally:
        with process, suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    answer = next(filter(_is_object, reversed(printed.splitlines())), "")
    code = process.returncode
    return answer, None if answer else signal.Signals(-code).name if code < 0 else f"exit code {code}"


def leave_with(answer: str) -> NoReturn:
    """Print the JSON of a process that `json_answer` began, and end it: a thread that hangs would hold its end."""
    try:
        sys.stdout.write(f"\n{answer}\n")
        sys.stdout.flush()
    finally:  # also where whoever asked is gone
        os._exit(0)


def _is_object(line: str) -> bool:
    try:
        return line.startswith("{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)


def _start(parent: int) -> None:
    """An interrupt is the parent's to answer, and a process whose parent is gone ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    above = parent_process()
    if above is None or above.pid != parent or os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        connection.wait([above.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
