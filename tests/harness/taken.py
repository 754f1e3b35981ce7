"""What the host of a virtual machine took from it: a test in real time that fails meanwhile has judged the host. It is
not repeated and it has not passed; it is listed as not judged, with what was taken and how it failed.

May not: judge a test otherwise than it judged itself where nothing was taken, or where it does not go by the clock.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

TAKEN_S = 0.2  # a robot is lost after half a second without a state
BUGS = (AttributeError, ImportError, NameError, SyntaxError, TypeError)  # that no lack of time can cause
BEGAN = pytest.StashKey[float]()


def stolen_s() -> float:
    """CPU seconds that the host took since this machine began, all cores added (`steal` of the kernel's account)."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return int(fields[7]) / os.sysconf("SC_CLK_TCK")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGAN] = stolen_s()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    bug = call.excinfo is not None and isinstance(call.excinfo.value, BUGS)
    if report.failed and not bug and item.get_closest_marker("real_time") and BEGAN in item.stash:
        taken_s = stolen_s() - item.stash[BEGAN]
        if taken_s > TAKEN_S:
            how = call.excinfo.exconly().splitlines()[0] if call.excinfo else "it failed"
            why = f"NOT JUDGED, the host took {taken_s:.1f} s of this machine's cores meanwhile: {item.name}: {how}"
            report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, why)
    return report
