"""What software an episode ran on: versions, git commit, interpreter. Collected once per run.

May not: name a policy or anything that depends on an arm of the experiment; those pins are sealed per episode. Of
packages that register drivers all that are installed are named, whichever of them a trial uses.
"""

from __future__ import annotations

import importlib
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

from labctl.messages.body_parts import Commit, Pins

PACKAGES = ("numpy", "scipy", "pyzmq", "sqlmodel", "SQLAlchemy", "av")


@cache
def collect_pins() -> Pins:
    """version of labctl, git commit of its source tree with a dirty flag (None when installed from a wheel),
    interpreter, packages (labctl's own, and those that register drivers).
    """
    return {
        "labctl": metadata.version("labctl"),
        "git": _git(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES} | _of_drivers(),
    }


def _of_drivers() -> dict[str, str]:
    """Name and version of each distribution that registers a driver."""
    found = importlib.import_module("labctl.drivers").registered()
    return {one.distribution: one.version for one in found}


def _git() -> Commit | None:
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = _ask(root, "rev-parse", "HEAD")
        dirty = bool(_ask(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": dirty}


def _ask(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
