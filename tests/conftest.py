"""For every test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.neighbours import stolen_s

# A shell starts what it runs in the background with SIGINT ignored, and children inherit that: those that tests
# interrupt must be able to hear it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TAKEN_S = 0.2  # a robot is lost after half a second without a state
REPEATS = 2


class Host:
    """What the host of this machine took from it since the test began."""

    began_s = 0.0

    def taken_s(self) -> float:
        return stolen_s() - self.began_s

    def disturbed(self) -> bool:
        return self.taken_s() > TAKEN_S


HOST = Host()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test in real time that fails while the host took the machine's cores away has judged the host: it is repeated,
    and pytest says so. On a machine of its own nothing is.
    """
    for item in items:
        if item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.flaky(reruns=REPEATS, condition=HOST.disturbed))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    HOST.began_s = stolen_s()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if item.get_closest_marker("alone"):
        item.add_report_section("call", "host", f"the host took {HOST.taken_s():.2f} s of this machine's cores")


def of_this_process() -> dict[str, Any]:
    """What one test may leave changed for all that follow it in the same process."""
    found: dict[str, Any] = {"folder": Path.cwd(), "switch interval": sys.getswitchinterval()}
    if hasattr(os, "sched_getscheduler"):
        found["scheduling"] = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.sched_getaffinity(0)
    return found


@pytest.fixture(autouse=True)
def nothing_left_changed() -> Iterator[None]:
    """A test that fails only after another one, in whatever order files are dealt out, costs whoever reads it a day."""
    before = of_this_process()
    yield
    assert of_this_process() == before, "this test leaves its process changed for all that follow"
