"""Processes that a test starts end with it, even when the test's own process is killed for hanging."""

from __future__ import annotations

import ctypes
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None)


def end_with_parent() -> None:
    """For `preexec_fn`: the kernel kills this process when the thread that started it is gone."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
