"""Every package that labctl imports is declared, by the core or by the extra that `labctl.extras` names for it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from labctl.extras import BROUGHT_BY, extra_that_brings
from labctl.software import FOLDERS

ROOT = Path(__file__).resolve().parents[3]
# Imported in somebody else's environment, or by the type checker alone.
ELSEWHERE = {
    "_typeshed": "types alone",
    "lerobot": "drivers/bridges runs in LeRobot's environment",
    "torch": "the same",
    "pytest": "labctl.testing runs under the pytest of whoever tests a driver",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(lines: list[str]) -> set[str]:
    return {canonical(re.split(r"[\[<>=;! ]", line)[0]) for line in lines}


@cache
def imported() -> dict[str, Path]:
    """The first part of each module that is not Python's own or labctl's -> a file that imports it; names that are
    imported by their text too.
    """
    found: dict[str, Path] = {}
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for name in names_of(node):
                found.setdefault(name.partition(".")[0], path)
    return {name: path for name, path in found.items() if name not in {*sys.stdlib_module_names, "labctl"}}


def names_of(node: ast.AST) -> list[str]:
    match node:
        case ast.Import():
            return [one.name for one in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(module))]):
            return [module]
    return []


@cache
def installed() -> dict[str, list[str]]:
    return {module: [*names] for module, names in metadata.packages_distributions().items()}


def distributions(module: str) -> set[str]:
    return {canonical(name) for name in installed().get(module, [])}


@pytest.mark.thorough
def test_every_import_is_declared_by_the_core_or_by_the_extra_that_is_named_for_it() -> None:
    core, extras = declared(PROJECT["dependencies"]), PROJECT["optional-dependencies"]
    wrong = []
    for module, path in imported().items():
        extra = extra_that_brings(module)
        brings = declared(extras[extra]) if extra else core
        if module not in ELSEWHERE and distributions(module) and not distributions(module) & brings:
            wrong.append(
                f"{module} ({path.relative_to(ROOT)}): {extra or 'core'} does not declare {distributions(module)}"
            )
        if module not in ELSEWHERE and not distributions(module) and extra is None:
            wrong.append(f"{module} ({path.relative_to(ROOT)}): not installed here, and no extra is named for it")
    assert wrong == []


@pytest.mark.thorough
def test_what_the_core_declares_is_imported() -> None:
    used = {name for module in imported() for name in distributions(module)}
    assert declared(PROJECT["dependencies"]) - used == set()


def test_an_import_is_seen_wherever_it_stands() -> None:
    tree = ast.parse(
        "import a.b\ndef f():\n    from c import d\n    importlib.import_module('e.f')\n    from . import g"
    )
    assert [name for node in ast.walk(tree) for name in names_of(node)] == ["a.b", "c", "e.f"]


def test_every_extra_that_is_named_for_a_module_exists() -> None:
    assert {*BROUGHT_BY.values()} <= {*PROJECT["optional-dependencies"]}


def test_every_extra_of_a_device_brings_what_a_campaign_needs() -> None:
    """Who types `pip install 'labctl[ur]'` can run one."""
    devices = ("franka", "ur", "robotiq", "realsense", "cameras", "rerun", "policy", "teleop", "web", "scene", "all")
    for extra in devices:
        assert any(re.match(r"labctl\[.*\blab\b", line) for line in PROJECT["optional-dependencies"][extra]), extra


def test_all_is_every_extra_of_a_lab() -> None:
    (line,) = PROJECT["optional-dependencies"]["all"]
    named = set(line.removeprefix("labctl[").removesuffix("]").split(","))
    apart = {"all", "docs", "fast", "lint", "release", "test"}  # fast brings nothing any more
    assert named | {"report"} == {*PROJECT["optional-dependencies"]} - apart


def test_the_core_and_all_that_it_needs_are_below_300_mb() -> None:
    """Files as pip installed them, with their bytecode; numpy and scipy are three quarters of it."""
    size = {"labctl": sum(path.stat().st_size for folder in FOLDERS for path in (ROOT / folder).rglob("*.*"))}
    todo = declared(PROJECT["dependencies"])
    while todo:
        name = todo.pop()
        found = metadata.distribution(name)
        paths = [Path(str(found.locate_file(file))) for file in found.files or []]
        size[name] = sum(path.stat().st_size for path in paths if path.is_file())
        needs = [line for line in found.requires or [] if "extra ==" not in line and "python_version <" not in line]
        todo |= {name for name in declared(needs) - {*size} if is_installed(name)}
    assert {"numpy", "scipy", "pydantic", "sqlalchemy"} <= {*size}
    assert {"av", "textual", "matplotlib", "pillow", "numba"} & {*size} == set()
    assert sum(size.values()) < 300e6, {name: round(n / 1e6) for name, n in size.items() if n > 1e6}


def is_installed(name: str) -> bool:
    """colorama, of other systems, is not."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
