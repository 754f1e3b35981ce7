"""Acts on a queue in a process (`support.machine.warm`) that ends itself by kill -9 at one of its steps on the disk:
LAB STEP REQUEST… are its words. Each id that was acknowledged is printed.

STEP counts from 1: before and after each sealed file, each entry of the journal, each head and the folder's making.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labctl.clock import ManualClock
from labctl.queue import acts, book, turns
from labctl.store import atomic_files
from labctl.store.journal import Journal
from support.submissions.outside import DAY_NS


class Steps:
    """Counts what is done on the disk, and ends the process at one of it."""

    def __init__(self, last: int) -> None:
        self._left = last

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, does: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any, **more: Any) -> Any:
            self.step()
            found = does(*given, **more)
            self.step()
            return found

        return done


def main(words: Sequence[str]) -> None:
    """Take each request in, move, and withdraw the first."""
    lab, last, requests = Path(words[0]), int(words[1]), [Path(word) for word in words[2:]]
    steps, clock = Steps(last), ManualClock(DAY_NS)
    book.replace_file = steps.around(book.replace_file)
    book.append_head = steps.around(book.append_head)
    atomic_files.sync_folder = steps.around(atomic_files.sync_folder)
    Journal.append = steps.around(Journal.append)
    for path in requests:
        print(acts.take_in(lab, path, clock, "p01").name, flush=True)
    first = next(iter(book.read(lab).queue.submissions))
    acts.withdraw(lab, first, "its sender asked for it", clock, "p01")
    print(f"withdrawn {first}", flush=True)
    turns.add(lab, str(lab / "protocols/p.toml"), clock, "p01")
    print("added", flush=True)
    steps.step()
    print("whole", flush=True)
