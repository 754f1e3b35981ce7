"""Processes that a test starts end with it, even when the test's own process is killed for hanging."""

from __future__ import annotations

import ctypes
import signal
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None)


def end_with_parent() -> None:
    """For `preexec_fn`: the kernel kills this process when the thread that started it is gone."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def open_files(process: Path) -> list[str]:
    """What the descriptors of a process lead to; one that it closes meanwhile is none of its files any more. Raises
    OSError for a process that has ended.
    """
    found = []
    for descriptor in (process / "fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return found
