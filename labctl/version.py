"""Which version of labctl this is: of an installation what was built, of a checkout what its tags say now.

May not: need git, a tag or setuptools-scm; without them the version that was installed is said. For a checkout it says
what setuptools-scm would (tests/unit/test_version.py): v0.3.0 is 0.3.0, five commits later 0.3.1.dev5+g<commit>.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

UNKNOWN = "0.1.dev0"
NODE = 9
"""Figures of a commit that setuptools-scm writes."""
_DESCRIBED = re.compile(r"^v?(\d+(?:\.\d+)*)-(\d+)-g([0-9a-f]+)(-dirty)?$")


@cache
def version() -> str:
    """PEP 440. Asked of git at most once a process."""
    return of_checkout(Path(__file__).resolve().parents[1]) or _installed()


def of_checkout(root: Path) -> str | None:
    """The version of a git checkout of labctl; None where there is none, or no git to ask."""
    if not (root / ".git").exists():
        return None
    try:
        try:
            described = git(root, "describe", "--dirty", "--tags", "--long", "--abbrev=40", "--match", "*[0-9]*")
        except subprocess.CalledProcessError:  # no tag: setuptools-scm counts from a version 0.0
            commit, count = git(root, "rev-parse", "HEAD"), git(root, "rev-list", "--count", "HEAD")
            return f"0.1.dev{count}+g{commit[:NODE]}"
    except (OSError, subprocess.SubprocessError):
        return None
    found = _DESCRIBED.match(described)
    if found is None:
        return None
    number, distance, commit, dirty = found[1], int(found[2]), found[3], found[4]
    if distance == 0 and not dirty:
        return number
    *head, last = number.split(".")
    return f"{'.'.join([*head, str(int(last) + 1)])}.dev{distance}+g{commit[:NODE]}"


def _installed() -> str:
    try:
        return metadata.version("labctl")
    except metadata.PackageNotFoundError:
        return UNKNOWN


def git(root: Path, *words: str) -> str:
    """What git answers of a checkout. Raises OSError, subprocess.SubprocessError."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
