"""Scheduling of threads: what is kept on one core is let go again, and only for the thread that asks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from labctl import realtime

pytestmark = pytest.mark.privileged


def in_thread(call: Callable[[], object]) -> None:
    """Run it where nothing of it is left behind."""
    failed: list[BaseException] = []

    def body() -> None:
        try:
            call()
        except BaseException as error:  # told below
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@pytest.mark.skipif(len(realtime.CORES) < 2, reason="one core is all there is")
def test_threads_kept_together_are_on_one_core_and_one_that_is_apart_on_any() -> None:
    seen: dict[str, set[int]] = {}

    def alone() -> None:
        realtime.unpin()
        seen["apart"] = os.sched_getaffinity(0)

    def body() -> None:
        realtime.pin_to_one_core()
        seen["together"] = os.sched_getaffinity(0)
        in_thread(lambda: seen.__setitem__("begun", os.sched_getaffinity(0)))
        in_thread(alone)

    in_thread(body)
    assert len(seen["together"]) == 1 and seen["begun"] == seen["together"]
    assert seen["apart"] == realtime.CORES == os.sched_getaffinity(0)
