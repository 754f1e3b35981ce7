"""constraints.txt: exact versions by name alone, for everything that can be asked of pip here."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OF_DEVELOPERS = {"docs", "lint", "release", "test"}
LINE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+]*$")


def canonical(name: str) -> str:
    """A distribution's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonical(name): version for name, version in found}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for extra in project["optional-dependencies"].values() for line in extra]
    return {canonical(re.split(r"[\[<>=! ]", line)[0]) for line in lines} - {"labctl"}


def test_every_line_is_a_name_and_one_exact_version():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    assert [line for line in lines if not LINE.match(line)] == []
    assert lines == sorted(lines, key=str.lower)


def test_every_declared_dependency_is_pinned():
    assert declared() - set(pinned()) == set()


def test_what_the_core_and_the_tests_need_in_turn_is_pinned():
    open_, seen, missing = {"labctl"}, set(), set()
    while open_:
        name = open_.pop()
        seen.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # a robot client that is not installed here
        for need in needs:
            if "extra ==" in need or "sys_platform == " in need or "python_version <" in need:
                continue
            needed = canonical(re.split(r"[\[<>=!~;( ]", need)[0])
            if needed not in pinned() and _installed(needed):
                missing.add(needed)
            if needed not in seen:
                open_.add(needed)
    assert missing == set()


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def test_labctl_itself_is_not_pinned():
    assert "labctl" not in pinned()


def test_each_lower_bound_is_the_version_that_is_tried() -> None:
    """`av>=14` by av 14.0.0: constraints-lowest.txt holds what `make test-lowest` installs."""
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    tried = {canonical(name): version for name, _, version in (line.partition("==") for line in lines)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ours = [*project["dependencies"], *(line for name in {*extras} - OF_DEVELOPERS for line in extras[name])]
    wrong = []
    for line in (line for line in ours if not line.startswith("labctl[")):
        name, _, bound = line.partition(";")[0].strip().partition(">=")
        parts, found = bound.split("."), tried.get(canonical(name.partition("[")[0]), "").split(".")
        if found[: len(parts)] != parts and found != [*parts, *["0"] * (len(found) - len(parts))]:
            wrong.append(f"{line}, tried with {'.'.join(found) or 'nothing'}")
    assert wrong == []
    assert [line for line in lines if not line.startswith("#") and not LINE.match(line)] == []
