"""How long a robot has been silent, counted only while somebody listened, and for how long its client may wait for it.

May not: take a pause of this process or of its machine for silence of the robot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from labctl.clock import MILLISECOND
from labctl.errors import DeviceLost

T = TypeVar("T")
MOST_NS = 50 * MILLISECOND  # one look counts for no more: longer than that nobody looked


class Silence:
    """Ask often, at least every `MOST_NS`; any thread may."""

    def __init__(self) -> None:
        self._counted = 0, 0, 0  # heard, looked, counted so far; always replaced as a whole

    def age_ns(self, heard_ns: int, now_ns: int) -> int:
        """Time in ns since the robot was heard (at `heard_ns`), without what lay between two looks too far apart."""
        before_ns, looked_ns, counted_ns = self._counted
        if heard_ns != before_ns:
            looked_ns, counted_ns = heard_ns, 0
        counted_ns += min(max(now_ns - looked_ns, 0), MOST_NS)
        self._counted = heard_ns, max(now_ns, looked_ns), counted_ns
        return counted_ns


def within(seconds: float, call: Callable[[], T], silent: str) -> T:
    """What a call into a vendor's client returns or raises; DeviceLost with the words `silent` if it does neither in
    that time. It then goes on in a thread of its own, which nothing can end.
    """
    returned, raised = list[T](), list[BaseException]()

    def asked() -> None:
        try:
            returned.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=asked, name="connecting", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise DeviceLost(silent)
    return returned[0]
