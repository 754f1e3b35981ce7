"""Realtime priority and CPU pinning of threads, and how a thread is scheduled again after a library changed it.

May not: raise a thread above the vendor's own, or fail where it is not allowed: a robot is then read as well as can be.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

PRIORITY = 5  # of SCHED_FIFO; the vendors' threads are higher
VENDOR_PRIORITY = PRIORITY + 1  # of a vendor's loop that would else be scheduled as the thread of ours that begins it
CONTROLLER = 2 * PRIORITY  # of an emulated one: a real one has a computer of its own
VISIT_NS = 20_000_000  # between two visits of a robot in real time, at most: a stop is never far
CORES: set[int] = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()  # that this process was given
LOOP = PRIORITY - 1  # of the loop beside them: whoever waits for the interpreter's lock waits for its holder to be run


def tick_ns(observe_hz: float, *, real_time: bool) -> int:
    """Time between visits to a robot: the observation period in simulated time; at most 20 ms in real time, so that a
    stop is never far.
    """
    period = round(1e9 / observe_hz)
    return min(period, VISIT_NS) if real_time else period


def allowed() -> bool:
    """May this process ask for realtime scheduling? `labctl doctor` says how to allow it."""
    if not hasattr(os, "sched_setscheduler"):
        return False
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    return os.geteuid() == 0 or limit == resource.RLIM_INFINITY or limit >= PRIORITY


def urgent(priority: int = PRIORITY) -> bool:
    """Raise the calling thread, and those it begins, if that is allowed; says whether it was."""
    if not allowed():
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError:  # a container may forbid what the limits allow
        return False
    return True


def ordinary() -> None:
    """The calling thread waits its turn again."""
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def raised(priority: int) -> Iterator[None]:
    """The calling thread, and for good those that begin meanwhile, at a priority, if that is allowed."""
    with kept():
        urgent(priority)
        yield


def pin_to_one_core() -> None:
    """Keep the calling thread, and those it begins, on one core, where they go ahead of others.

    A vendor's loop, its callbacks and ours wake each other a thousand times a second. From core to core that costs a
    sixth of all that the robot's process takes (measured with an FR3). Who may not go ahead of others is better off
    with any core that is free.
    """
    if len(CORES) > 1 and allowed():
        os.sched_setaffinity(0, {max(CORES)})


def unpin() -> None:
    """The calling thread may run on any core again, as one that waits for states should: it cannot wait for others."""
    if len(CORES) > 1:
        os.sched_setaffinity(0, CORES)


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
