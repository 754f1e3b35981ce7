"""Holds a policy server that labctl started: when whoever holds the other end of standard input is gone, it is ended.

May not: outlive its server, leave one running, or let two servers that name the same GPU run at once.

Run as a process of its own by `server_process`, so that the server ends even when the controller is killed. It reads
one JSON line, says one JSON line for each thing that happens, and then only waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from labctl.clock import MILLISECOND, SECOND, MonotonicClock

LOOK_S = 0.1
MIB_PER_GB = 1e9 / 2**20


def main() -> None:
    """Entry of the process. Exit code 0 when it was told to end the server, 1 when the server ended by itself."""
    clock = MonotonicClock()
    spec = json.loads(_line())
    waiting = _Waiting(clock, clock.now_ns() + round(spec["ready_s"] * SECOND))
    lock = _take_gpu(spec["gpu"], waiting)
    _await_memory(spec, waiting)
    program, environment = spec["start"][0], {**os.environ, **spec["env"]}
    if os.sep not in program and shutil.which(program, path=environment.get("PATH")) is None:
        _end(f"the server could not be started: {program} is in no folder of PATH that may be entered")
    try:
        server = subprocess.Popen(
            spec["start"],
            cwd=spec["folder"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),  # taken until the last process of the server is gone
        )
    except OSError as error:
        _end(f"the server could not be started: {error.strerror}: {error.filename or program}")
    _say({"started": server.pid})
    while not _let_go(LOOK_S):
        code = server.poll()
        if code is not None:
            _signal(server.pid, signal.SIGKILL)  # what it may have left in its group
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            _end(f"the policy server ended by itself ({how}); its words are in the controller's log")
    _stop(server, clock, round(spec["stop_s"] * SECOND))
    sys.exit(0)


def _stop(server: subprocess.Popen[bytes], clock: MonotonicClock, patience_ns: int) -> None:
    """Ask the server's whole group to end, then see to it."""
    _signal(server.pid, signal.SIGTERM)
    until_ns = clock.now_ns() + patience_ns
    while server.poll() is None and clock.now_ns() < until_ns:
        clock.sleep_until(clock.now_ns() + 20 * MILLISECOND)
    _signal(server.pid, signal.SIGKILL)
    server.wait()


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may be gone already
        os.killpg(group, number)


def _take_gpu(gpu: str | None, waiting: _Waiting) -> int | None:
    if gpu is None:
        return None
    name = "".join(letter if letter.isalnum() else "-" for letter in gpu)
    path = Path(tempfile.gettempdir()) / f"labctl-policy-{os.getuid()}-gpu-{name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            waiting.on(f"another policy server that labctl started still has GPU {gpu}")


def _await_memory(spec: Mapping[str, Any], waiting: _Waiting) -> None:
    """Wait until the GPU has the memory that the card asks for; without nvidia-smi nobody can say."""
    wanted = spec["gpu_memory_gb"]
    if wanted is None or shutil.which("nvidia-smi") is None:
        return
    while (free := free_gb(spec["gpu"] or "0")) is not None and free < wanted:
        waiting.on(f"GPU {spec['gpu'] or '0'} has {free:.1f} GB free, the card asks for {wanted:g}")


def free_gb(gpu: str) -> float | None:
    """Free memory of a GPU in 10^9 bytes, by nvidia-smi; None when it does not say."""
    words = ["nvidia-smi", f"--id={gpu}", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10)
        return float(done.stdout.split()[0]) / MIB_PER_GB
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


class _Waiting:
    """Patience for what has to be free before the server can be started, until `until_ns`."""

    def __init__(self, clock: MonotonicClock, until_ns: int) -> None:
        self._clock = clock
        self._until_ns = until_ns
        self._told = ""

    def on(self, why: str) -> None:
        """A moment's wait, and why; whoever asks for the server gives up when this does, and has it to tell by then."""
        if self._clock.now_ns() >= self._until_ns:
            _end(why)
        if why != self._told:
            _say({"waiting": why})
        self._told = why
        if _let_go(LOOK_S):
            sys.exit(0)


def _let_go(timeout_s: float) -> bool:
    """Whether the other end of standard input is gone, after waiting so long for it."""
    ready, _, _ = select.select([0], [], [], timeout_s)
    return bool(ready) and os.read(0, 4096) == b""


def _line() -> str:
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(0, 65536)
        if not piece:
            sys.exit(0)
        data += piece
    return data.decode()


def _say(what: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # whoever listened is gone: `_let_go` says so, and the server is ended
        os.write(1, (json.dumps(what) + "\n").encode())


def _end(problem: str) -> NoReturn:
    _say({"problem": problem})
    sys.exit(1)
