"""How much of this machine other programs took while a test counted in real time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from labctl.clock import SECOND, MonotonicClock

_TICKS = os.sysconf("SC_CLK_TCK")


class Neighbours:
    """Cores used by others between being made and `cores`, the hypervisor's share included. `ours` are processes that
    live on; children that have ended count by what their parents collected.
    """

    def __init__(self, ours: Sequence[int]) -> None:
        self._ours = ours
        self._clock = MonotonicClock()
        self._start_ns, self._busy, self._own = self._clock.now_ns(), _busy_s(), self._own_s()

    def cores(self) -> float:
        taken = (_busy_s() - self._busy) - (self._own_s() - self._own)
        return max(0.0, taken / ((self._clock.now_ns() - self._start_ns) / SECOND))

    def _own_s(self) -> float:
        here = os.times()
        used = here.user + here.system + here.children_user + here.children_system
        for pid in self._ours:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / _TICKS
        return used


def _busy_s() -> float:
    """CPU seconds of the whole machine: user, nice, system, irq, softirq, steal."""
    fields = _spent()
    return sum(fields[i] for i in (0, 1, 2, 5, 6, 7)) / _TICKS


def _spent() -> list[int]:
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
