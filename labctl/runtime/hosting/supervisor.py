"""Starts and ends the processes of a cell, and tells run when one is gone; and the one that has heads stamped.

May not: name an arm of the experiment in a command line, an environment or a file name, or restart anything by itself.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.logs import Words, printed_beside
from labctl.messages.processes import Exited
from labctl.runtime.hosting.cell_nodes import NodeSpec, ProcessSpec
from labctl.store.chain_heads import read_heads
from labctl.store.verifying.timestamps import authority_of, kept

CHILD = "from labctl.runtime.hosting.cell_nodes import child_main; child_main()"
STOP_NS = 2 * SECOND
WORDS_NS = SECOND // 10  # after an end by itself, until what it said of it before has surely been read
STAMP = "from labctl.cli import main; main()"
STAMPS = "logs/timestamps.log"
NICER = 10
START_S = 5.0  # until that process asks
_log = logging.getLogger("run")


def log_of(logs: Path, name: str) -> Path:
    """Where a node's process logs."""
    return logs / f"{name.replace(':', '-')}.log"


class Supervisor:
    """One child process per node. What each is built from is handed to it on its standard input, so that no command
    line says anything. spec: with `locks`; sockets: where the processes' sockets are.

    `logs` is the folder of their logs; `private` maps a node's name to the file of one that is kept elsewhere: the
    controller's, since a policy's words name it.
    """

    def __init__(self, spec: NodeSpec, sockets: Path, logs: Path, private: Mapping[str, Path] | None = None) -> None:
        self._spec = {**dict(spec), "sockets": sockets, "parent": os.getpid()}
        self._logs, self._private = logs, dict(private or {})
        self._words: dict[str, Words] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._killed_at: dict[str, int] = {}
        self._ended_at: dict[str, int] = {}  # by itself, and not told yet
        self._again: set[str] = set()
        self._failed: list[Message] = []  # processes that could not be started

    def spawn(self, name: str) -> None:
        """Start a node's process unless it runs. `poll` reports one that cannot be started, as one that ended."""
        if name in self._running:
            if name in self._killed_at:
                self._again.add(name)  # the old one is still ending
            return
        log = self._private.get(name, log_of(self._logs, name))
        try:
            words = Words(name, printed_beside(log), waits=name in self._private)  # a policy's server prints there too
            try:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-c", CHILD],
                    stdin=subprocess.PIPE,
                    stdout=words.writes,
                    stderr=words.writes,
                    start_new_session=True,  # a Ctrl-C reaches run alone, which ends the others in order
                )
            finally:
                words.started()
        except OSError as error:
            self._failed.append(self._exited(name, f"its process could not be started: {error}", asked=False))
            return
        if name not in self._private:  # when a controller comes and goes is not for who is blind
            _log.info("%s begins, process %d", name, child.pid)
        assert child.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, which `poll` finds
            child.stdin.write(self._spec_of(name, log))
            child.stdin.close()
        self._running[name] = child
        self._words[name] = words

    def _spec_of(self, name: str, log: Path) -> bytes:
        return ProcessSpec(**self._spec, name=name, log=log).model_dump_json().encode()

    def kill(self, name: str, now_ns: int) -> None:
        """Ask a process to end; `poll` kills it if it has not ended two seconds later."""
        self._again.discard(name)
        child = self._running.get(name)
        if child is not None and name not in self._killed_at:
            self._killed_at[name] = now_ns
            child.send_signal(signal.SIGTERM)

    def poll(self, now_ns: int) -> list[Message]:
        """Messages about processes that have ended since the last call ("exited": name, reason, asked); of one that
        ended itself for a reason no sooner than `WORDS_NS` later, so that the reason, which it sent, comes first.
        """
        out, self._failed = self._failed, []
        for name, child in list(self._running.items()):
            asked = self._killed_at.get(name)
            if asked is not None and now_ns - asked > STOP_NS:
                child.kill()
            code = child.poll()
            if code is not None:
                if asked is None and code > 0 and now_ns - self._ended_at.setdefault(name, now_ns) < WORDS_NS:
                    continue
                del self._running[name]
                self._ended_at.pop(name, None)
                self._words.pop(name).rest()
                self._killed_at.pop(name, None)
                reason = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                out.append(self._exited(name, reason, asked=asked is not None))
                if name in self._again:
                    self._again.remove(name)
                    self.spawn(name)
        return out

    def _exited(self, name: str, reason: str, *, asked: bool) -> Message:
        if name not in self._private:
            _log.log(logging.INFO if asked else logging.ERROR, "%s %s", name, reason)
        return Exited(name, reason, asked).to("run", sender="@host")

    def end_all(self) -> None:
        """End every process: SIGTERM, then SIGKILL after five seconds each."""
        for child in self._running.values():
            child.send_signal(signal.SIGTERM)
        for child in self._running.values():
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for words in self._words.values():
            words.rest()
        self._running.clear()
        self._words.clear()


class Stamper:
    """Has heads of a running campaign stamped, by a process of its own: nobody waits for a network. A head that comes
    while another is being asked for is covered by the next.
    """

    def __init__(self, folder: Path) -> None:
        """Raises InputError for a lab.toml whose authority has no certificates."""
        self._folder = folder
        self._authority = authority_of(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._words: Words | None = None

    def ask(self) -> None:
        """Begin to ask for a timestamp of the newest head; comes back at once. That it cannot be asked for is seen in
        `close`.
        """
        if self._authority is None or (self._process is not None and self._process.poll() is None):
            return
        command = [sys.executable, "-P", "-c", STAMP, "stamp", str(self._folder)]
        with suppress(OSError):
            words = Words("stamp", self._folder / STAMPS, waits=True)
            out = words.writes
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
            finally:
                words.started()  # closes this end, whether or not a process has the other one
            self._words = words
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICER)

    def close(self) -> str:
        """See to it that the last head was asked for, waiting as long as the lab allows; a line where it has none."""
        if self._authority is None:
            return ""
        patience_s = self._authority.timeout_s + START_S
        answered = self._wait(patience_s)
        if answered and not self._stamped():
            self.ask()
            self._wait(patience_s)
        if self._stamped():
            return ""
        return f"the last head has no timestamp: see {STAMPS}; later: labctl stamp {self._folder.name}"

    def _stamped(self) -> bool:
        heads = read_heads(self._folder)
        return bool(heads) and heads[-1].seq in kept(self._folder)

    def _wait(self, patience_s: float) -> bool:
        """Whether the process that asked got what it asked for, or none was there; one that hangs is ended."""
        if self._process is None:
            return True
        try:
            stamped = self._process.wait(patience_s) == 0
            if self._words is not None:
                self._words.rest()
            return stamped
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
