"""How long a run took, its ten slowest tests, and what each cost the machine's cores: with what was made ready for it
and put away after it, and with the processes that it started and saw end.

`--costs FILE` writes all of them down: seconds, CPU seconds, test.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

SHOWN = 10
SO_FAR = pytest.StashKey[float]()


def cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write down what each test took: seconds, CPU seconds, test")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.session.stash.setdefault(SO_FAR, cpu_s())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    now = cpu_s()
    report.cpu_s = now - item.session.stash.get(SO_FAR, now)  # a report's attributes travel from worker to controller
    item.session.stash[SO_FAR] = now
    return report


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    took: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                took[report.nodeid][0] += report.duration
                took[report.nodeid][1] += getattr(report, "cpu_s", 0.0)
    ordered = sorted(((*costs, nodeid) for nodeid, costs in took.items()), reverse=True)
    if where := config.getoption("costs"):
        Path(where).write_text("".join(f"{wall:.2f}\t{cpu:.2f}\t{nodeid}\n" for wall, cpu, nodeid in ordered))
    if len(took) <= SHOWN:
        return
    terminalreporter.section(f"the ten slowest tests, of {sum(cpu for _, cpu, _ in ordered):.0f} s of CPU in all")
    for wall, cpu, nodeid in ordered[:SHOWN]:
        terminalreporter.line(f"{wall:7.1f} s, {cpu:5.1f} of CPU  {nodeid}")
