"""How long a test waits for something: by the time in which this machine had anything left for it.

Two minutes in which some core was idle now and then. While none was, other programs and other tests had them all, and
what is waited for a share: four minutes count as one. That ends before the limit of ten minutes, which tells less.

May not: excuse what a test measures; it only waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from labctl.clock import SECOND, Clock, MonotonicClock

PATIENCE_NS, LOOK_NS = 120 * SECOND, SECOND
SPARE, SLOWER = 0.05, 4  # of the cores' time: with less this machine had nothing left; how much less that counts
STAT = Path("/proc/stat")
CLOCK = MonotonicClock()


def idle_ns() -> float | None:
    """For how long cores were idle since this machine began (proc_stat(5)), all together; None where nobody says."""
    if not STAT.exists():
        return None
    fields = STAT.read_text().splitlines()[0].split()
    return (int(fields[4]) + int(fields[5])) * SECOND / os.sysconf("SC_CLK_TCK")


class Patience:
    """From now on."""

    def __init__(self, clock: Clock = CLOCK, idle: Callable[[], float | None] = idle_ns) -> None:
        self._clock, self._idle, self._cores = clock, idle, os.cpu_count() or 1
        self._left_ns = float(PATIENCE_NS)
        self._looked_ns, self._idle_ns = clock.now_ns(), idle()

    def over(self) -> bool:
        now_ns = self._clock.now_ns()
        took_ns = now_ns - self._looked_ns
        if took_ns >= LOOK_NS:
            was, self._idle_ns = self._idle_ns, self._idle()
            spare = was is None or self._idle_ns is None or self._idle_ns - was > SPARE * self._cores * took_ns
            self._left_ns -= took_ns if spare else took_ns / SLOWER
            self._looked_ns = now_ns
        return self._left_ns <= 0
