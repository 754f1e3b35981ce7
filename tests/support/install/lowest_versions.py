"""Installs the oldest versions that labctl admits beside the usual environment and runs the quick part of the tests.

`make test-lowest`. Exit code of pytest; 0 with a line on a Python that those versions have no wheels for.
May not: touch the environment that it is started from.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PYTHON = (3, 11)
# What goes through other people's libraries, and no process that runs by the clock.
TESTED = (
    *("api", "checks", "cli", "config", "drivers", "exports", "nodes", "pages", "publishing", "reporting"),
    *("scene", "store", "ui", "viewing"),
)
QUICK = "not thorough and not real_time and not privileged and not interop and not hardware and not benchmark"


def main(folder: Path) -> int:
    """The environment is kept in `folder`, and made anew where constraints-lowest.txt is newer."""
    if sys.version_info[:2] != PYTHON:
        print(f"lowest versions: left out, tried on Python {'.'.join(map(str, PYTHON))} alone")
        return 0
    python = folder / "bin" / "python"
    wanted, done = ROOT / "constraints-lowest.txt", folder / ".installed"
    if not done.exists() or done.stat().st_mtime < max(
        wanted.stat().st_mtime, (ROOT / "pyproject.toml").stat().st_mtime
    ):
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps"]
        subprocess.run([*pip, "-r", wanted], check=True)
        subprocess.run([*pip, "--no-build-isolation", "-e", ROOT], check=True)
        subprocess.run([python, "-m", "pip", "check"], check=True)
        done.touch()
    tests = [str(ROOT / "tests" / "unit" / name) for name in TESTED]
    workers = ["--tx", "2*popen", "--dist", "loadscope"]
    command = [python, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *workers, "-m", QUICK, *tests]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
