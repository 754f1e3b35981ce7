"""A test that hangs is named and its process killed, wherever it hangs: a signal does not reach code outside Python."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Generator

import pytest

LIMIT_S = 600.0
SAID = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "limit(seconds): how long this test may take before its process is killed [600]")
    config.stash[SAID] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)  # capturing takes the other one


def pytest_unconfigure(config: pytest.Config) -> None:
    if SAID in config.stash:
        os.close(config.stash[SAID])
        del config.stash[SAID]


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The stacks of all threads go to stderr, and then the process ends; pytest-xdist names the test and goes on with
    another worker.
    """
    marker = item.get_closest_marker("limit")
    seconds = float(marker.args[0]) if marker else LIMIT_S
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[SAID])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
