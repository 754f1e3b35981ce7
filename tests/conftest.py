"""For every test: what it may leave behind, how long it may take, and what a failure says (tests/harness)."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.in_memory import lie_in_memory
from support.runs.recordings import Recordings

pytest_plugins = [
    "harness.beside",
    "harness.failures",
    "harness.hangs",
    "harness.left_out",
    "harness.pools",
    "harness.seeds",
    "harness.slowest",
    "harness.taken",
    "harness.turns",
]

gc.disable()  # until all is collected (below): of what is made meanwhile nothing goes, and to look took a third of it

# A shell starts what it runs in the background with SIGINT ignored, and children inherit that: those that tests
# interrupt must be able to hear it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


os.environ.update(lie_in_memory(os.environ))

# What dependencies write into a home folder goes into one of the tests' own, kept between runs for its caches.
HOME = Path(__file__).parents[1] / "build" / "test-home"
HOME.mkdir(parents=True, exist_ok=True)
os.environ["HOME"] = str(HOME)
for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
    os.environ.pop(variable, None)
# pytest has read it by now; a pytest that a test starts is not meant, and may not know the option.
os.environ.pop("PYTEST_ADDOPTS", None)


def of_this_process() -> dict[str, Any]:
    """What one test may leave changed for all that follow it in the same process."""
    found: dict[str, Any] = {"folder": Path.cwd(), "switch interval": sys.getswitchinterval()}
    if hasattr(os, "sched_getscheduler"):
        found["scheduling"] = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, os.sched_getaffinity(0)
    return found


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What is collected and imported stays to the end: Python's collector would walk it all whenever it looks for
    what may go, a sixth of the processor time of a worker's tests. Of the rest it walks the old less often.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 30)


@pytest.fixture(autouse=True)
def nothing_left_changed() -> Iterator[None]:
    """A test that fails only after another one, in whatever order files are dealt out, costs whoever reads it a day."""
    before = of_this_process()
    yield
    assert of_this_process() == before, "this test leaves its process changed for all that follow"


@pytest.fixture
def no_collector() -> Iterator[None]:
    """For what reads input that is nested beyond Python's limit: whatever the collector ends just there, of a test
    before, has no depth left to end in, and pytest counts that against the test that runs.
    """
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Recordings:
    """Campaigns that are only read, recorded once a run: the workers' own folders lie side by side in the run's."""
    mine = tmp_path_factory.getbasetemp()
    return Recordings((mine.parent if hasattr(request.config, "workerinput") else mine) / "recordings")
