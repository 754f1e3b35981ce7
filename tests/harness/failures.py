"""A failure says what was claimed, where its campaign and log lie, and how to run it alone."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter
from _pytest.tmpdir import tmppath_result_key

LOGS = 3
LINES = 15


class AtOnce:
    """A failure is named when it happens: who waits for the end of a run can begin to look."""

    def __init__(self, reporter: TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.write_line(f"\nFAILED {report.nodeid} ({report.when})", red=True)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.register(AtOnce(reporter))


def claim_of(item: pytest.Item) -> str:
    """A test's name in words, with its case, and the first paragraph of its docstring."""
    words, _, case = item.name.removeprefix("test_").partition("[")
    claim = words.replace("_", " ") + (f" ({case.removesuffix(']')})" if case else "")
    doc = (getattr(getattr(item, "function", None), "__doc__", None) or "").split("\n\n")[0]
    return f"{claim}. {' '.join(doc.split())}".rstrip(". ") + "."


def command_of(nodeid: str) -> str:
    """What runs one test alone, whatever its markers."""
    return f".venv/bin/python -m pytest -m '' '{nodeid}'"


FOLDER = pytest.StashKey[Path]()  # of a test, which holds its lab; pytest keeps those of tests that failed


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, Any, Any]:
    """A fixture may fail after it has made its folder: by then the test has not heard of that."""
    made = yield
    if fixturedef.argname == "tmp_path":
        request.node.stash[FOLDER] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not report.failed:
        return report
    lines = [f"claim  {claim_of(item)}"]
    folder = item.stash.get(FOLDER, None)
    if folder is not None:
        if report.when == "setup":  # else pytest keeps the folder only of a test that began
            item.stash.setdefault(tmppath_result_key, {})["call"] = False
        lines.append(f"kept   {folder}")
        for log in sorted(folder.rglob("*.log"))[:LOGS]:
            told = log.read_text("utf-8", "replace").splitlines()[-LINES:]
            report.sections.append((f"the end of {log}", "\n".join(told)))
    lines.append(f"alone  {command_of(item.nodeid)}")
    report.sections.append(("this test", "\n".join(lines)))
    return report
