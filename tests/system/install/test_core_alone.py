"""`pip install labctl` reads and analyses; what a verb lacks beyond that it says in one line, with the extra."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.cli import VERBS

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).resolve().parents[3]
OLD = ROOT / "tests" / "campaigns" / "at_88dea84"

# What is typed in a folder with a lab and its operations table -> the extra that is named; "" where the core is enough.
TYPED: dict[str, str] = {
    "demo": "lab",
    "new other": "",
    "schema protocol": "",
    "doctor lab/cells/c.toml": "lab",
    "emulate fr3 --help": "",
    "teleop --cell lab/cells/c.toml": "",
    "people code --help": "",
    "plan lab/protocols/p.toml": "",
    "power --rates 0.7,0.9": "",
    "queue --lab lab": "",
    "submit key k.pem --who a --contact b": "web",
    "open lab/protocols/p.toml --cell lab/cells/c.toml --lab lab": "lab",
    "extend old lab/protocols/p.toml --cell lab/cells/c.toml --lab lab": "",
    "practice --help": "",
    "qualify list --lab lab": "",
    "joint status none --lab lab": "",
    "run old --lab lab --headless": "",
    "stop old --lab lab": "",
    "console old --lab lab": "",
    "status old --lab lab": "",
    "episodes old --lab lab": "",
    "episodes old --lab lab --page page.html": "lab",
    "show e-5c32db9dea --lab lab --save e.rrd": "lab",
    "review old --lab lab --list": "",
    "scene old --lab lab": "lab",
    "look old --lab lab": "",
    "close old --lab lab": "",
    "freeze old --lab lab": "",
    "unblind old --lab lab": "",
    "verify old --lab lab": "lab",
    "stamp old --lab lab": "",
    "database list --url postgresql+psycopg://cell1@127.0.0.1:9/labctl": "postgres",
    "media list old --lab lab": "",
    "bugreport old --lab lab --out report.zip": "",
    "backup backups --lab lab": "",
    "backup backups --check": "",
    "restore backups again": "lab",
    "lab move moved --lab lab": "lab",
    "export old --lab lab --to table --out table.csv": "",
    "export old --lab lab --to mcap --out out": "lab",
    "import csv operations.csv --out episodes.csv": "",
    "report operations.csv --out report": "report",
    "report old --lab lab --out report": "lab",
    "publish old --lab lab --licence CC0-1.0 --out published": "lab",
    "site published --out site": "",
    "static old --lab lab --planner x": "",
    "analyze operations.csv --reference human --boot 99 --perm 99": "",
    "experiment --help": "",
    "rates counts.csv --by arm": "",
    "compare 17/20 14/20": "",
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copytree(OLD / "lab", tmp_path / "lab")
    shutil.copy(OLD / "expected" / "open.csv", tmp_path / "operations.csv")
    (tmp_path / "counts.csv").write_text("arm,successes,trials\na,3,4\n")
    for path in (tmp_path / "lab").rglob("*"):  # git keeps no such modes
        path.chmod(path.stat().st_mode & 0o700)
    return tmp_path


def typed(here: Path, extras: str, line: str) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command in an installation with these extras alone."""
    script = ROOT / "tests" / "support" / "install" / "core_alone.py"
    command = [sys.executable, "-P", str(script), extras, *line.split()]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("line", "extra"), TYPED.items(), ids=TYPED)
def test_a_verb_answers_or_says_in_one_line_which_extra_it_lacks(here: Path, line: str, extra: str) -> None:
    before = {path for path in here.rglob("*") if "lab" in path.parts}
    code, out, error = typed(here, "-", line)
    named = set(re.findall(r"labctl\[(\w+)\]", out + error if line.startswith("doctor") else error))
    assert "Traceback" not in error and "bug in labctl" not in error
    assert (extra in named and code != 0) if extra else not named, error
    if extra and not line.startswith("doctor"):
        assert named == {extra} and len(error.splitlines()) == 1
        assert {path for path in here.rglob("*") if "lab" in path.parts} == before, "nothing is half written"


def test_every_verb_was_tried() -> None:
    assert {line.split()[0] for line in TYPED} == {*VERBS}


def test_the_extra_that_a_table_s_report_names_is_enough_for_it(here: Path) -> None:
    code, _, error = typed(here, "report", "report operations.csv --out report --boot 99 --perm 99")
    assert code == 0, error
    assert (here / "report" / "report.html").is_file()
