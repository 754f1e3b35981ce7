"""Scheduling of the threads that read a robot and servo it: ahead of other work, where this user may ask for that.

May not: raise a thread above the vendor's own, or fail where it is not allowed: a robot is then read as well as can be.
"""

from __future__ import annotations

import os
import resource

PRIORITY = 5  # of SCHED_FIFO; the vendors' threads are higher


def allowed() -> bool:
    """May this process ask for realtime scheduling? `labctl doctor` says how to allow it."""
    if not hasattr(os, "sched_setscheduler"):
        return False
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    return os.geteuid() == 0 or limit == resource.RLIM_INFINITY or limit >= PRIORITY


def urgent() -> bool:
    """Raise the calling thread, if that is allowed; says whether it was."""
    if not allowed():
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:  # a container may forbid what the limits allow
        return False
    return True
