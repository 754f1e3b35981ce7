"""Workers that compute leave live tests to the others; a test that hangs or kills its worker is named and run once;
what takes long begins first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.pools import known_costs, longest_first, scope_of, worth_a_line

TESTS = Path(__file__).resolve().parents[2]
PURE = """
import os
import pytest

@pytest.mark.parametrize("n", range(8))
def test_pure(n):
    with open("ran", "a") as file:
        print("pure", os.nice(0), file=file)
"""
LIVE = """
import ctypes, os
import pytest

pytestmark = pytest.mark.real_time

def ran(name):
    with open("ran", "a") as file:
        print(name, os.nice(0), file=file)

@pytest.mark.parametrize("n", range(4))
def test_live(n):
    ran("live")

@pytest.mark.limit(3)
def test_hangs():
    ran("hangs")
    ctypes.PyDLL(None).sleep(100)  # outside Python, and nothing of Python runs meanwhile

def test_after_it():
    ran("after")
"""
ASK = """
import fcntl, glob
file = open(*glob.glob(".pytest_cache/*.turns"), "r+")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 0, 1)  # of all parts
"""
BUSY = (
    """
import os, subprocess, sys
import pytest

pytestmark = [pytest.mark.real_time, pytest.mark.busy]

def ran(name):
    with open("ran", "a") as file:
        print(name, os.nice(0), os.getpid(), file=file)

@pytest.mark.parametrize("n", range(4))
def test_busy(n):
    ran("busy")

ASK = """
    + repr(ASK)
    + """

@pytest.mark.parametrize("n", range(2))
def test_part(n):
    asked = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    assert "BlockingIOError" in asked.stderr, "it has its turn"
    ran("part")
"""
)


@pytest.fixture(scope="module")
def base() -> int:
    """How nice this worker is by now: one for live tests steps back when none of those is left for it."""
    return os.nice(0)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, base: int) -> tuple[str, list[str]]:
    """What a run of those two files printed, and what ran at which niceness."""
    folder = tmp_path_factory.mktemp("pools")
    (folder / "test_pure.py").write_text(PURE)
    (folder / "test_live.py").write_text(LIVE)
    for n in range(3):
        (folder / f"test_busy_{n}.py").write_text(BUSY)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    real_time: x\n    busy: x\n")
    plugins = ["harness.pools", "harness.turns", "harness.hangs", "no:cacheprovider", "no:hypothesispytest"]
    plugins = [word for plugin in plugins for word in ("-p", plugin)]
    workers = ["--tx", "popen//nice=3", "--tx", "2*popen", "--dist", "loadscope"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *workers],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        timeout=120,
    )
    return done.stdout + done.stderr, (folder / "ran").read_text().splitlines()


def test_live_tests_run_on_workers_that_are_not_nice(told: tuple[str, list[str]], base: int) -> None:
    live = [line for line in told[1] if not line.startswith("pure")]
    assert len(live) == 24 and {line.split()[1] for line in live} == {str(base)}


def test_whoever_computes_is_nice(told: tuple[str, list[str]], base: int) -> None:
    """A worker for live tests too, once none of those is left for it."""
    assert {line for line in told[1] if line.startswith("pure")} == {f"pure {min(base + 3, 19)}"}, (
        "19 is the most there is"
    )


def test_every_test_ran_once_though_one_took_its_worker_along(told: tuple[str, list[str]]) -> None:
    names = [line.split()[0] for line in told[1]]
    assert sorted(names) == sorted(["pure"] * 8 + ["live"] * 4 + ["busy"] * 12 + ["part"] * 6 + ["hangs", "after"])
    assert "1 failed, 31 passed" in told[0]


def test_what_keeps_a_core_busy_is_one_workers_alone(told: tuple[str, list[str]]) -> None:
    assert len({line.split()[2] for line in told[1] if line.startswith(("busy", "part"))}) == 1


def test_what_takes_long_begins_first_by_the_clock_or_by_the_processor() -> None:
    scopes = {
        "unknown.py": ["unknown.py::test_a"],
        "short.py": ["short.py::test_a[1]"],
        "@waits.py": ["waits.py::test_a[1]", "waits.py::test_a[2]"],
        "long.py": ["long.py::test_a[1]", "long.py::test_a[2]"],
        "other.py": ["other.py::test_b"],
    }
    costs = {"short.py::test_a": (9.0, 3.0), "waits.py::test_a": (5.0, 1.0), "long.py::test_a": (2.0, 2.0)}
    assert longest_first(scopes, costs) == ["@waits.py", "long.py", "short.py", "unknown.py", "other.py"]


def test_each_robot_that_a_live_file_tries_is_one_workers_and_each_live_campaign() -> None:
    def scope(nodeid: str, *markers: str, **params: object) -> str:
        found: Any = SimpleNamespace(nodeid=nodeid, callspec=SimpleNamespace(params=params))
        found.get_closest_marker = lambda name: name if name in markers else None
        return scope_of(found)

    assert scope("tests/a.py::test_b[x]", rig="x") == "tests/a.py"
    assert scope("tests/a.py::test_b[x-2]", "real_time", rig="x", n=2) == "@tests/a.py x"
    assert scope("tests/a.py::test_b[y]", "real_time", "busy", rig="y") == "@@tests/a.py y"
    assert scope("tests/a.py::test_c", "real_time") == "@tests/a.py"
    assert scope("tests/system/a.py::test_d[x]", "real_time", rig="x") == "@tests/system/a.py::test_d[x]"


def test_costs_are_those_of_a_case_of_what_is_long_in_all(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("30.00\t2.00\ta.py::test_long[1]\n10.00\t1.00\ta.py::test_long[2]\n")
    (tmp_path / "other").write_text("3.00\t2.50\tb.py::test_short\n2.00\t5.00\tb.py::test_that_computes\n")
    found = list(worth_a_line([tmp_path / "one", tmp_path / "other"]))
    assert found == ["20.0\t1.5\ta.py::test_long", "2.0\t5.0\tb.py::test_that_computes"]


def test_every_test_whose_cost_is_known_is_there() -> None:
    """A line that nothing answers to orders nothing, and nobody would see it."""
    shipped = "".join(path.read_text("utf-8") for path in (TESTS.parent / "labctl/testing").glob("*.py"))
    for test in known_costs():
        file, *classes, name = test.split("::")
        said = (TESTS.parent / file).read_text("utf-8") + (shipped if classes else "")
        assert f"def {name}(" in said, f"{test}: take its line out of tests/harness/costs.tsv or correct it"


def test_what_hung_is_named_with_where_it_hung(told: tuple[str, list[str]]) -> None:
    assert "crashed while running 'test_live.py::test_hangs'" in told[0]
    assert "Timeout (0:00:03)!" in told[0] and "in test_hangs" in told[0]
