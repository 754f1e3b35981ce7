"""What to say of a thread of a driver that ended by a fault in labctl, or in a driver of somebody's own.

May not: decide what the fault means: the robot is lost, or the gripper, or the device in a hand.
"""

from __future__ import annotations

import logging


def fault_of(thread: str, error: Exception) -> str:
    """The fault in one line, for whoever has to hear of it; its traceback goes to the log, with the thread's name."""
    logging.getLogger(__name__).error("%s failed", thread, exc_info=error)
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
