"""How long a run took, and its ten slowest tests, with what was made ready for them and put away after them."""

from __future__ import annotations

from collections import defaultdict

import pytest
from _pytest.terminal import TerminalReporter

SHOWN = 10


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    took: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid] += report.duration
    if len(took) <= SHOWN:
        return
    terminalreporter.section("the ten slowest tests")
    for nodeid, seconds in sorted(took.items(), key=lambda entry: -entry[1])[:SHOWN]:
        terminalreporter.line(f"{seconds:7.1f} s  {nodeid}")
