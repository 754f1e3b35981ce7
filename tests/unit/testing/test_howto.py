"""Each page of docs/howto/ is a worked example. What adds a driver is written down as it stands in the page, installed
as a package of someone else's, and its tests are run; what changes labctl is made in a copy of it.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.machine.packages import install

from labctl.errors import DeviceRefused
from labctl.software import FOLDERS

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "howto"
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+\.(?:py|toml))\n(.*?)^```$", re.M | re.S)
TESTED = {
    "robot.md": 24,
    "camera.md": 13,
    "policy.md": 6,
    "teleop.md": 5,
    "sensor.md": 14,
    "rail.md": 23,
    "own_robot.md": 28,
    "base.md": 33,
    "pair.md": 25,
}  # the tests that each page's `pytest` runs
DEAF = "{'stop': lambda self: None}"


def files_of(page: Path) -> dict[str, str]:
    """The blocks of a page that begin with the name of a file, by that name."""
    return {name: f"# {name}\n{text}" for name, text in BLOCK.findall(page.read_text("utf-8"))}


def run(page: Path, folder: Path, change: tuple[str, str] = ("", "")) -> subprocess.CompletedProcess[str]:
    """Write down and install what a page shows, and run its tests in a process of their own."""
    files = files_of(page)
    assert any(change[0] in text for text in files.values())
    files = {name: text.replace(*change) if change[0] else text for name, text in files.items()}
    project = tomllib.loads(files["pyproject.toml"])["project"]
    install(folder, project["name"], files, project["entry-points"]["labctl.drivers"], version=project["version"])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml", "."]
    path = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, timeout=200)


def test_what_the_server_of_the_policy_page_answers_wrongly_is_an_error_of_a_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The link raised ValueError: in simulated time a bug, which ends the run."""
    page: dict[str, Any] = {"__name__": "lines_of_the_page"}
    monkeypatch.setitem(sys.modules, "lines_of_the_page", ModuleType("lines_of_the_page"))
    exec(files_of(PAGES / "policy.md")["lab_policies/lines.py"], page)
    for answer in (b"Traceback (most recent call last):\n", b'{"actions": [[1.0], [1.0, 2.0]]}\n', b"\xff\n"):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            link = page["LinesLink"]("127.0.0.1", 1)
            link._socket = ours
            theirs.sendall(answer)
            with pytest.raises(DeviceRefused, match=r"no line of JSON|no array of numbers"):
                link.ask({}, 5.0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", TESTED)
def test_the_example_of_a_page_works_as_it_stands(name: str, tmp_path: Path) -> None:
    done = run(PAGES / name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{TESTED[name]} passed", done.stdout.splitlines()[-1]), done.stdout


def test_every_page_has_a_test() -> None:
    changing = {page for pages in CHANGES for page in pages}
    assert {path.name for path in PAGES.glob("*.md")} == {*TESTED, *changing, "README.md"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "change", "fails"),
    [
        ("camera.md", ("self.height, self.width, 3", "self.width, self.height, 3"), "test_frames_are_rgb_bytes"),
        (
            "robot.md",
            ("return SimRobot(", "return type('Deaf', (SimRobot,), {'stop': lambda self: None})("),
            "test_stop_works",
        ),
        ("policy.md", ('"lab_policies.lines"', '"lab_policies.gone"'), "there is no module 'lab_policies.gone'"),
    ],
)
def test_the_suite_notices_a_driver_that_breaks_the_contract(
    name: str, change: tuple[str, str], fails: str, tmp_path: Path
) -> None:
    done = run(PAGES / name, tmp_path, change)
    assert done.returncode and fails in done.stdout, done.stdout


# -- pages that change labctl itself: in a copy of it

PLACED = re.compile(r"^```python\n# in (\S+), (above|below): ([^\n]*)\n(.*?)^```$", re.M | re.S)
CHANGES = [("measure.md", "section.md"), ("export.md",)]  # pages whose changes are made together


def changed_copy(pages: tuple[str, ...], folder: Path) -> None:
    """labctl as it is installed, with what the pages add; tests and what else is new lie in the folder itself."""
    for name in FOLDERS:
        inside = folder / "labctl" / ("" if name == "labctl" else name)
        shutil.copytree(ROOT / name, inside, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    for page in pages:
        for name, text in files_of(PAGES / page).items():
            inside = name.startswith("analysis/")
            (folder / ("labctl" if inside else "") / name).write_text(text, "utf-8")
        for name, where, line, text in PLACED.findall((PAGES / page).read_text("utf-8")):
            path = folder / ("" if name.startswith("labctl/") else "labctl") / name
            lines = path.read_text("utf-8").splitlines(keepends=True)
            (at,) = (n for n, one in enumerate(lines) if one.strip() == line)
            lines.insert(at + (where == "below"), text)
            path.write_text("".join(lines), "utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("pages", CHANGES)
def test_the_changes_of_a_page_work_as_they_stand(pages: tuple[str, ...], tmp_path: Path) -> None:
    changed_copy(pages, tmp_path)
    tested = [file for page in pages for file in files_of(PAGES / page) if file.startswith("test_")]
    assert len(tested) == len(pages)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")  # as labctl's own tests
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT / "tests")))}
    commands = (("pytest", "-q", "-p", "no:cacheprovider", *tested), ("ruff", "format", "."), ("ruff", "check", "."))
    for words in commands:
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
