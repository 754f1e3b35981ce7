"""The wheel, built from a copy of the sources: one top level, no folder forgotten, no data file left behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from labctl.software import FOLDERS

ROOT = Path(__file__).resolve().parents[3]
DATA = (".toml", ".j2", ".css", ".tcss", ".urdf", ".typed", ".html", ".js", ".c", ".h")


def packaging() -> dict[str, str]:
    """Package name -> folder on disk, from pyproject.toml."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    return {package: _folder(package, table["package-dir"]) for package in table["packages"]}


def _folder(package: str, mapping: dict[str, str]) -> str:
    """Where setuptools looks: the longest mapped prefix, the rest as folders below it."""
    parts = package.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in mapping:
            return "/".join([mapping[".".join(parts[:n])], *parts[n:]])
    return "/".join(parts)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in a fresh wheel. A copy is built, as a stale build/ in the tree would hide a missing file."""
    copy = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, copy / name)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(copy / "out"), str(copy)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = (copy / "out").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_the_wheel_s_top_level_is_labctl_alone(wheel: list[str]):
    assert {name.split("/")[0] for name in wheel if ".dist-info/" not in name} == {"labctl"}


def test_every_module_and_data_file_on_disk_is_in_the_wheel(wheel: list[str]):
    mapped = {folder: ("" if folder == "labctl" else "labctl/") for folder in FOLDERS}
    wanted = {
        mapped[folder] + str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", *DATA) or path.name == "py.typed"
    }
    assert wanted - set(wheel) == set()


def test_no_test_and_no_machine_file_is_in_the_wheel(wheel: list[str]):
    allowed = (".py", *DATA)
    assert [name for name in wheel if ".dist-info/" not in name and not name.endswith(allowed)] == []
    assert [name for name in wheel if "tests/" in name] == []


def test_the_licence_and_the_console_script_are_in_the_wheel(wheel: list[str]):
    inside = [name.split(".dist-info/")[1] for name in wheel if ".dist-info/" in name]
    assert {"licenses/LICENSE", "entry_points.txt"} <= set(inside)


def test_every_folder_with_an_init_file_is_a_listed_package():
    on_disk = {
        str(path.parent.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py")
    }
    assert on_disk == set(packaging().values())


def test_every_folder_with_modules_has_an_init_file():
    folders = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
