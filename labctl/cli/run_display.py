"""What `labctl run --headless` prints: the run's own lines, and how far it is: a line that is kept up to date on a
terminal, plain lines elsewhere.

May not: make the run wait. A terminal that takes nothing (Ctrl-S), is gone, or a pipe that nobody reads holds up a
thread of its own, and its buffer is left alone.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from labctl.clock import Clock, MonotonicClock
from labctl.core.published_state import PublishedState
from labctl.viewing.headway import Headway, Lines

TICK_S = 0.5
LAST_WORDS_S = 2.0
WIPE = "\r\x1b[K"


class RunDisplay:
    """Lines and states of a run, made into what is written. width: of the terminal in columns, None where there is
    none.
    """

    def __init__(self, write: Callable[[str], None], clock: Clock, width: Callable[[], int] | None) -> None:
        self._write, self._width = write, width
        self._headway = Headway(clock)
        self._lines = Lines(self._headway, clock)
        self._status = ""

    def report(self, line: str) -> None:
        """A line of the run's own."""
        self._lines.spoke()
        self._print(line)

    def heard(self, state: PublishedState, live: bool) -> None:
        self._headway.hear(state, live=live)

    def tick(self) -> None:
        """What time has made due."""
        if self._width is None:
            for line in self._lines.due():
                self._print(line)
            return
        status = self._headway.line(self._width() - 1)
        if status != self._status:
            self._status = status
            self._write(f"{WIPE}{status}")

    def end(self) -> None:
        if self._width is None:
            for line in self._lines.last():
                self._print(line)
        if self._status:
            self._status = ""
            self._write(WIPE)

    def _print(self, line: str) -> None:
        self._write(f"{line}\n" if self._width is None else f"{WIPE}{line}\n{self._status}")


@contextmanager
def displayed(
    *, beside: bool = False
) -> Iterator[tuple[Callable[[str], None], Callable[[PublishedState, bool], None]]]:
    """Two functions that never wait: one for the run's lines, one for its states. On a terminal both go to standard
    error, as progress does everywhere, else to standard output; beside: to standard error anyhow, since a document is
    to stand on the other.
    """
    terminal = sys.stderr.isatty()
    stream = sys.stderr if terminal or beside else sys.stdout
    width = (lambda: _columns(stream)) if terminal else None
    display = RunDisplay(_writer(stream), MonotonicClock(), width)
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    newest: deque[tuple[PublishedState, bool]] = deque(maxlen=1)  # older ones are of no use to who shows them

    def show() -> bool:
        """One turn; False when it was the last."""
        try:
            line = lines.get(timeout=TICK_S)
        except queue.Empty:
            line = ""
        if newest:
            display.heard(*newest[0])
        if line is None:
            display.end()
            return False
        if line:
            display.report(line)
        display.tick()
        return True

    def work() -> None:
        try:
            while show():
                pass
        except OSError:  # nobody reads any more
            while lines.get() is not None:
                pass

    thread = threading.Thread(target=work, name="display", daemon=True)
    thread.start()
    try:
        yield lines.put, lambda state, live: newest.append((state, live))
    finally:
        lines.put(None)
        thread.join(LAST_WORDS_S)


def _writer(stream: TextIO) -> Callable[[str], None]:
    """Past the stream's buffer where it has a file: a thread that hangs in it would hold up the end of the process."""
    try:
        stream.flush()
        target = stream.fileno()
    except (OSError, ValueError):
        return lambda text: print(text, end="", file=stream, flush=True)

    def write(text: str) -> None:
        left = text.encode()
        while left:
            left = left[os.write(target, left) :]

    return write


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80
