"""Each page of docs/howto/ is a worked example: its files are written down as they stand in it, installed as a package
of someone else's, and its tests are run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.machine.packages import install

PAGES = Path(__file__).resolve().parents[3] / "docs" / "howto"
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+\.(?:py|toml))\n(.*?)^```$", re.M | re.S)
TESTED = {"robot.md": 17, "camera.md": 13, "policy.md": 6, "teleop.md": 4}  # the tests that each page's `pytest` runs
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


@pytest.mark.parametrize("name", TESTED)
def test_the_example_of_a_page_works_as_it_stands(name: str, tmp_path: Path) -> None:
    done = run(PAGES / name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{TESTED[name]} passed", done.stdout.splitlines()[-1]), done.stdout


def test_every_page_has_a_test() -> None:
    assert {path.name for path in PAGES.glob("*.md")} == {*TESTED, "README.md"}


@pytest.mark.parametrize(
    ("name", "change", "fails"),
    [
        ("camera.md", ("self.height, self.width, 3", "self.width, self.height, 3"), "test_frames_are_rgb_bytes"),
        (
            "robot.md",
            ("return SimArm(", "return type('Deaf', (SimArm,), {'stop': lambda self: None})("),
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
