"""The folders of tests lie in memory where the machine has room: a campaign of a test writes some hundred files, each
synced, and waited for the disk longer than it computed.

May not: hide a place that was named (TMPDIR, PYTEST_DEBUG_TEMPROOT, --basetemp).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 2 << 30  # bytes; a run of `make test` held 143 MB at most
LEFT = 2 * ROOM  # bytes of memory that nobody uses, so that the tests' own processes have theirs
NAMED = "PYTEST_DEBUG_TEMPROOT"  # where pytest makes its folders


def available(meminfo: str) -> int:
    """Bytes that nobody uses, of the text of /proc/meminfo; 0 where it does not say."""
    lines = dict(line.partition(":")[::2] for line in meminfo.splitlines())
    number, _, unit = lines.get("MemAvailable", "").strip().partition(" ")
    return int(number) * 1024 if number.isdigit() and unit == "kB" else 0


def has_room(folder: Path, memory: int) -> bool:
    """May a file system in memory hold the tests' folders? They also run programs there, which Docker forbids."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    runs = not found.f_flag & getattr(os, "ST_NOEXEC", 8)
    free = found.f_bavail * found.f_frsize
    return runs and free >= ROOM and memory >= LEFT and os.access(folder, os.W_OK | os.X_OK)


def lie_in_memory(environment: Mapping[str, str], meminfo: Path = Path("/proc/meminfo")) -> dict[str, str]:
    """What is to be set before pytest makes its first folder."""
    if NAMED in environment or "TMPDIR" in environment or not meminfo.is_file():
        return {}
    return {NAMED: str(MEMORY)} if has_room(MEMORY, available(meminfo.read_text())) else {}
