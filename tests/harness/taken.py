"""What the host of a virtual machine took from it: a test in real time that fails while a core was away has judged the
host. It is not repeated and it has not passed; it is listed as not judged, with what was taken and how it failed.

Bounded, for what is excused is seen by nobody: what counts was taken from one core, at once or as a share of the whole
test, and not in all; a test that was excused in the run before is judged; more than a few of a run fail it.

May not: judge a test otherwise than it judged itself where nothing was taken, or where it does not go by the clock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

AWAY_S = 0.2  # of one core within WINDOW_S: labctl's shortest patience is the lease of 0.3 s
WINDOW_S = 0.5  # a robot is lost after half a second without a state
STEADY = 0.05  # of one core over a whole test: a shared host takes up to 0.02, one that is overrun 0.14
EVERY_S = 0.05
MOST = 6  # excused tests of one run
# That no lack of time can cause.
BUGS = (
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
    UnicodeError,
    ZeroDivisionError,
)
KEPT = "harness/not-judged"  # in pytest's cache: the tests that no run has judged since they were excused
Look = tuple[float, tuple[float, ...]]  # when, and what had been taken from each core by then, s


def stolen_s() -> tuple[float, ...]:
    """CPU seconds that the host took from each core since this machine began (`steal` of the kernel's account)."""
    lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    tick = os.sysconf("SC_CLK_TCK")
    return tuple(int(fields[8]) / tick for fields in lines if fields[0].startswith("cpu") and fields[0] != "cpu")


def at_once_s(looks: Sequence[Look]) -> float:
    """The most that was taken from one core within WINDOW_S, s; of two looks further apart than that, their share."""
    most, first = 0.0, 0
    for last in range(1, len(looks)):
        while first < last - 1 and looks[last][0] - looks[first][0] > WINDOW_S:
            first += 1
        apart_s = looks[last][0] - looks[first][0]
        share = min(1.0, WINDOW_S / apart_s) if apart_s > 0 else 1.0
        most = max(most, *(share * (b - a) for a, b in zip(looks[first][1], looks[last][1], strict=True)))
    return most


def steadily(looks: Sequence[Look]) -> float:
    """The share of one core that was taken from the first look to the last; 0 where that is not AWAY_S in all."""
    (began, before_s), (ended, after_s) = looks[0], looks[-1]
    most_s = max(b - a for a, b in zip(before_s, after_s, strict=True))
    return most_s / (ended - began) if most_s > AWAY_S and ended > began else 0.0


class Watch(threading.Thread):
    """Looks at the kernel's account while a test in real time runs."""

    def __init__(self) -> None:
        super().__init__(name="taken", daemon=True)
        self._over = threading.Event()
        self.looks: list[Look] = []
        self.look()
        self.start()

    def look(self) -> None:
        self.looks.append((time.monotonic(), stolen_s()))

    def run(self) -> None:
        while not self._over.wait(EVERY_S):
            self.look()

    def end(self) -> str | None:
        """What was taken, in words; None where it is nothing that a test need not stand."""
        self._over.set()
        self.join()
        self.look()
        if (taken_s := at_once_s(self.looks)) > AWAY_S:
            return f"the host took a core away for {taken_s:.2f} s of half a second meanwhile"
        if (share := steadily(self.looks)) > STEADY:
            return f"the host took {share:.0%} of a core meanwhile"
        return None


WATCH = pytest.StashKey[Watch]()


def before(config: pytest.Config) -> list[str]:
    """The tests that were excused when they last ran."""
    cache = getattr(config, "cache", None)
    return [] if cache is None else cache.get(KEPT, [])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("real_time"):
        item.stash[WATCH] = Watch()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What fails while it is put away (`teardown`) is no matter of time."""
    report = yield
    watch = item.stash.get(WATCH, None)
    if watch is None or not (report.when == "call" or (report.when == "setup" and not report.passed)):
        return report
    told = watch.end()
    del item.stash[WATCH]
    bug = call.excinfo is not None and isinstance(call.excinfo.value, BUGS)
    if report.failed and not bug and told is not None:
        if item.nodeid in before(item.config):
            report.sections.append(("judged", f"{told}, but this test was excused the last time too"))
            return report
        how = call.excinfo.exconly().splitlines()[0] if call.excinfo else "it failed"
        report.not_judged = report.longreprtext  # a report's attributes travel from worker to controller
        why = f"NOT JUDGED, {told}: {item.name}: {how}"
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1] or 0, why)
    return report


class Bound:
    """Registered where the run is summed up."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._excused: dict[str, str] = {}
        self._judged: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (told := getattr(report, "not_judged", None)) is not None:
            self._excused[report.nodeid] = told
        elif report.when == "call":
            self._judged.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        cache = getattr(self._config, "cache", None)
        kept = {*before(self._config), *self._excused} - self._judged
        if cache is not None and sorted(kept) != before(self._config):
            cache.set(KEPT, sorted(kept))
        if len(self._excused) > MOST:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        if not self._excused:
            return
        terminalreporter.section("not judged, because of what the host took", red=True)
        for nodeid, told in self._excused.items():
            terminalreporter.line(f"{told}\n\nNOT JUDGED {nodeid}\n")
        terminalreporter.line(f"{len(self._excused)} not judged, of at most {MOST}; the next time each is judged")
        if len(self._excused) > MOST:
            terminalreporter.line("FAILED: too many tests were not judged", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Bound(config))
