"""Scheduling of the threads that read a robot and servo it: ahead of other work, where this user may ask for that.

May not: raise a thread above the vendor's own, or fail where it is not allowed: a robot is then read as well as can be.
"""

from __future__ import annotations

import os
import resource

PRIORITY = 5  # of SCHED_FIFO; the vendors' threads are higher
CONTROLLER = 2 * PRIORITY  # of an emulated one: a real one has a computer of its own
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()  # that this process was given
LOOP = PRIORITY - 1  # of the loop beside them: whoever waits for the interpreter's lock waits for its holder to be run


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


def together() -> None:
    """Keep the calling thread, and those it begins, on one core, where they go ahead of others.

    A vendor's loop, its callbacks and ours wake each other a thousand times a second. From core to core that costs a
    sixth of all that the arm's process takes (measured with an FR3). Who may not go ahead of others is better off with
    any core that is free.
    """
    if len(CORES) > 1 and allowed():
        os.sched_setaffinity(0, {max(CORES)})


def apart() -> None:
    """The calling thread may run on any core again, as one that waits for states should: it cannot wait for others."""
    if len(CORES) > 1:
        os.sched_setaffinity(0, CORES)
