"""How the calling thread and those it begins are scheduled, put back after a library changed it of its own accord.

May not: raise anything.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def kept(*, begun: bool = False) -> Iterator[None]:
    """However a library schedules the calling thread, it is as before afterwards, and if the library fails too.

    begun: so are threads that begin meanwhile. libfranka raises the thread that connects; SVT-AV1, run as root, raises
    the thread that opens it and all of its own to the highest priority there is, ahead of every robot's.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield
        return
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    before = _threads() if begun else set()
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, param)
        for thread in _threads() - before if begun else ():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setscheduler(thread, policy, param)


def _threads() -> set[int]:
    """The threads of this process."""
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}
