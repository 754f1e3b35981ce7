"""A test in real time that fails says how much of the machine programs had that are none of this run's.

May not: excuse a test: it ought to pass beside a program that takes a whole core. What the host of a virtual machine
took is another matter (taken.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

PROC, TICKS = Path("/proc"), os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq, of the kernel's account of the machine (proc_stat(5))
Look = tuple[float, float, float]  # when; CPU seconds of the machine; of this run


def run_of(config: pytest.Config) -> int:
    """The process that all of this run's have come from."""
    return os.getppid() if hasattr(config, "workerinput") else os.getpid()


def used_s(root: int, proc: Path = PROC) -> float:
    """CPU seconds of a process, of those that came from it, and of those of them that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for path in proc.glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()  # a name is any bytes
        except OSError:  # it ended meanwhile
            continue
        pid = int(path.parent.name)
        parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))

    def ours(pid: int) -> bool:
        while pid not in (root, 0, 1) and pid in parents:
            pid = parents[pid]
        return pid == root

    return sum(ticks for pid, ticks in used.items() if ours(pid)) / TICKS


def look(root: int, proc: Path = PROC) -> Look:
    fields = (proc / "stat").read_text().splitlines()[0].split()[1:]
    return time.monotonic(), sum(int(fields[i]) for i in BUSY) / TICKS, used_s(root, proc)


def others(before: Look, after: Look) -> float:
    """Cores that programs of others used between two looks."""
    took_s, busy_s, own_s = (b - a for a, b in zip(before, after, strict=True))
    return max(0.0, (busy_s - own_s) / took_s) if took_s > 0 else 0.0


BEGAN = pytest.StashKey[Look]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("real_time") and PROC.joinpath("stat").exists():
        item.stash[BEGAN] = look(run_of(item.config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (began := item.stash.get(BEGAN, None)) is not None:
        cores = others(began, look(run_of(item.config)))
        told = f"other programs used {cores:.2f} of {os.cpu_count()} cores while it ran"
        report.sections.append(("beside this test", told))
    return report
