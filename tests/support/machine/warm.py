"""`labctl`, or what else is named, as processes that begin at once: forked from one that has imported it all, for tests
that start dozens. Importing is most of such a run's processor time, and is what no such test asks about.

May not: be taken for how a process starts; that is tested where it is started as a person does. All of them have one
order of sets of texts.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from support.machine.processes import end_with_parent

TESTS = Path(__file__).parents[2]
FIRST = ("labctl.cli", "labctl.cli.run", "labctl.cli.run_display", "labctl.runtime.campaign_run")


class Forked:
    """One of them, as far as `subprocess.Popen` is asked here: `pid`, `poll`, `wait`. The leader of its own session."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self._warm, self.pid = warm, pid

    def poll(self) -> int | None:
        """As it ended, -9 for one that was killed; None while it runs."""
        return self._warm.ended(self.pid, wait=False)

    def wait(self) -> int:
        """As `poll`, once it has ended."""
        code = self._warm.ended(self.pid, wait=True)
        assert code is not None
        return code


class Warm:
    """The process that forks them; they end with it. modules: of which the first one's `main` gets their words; the
    others are imported beforehand too.
    """

    def __init__(self, modules: Sequence[str] = FIRST) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
        words = [sys.executable, "-m", "support.machine.warm", *modules]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, preexec_fn=end_with_parent
        )
        self._codes: dict[int, int] = {}
        self._heard()

    def start(self, words: Sequence[str], log: Path) -> Forked:
        """With these words, in a process of its own; what it prints is added to a file."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"words": list(words), "log": str(log)}).encode() + b"\n")
        self._process.stdin.flush()
        while "began" not in (said := self._heard()):
            continue
        self._codes.pop(said["began"], None)  # of an earlier one with this number
        return Forked(self, said["began"])

    def ended(self, pid: int, *, wait: bool) -> int | None:
        """The exit code of one of them; None where it still runs and nobody waits for it."""
        assert self._process.stdout is not None
        while pid not in self._codes and (wait or select.select([self._process.stdout], [], [], 0)[0]):
            self._heard()
        return self._codes.get(pid)

    def close(self) -> None:
        """It ends, and with it whatever is left of them."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):  # byte by byte: nothing is left in a buffer that `select` does not see
            more = os.read(self._process.stdout.fileno(), 1)
            assert more, f"the process that forks ended: {self._process.wait()}"
            line += more
        said: dict[str, Any] = json.loads(line)
        if "ended" in said:
            self._codes[said["ended"]] = said["code"]
        return said


@contextlib.contextmanager
def warmed(*modules: str) -> Iterator[Warm]:
    """One for a test, of `labctl` unless other modules are named."""
    warm = Warm(modules or FIRST)
    try:
        yield warm
    finally:
        warm.close()


def serve() -> list[str] | None:
    """Fork for each line that is read; the words of a process that was forked, None at the end of all."""
    going: dict[int, int] = {}  # pid, by a descriptor that can be read once it has ended
    own = os.getpid()
    say({})
    while True:
        for ready in select.select([0, *going], [], [])[0]:
            if ready in going:
                pid = going.pop(ready)
                os.close(ready)
                say({"ended": pid, "code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
                continue
            line = sys.stdin.buffer.raw.readline()  # type: ignore[attr-defined]
            if not line:
                return None
            asked = json.loads(line)
            begun, begins = os.pipe()
            pid = os.fork()
            if not pid:
                begin(own, Path(asked["log"]), [*going, begun, begins])
                return list(asked["words"])
            os.close(begins)
            going[os.pidfd_open(pid)] = pid
            os.read(begun, 1)  # closed once it leads its own session, or has ended
            os.close(begun)
            say({"began": pid})


def begin(parent: int, log: Path, inherited: Iterable[int]) -> None:
    """A process of its own: its session, its output, nothing of its neighbours."""
    end_with_parent()
    if os.getppid() != parent:  # it ended before that was said
        os._exit(1)
    os.setsid()
    for descriptor in inherited:
        os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for descriptor, standard in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(descriptor, standard)
    os.close(nothing)
    os.close(out)


def say(what: dict[str, Any]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    import importlib

    for module in sys.argv[1:]:
        importlib.import_module(module)
    given = serve()
    if given is not None:
        importlib.import_module(sys.argv[1]).main(given)
