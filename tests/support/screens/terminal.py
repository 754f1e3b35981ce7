"""A program in a terminal of its own: keys go in as bytes, the screen's bytes are read so that it never waits."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from labctl.clock import MonotonicClock

ROWS, COLUMNS = 40, 140


class Terminal:
    """A child on a pseudo-terminal of 140 x 40."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        given = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        self.child = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=given, start_new_session=True
        )
        os.close(slave)
        self.seen = bytearray()  # appended to in place: a reader that copies megabytes would hold up who writes
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                got = os.read(self._master, 65536)
            except OSError:
                return
            with self._news:
                self.seen += got
                self._news.notify_all()

    def key(self, text: str) -> None:
        os.write(self._master, text.encode())

    def answer_ns(self, key: str, wanted: str, *, patience_s: float = 30.0) -> int:
        """Press a key; nanoseconds until this text has been written to the screen. Raises AssertionError."""
        clock, mark, looked_for = MonotonicClock(), len(self.seen), wanted.encode()
        pressed_ns = clock.now_ns()
        self.key(key)
        with self._news:
            there = self._news.wait_for(lambda: self.seen.find(looked_for, mark) >= 0, patience_s)
            assert there, f"no {wanted!r} after {key!r}; the screen was sent {bytes(self.seen[mark:][-2000:])!r}"
        return clock.now_ns() - pressed_ns

    def cpu_s(self) -> float:
        """CPU seconds it has used."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Memory that is its own, in 10^6 bytes."""
        lines = Path(f"/proc/{self.child.pid}/smaps_rollup").read_text().splitlines()
        kept = [line for line in lines if line.startswith(("Private_", "Shared_Dirty"))]
        return sum(int(line.split()[1]) for line in kept) * 1024 / 1e6

    def end(self) -> None:
        self.child.kill()
        self.child.wait()
        os.close(self._master)
        self._reader.join(timeout=5)
