"""What software this is: versions, git commit, a digest of labctl's own files, interpreter. Collected once a process.

May not: name a policy or anything that depends on an arm of the experiment; those pins are sealed per episode. Of
packages that register drivers all that are installed are named, whichever of them a trial uses.
"""

from __future__ import annotations

import hashlib
import importlib
import platform
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from labctl.messages.body_parts import Commit, Pins
from labctl.version import git, version

BENEATH = ("SQLAlchemy", "pydantic")
"""What labctl's own requirements bring, and records and configuration rest on."""
FOLDERS = ("labctl", "drivers", "analysis", "ui", "fixtures", "protocols", "hw_configs")
DEVELOPING = frozenset({"docs", "lint", "release", "test"})
"""Extras of those who work on labctl, which no run loads."""
_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")


@cache
def collect_pins() -> Pins:
    """labctl's version, the git commit of its source tree with a dirty flag (None when installed from a wheel), a
    digest of its files, the interpreter, and packages: what labctl requires, extras included, as far as it is
    installed, and what registers drivers; beneath them, what these bring in turn.
    """
    packages = _required() | _of_drivers()
    return {**_own(), "packages": packages, "beneath": _beneath(packages)}


@cache
def _own() -> Pins:
    return {
        "labctl": version(),
        "git": _git(),
        "code": code_digest(Path(__file__).resolve().parent),
        "python": platform.python_version(),
        "packages": {},
    }


def in_words(pins: Pins) -> str:
    """A version of labctl in a line: its number, commit and code."""
    commit = pins["git"]
    text = f"labctl {pins['labctl']}"
    if commit is not None:
        text += f", commit {commit['commit'][:12]}{' with local changes' if commit['dirty'] else ''}"
    return text + (f", code {pins['code'][:12]}" if "code" in pins else "")


def analysed_by() -> str:
    """The labctl that runs, as every result says it: in JSON, in a report, in Python."""
    return in_words(_own())


def code_digest(package: Path) -> str:
    """SHA-256 over the names and bytes of labctl's files: its modules and what they read beside them (the kernel's C,
    templates, styles, robots' shapes, cards). The same for a source tree, in which its wings lie beside `package`, and
    for an installed package, in which they lie inside. Compiled bytecode and hidden files are not of it.
    """
    wings = {name: package / name if (package / name).is_dir() else package.parent / name for name in FOLDERS[1:]}
    files = [("labctl", name, path) for name, path in _files(package) if name.parts[0] not in wings]
    files += [(wing, name, path) for wing, folder in wings.items() for name, path in _files(folder)]
    found = hashlib.sha256()
    for wing, name, path in sorted(files):
        found.update(f"{wing}/{name.as_posix()}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def of_the_lab(lab: Path | None) -> Pins | None:
    """The same with the digest of what a lab has written for itself. None for a lab that has nothing."""
    modules = None if lab is None else modules_of(lab)
    return None if modules is None else {**collect_pins(), "modules": modules}


def modules_of(lab: Path) -> str | None:
    """A digest of what a lab has written for itself, whichever arm or device it is for: modules and packages beside its
    lab.toml. None for a lab that has none of them.
    """
    own = [path for path in lab.glob("*.py") if path.is_file()]
    for package in lab.glob("*/__init__.py"):
        own += [package.parent / name for name, path in _files(package.parent) if path.suffix == ".py"]
    found = hashlib.sha256()
    for path in sorted(own):
        found.update(f"{path.relative_to(lab).as_posix()}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest() if own else None


def _files(folder: Path) -> list[tuple[Path, Path]]:
    """Every file below a folder: its name from there, and its path."""
    found = [(path.relative_to(folder), path) for path in folder.rglob("*") if path.is_file()]
    return [one for one in found if not any(part == "__pycache__" or part[0] == "." for part in one[0].parts)]


def _required() -> dict[str, str]:
    """Name and version of what labctl requires, with all of its extras, as far as it is installed."""
    lines = metadata.requires("labctl") or []
    names = {found[1] for line in lines if (found := _NAME.match(line)) and found[1] != "labctl"}
    return {name: version for name in sorted({*names, *BENEATH}, key=str.lower) if (version := _version(name))}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _beneath(packages: Mapping[str, str]) -> dict[str, str]:
    """Name and version of what labctl's packages, and those that register drivers, require in turn, as far as it is
    installed and not among them. What is asked for on other systems or Pythons is named too, if it is here.
    """
    known = {_plain(name) for name in packages} | {"labctl"}
    found: dict[str, str] = {}
    todo = [("labctl", extra) for extra in ("", *_extras())] + [(name, "") for name in _of_drivers()]
    seen: set[tuple[str, str]] = set()
    while todo:
        name, extra = todo.pop()
        if (_plain(name), extra) in seen:
            continue
        seen.add((_plain(name), extra))
        try:
            there = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if _plain(name) not in known:
            found[_plain(name)] = there.version
        for line in there.requires or ():
            wanted, asked = _EXTRA.findall(line), _NAME.match(line)
            if asked is not None and (extra in wanted or not wanted):
                todo += [(asked[1], one.strip()) for one in ("", *(asked[2] or "").split(","))]
    return dict(sorted(found.items()))


def _extras() -> list[str]:
    """labctl's extras but those of its developers."""
    try:
        named = metadata.metadata("labctl").get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []
    return [extra for extra in named if extra not in DEVELOPING]


def _plain(name: str) -> str:
    """A name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _of_drivers() -> dict[str, str]:
    """Name and version of each distribution that registers a driver."""
    found = importlib.import_module("labctl.drivers").registered()
    return {one.distribution: one.version for one in found}


def _git() -> Commit | None:
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        commit = git(root, "rev-parse", "HEAD")
        # A driver that was added and not committed moves the robot too; a file elsewhere does not.
        dirty = bool(git(root, "status", "--porcelain", "--untracked-files=all", "--", *FOLDERS, "pyproject.toml"))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": dirty}
