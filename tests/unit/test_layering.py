"""The direction of imports and the shape of modules, read from the syntax trees of every module on disk.

May not: import what it judges. Every rule is first shown a planted offence, so none of them can be asleep.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from harness.layers import MAY_IMPORT

from labctl.software import FOLDERS

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 400
MOST = 25  # Python files in a folder
TESTS, OF_TESTS = ROOT / "tests", ("support", "harness", "claims")
BANNED_NAMES = {"utils", "util", "helpers", "types", "misc"}

PURE = ("config", "core", "core.recorded")
PURE_AT_THE_ROOT = ("labctl/bus.py", "labctl/plain.py", "labctl/errors.py", "labctl/rotations.py", "labctl/streams.py")
# Of other people's modules what is pure may import these; they compute, and reach no file, clock, socket or process.
PURE_MODULES = (
    *("__future__", "collections", "dataclasses", "difflib", "enum", "hashlib", "hmac", "ipaddress", "itertools"),
    *("json", "math", "re", "tomllib", "typing"),
    *("numpy", "pydantic", "pydantic_core"),
)
PURE_BESIDES = {"labctl/errors.py": ("sys",)}  # which Python it is, for what can be installed on it
REACHES_OUT = ("open", "print", "input", "exec", "eval", "__import__")  # of what needs no import
OF_NUMPY = ("random", "load", "loadtxt", "save", "savez", "savez_compressed", "savetxt", "fromfile", "memmap")
SUITES = ("__init__", "camera", "controller", "driving", "gripper", "hand", "options", "robot", "sensor")
DATABASE = tuple(f"labctl/store/{name}.py" for name in ("database_backend", "journal", "traces"))
# Only the files named may import the library; a driver is one file, a gripper another.
VENDORS = {
    "franky": ("drivers/franka/robot.py", "drivers/franka/hand.py"),
    "rtde_control": ("drivers/ur/robot.py",),
    "rtde_receive": ("drivers/ur/robot.py",),
    "rtde_io": ("drivers/ur/robot.py",),
    "dashboard_client": ("drivers/ur/dashboard.py",),
    "pymodbus": ("drivers/robotiq/serial.py",),
    "serial": ("drivers/sensors/scale.py", "drivers/sensors/lines.py"),
    "pyrealsense2": ("drivers/realsense/librealsense.py",),
    "libusb_package": ("drivers/realsense/librealsense.py",),
    "cv2": ("drivers/opencv/camera.py",),
    # Where a database is asked, its errors become StorageError: `database_backend.storage_errors`.
    "sqlite3": ("labctl/store/database_backend.py", "labctl/store/published_files.py"),
    "sqlalchemy": DATABASE,
    "sqlmodel": DATABASE,
    "psycopg": ("labctl/store/server/connecting.py",),
    "skimage": ("labctl/scene/matching.py",),
    "msgpack": ("drivers/policy/codec.py", "drivers/bridges/lerobot_openpi.py"),
    "aiohttp": ("labctl/pages/server.py", "ui/console/web.py", "labctl/store/media/s3_store.py"),
    "fsspec": ("labctl/store/media/folder_store.py",),
    "s3fs": ("labctl/store/media/s3_store.py",),
    "botocore": ("labctl/store/media/s3_store.py",),
    "websockets": ("drivers/policy/websocket.py", "drivers/bridges/lerobot_openpi.py"),
    "mcap": ("labctl/exports/mcap.py",),
    "rosbags": ("labctl/exports/rosbag2.py",),
    "rfc3161_client": ("labctl/store/verifying/timestamps.py",),
    "cryptography": ("labctl/queue/request.py", "labctl/store/verifying/timestamps.py", "ui/console/web.py"),
    "hid": ("drivers/teleop/spacemouse.py",),
    "pygame": ("drivers/teleop/gamepad.py",),
    "dynamixel_sdk": ("drivers/teleop/gello.py",),
    "pytest": tuple(f"labctl/testing/{name}.py" for name in SUITES),
    "rerun": (
        "ui/rerun/episode.py",
        "ui/rerun/parts.py",
        "ui/rerun/robots.py",
        "ui/rerun/blueprint.py",
        "ui/rerun/live.py",
        "ui/rerun/depth.py",
    ),
}


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module a tree imports, anywhere in it; `from a import b` gives both `a` and `a.b`, as b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            if base.removeprefix("labctl.") not in MAY_IMPORT:
                yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def room_of(path: str) -> str:
    """The room that a file lies in: "core" for labctl/core/trial.py, "ui.console" for ui/console/app.py."""
    return ".".join(Path(path.removeprefix("labctl/")).parts[:-1])


def seen_from(here: str, name: str) -> bool:
    """Whether a module in the room `here` may import `name`, which is a module below labctl or a name in one."""
    parts = name.split(".")
    there = next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in MAY_IMPORT), "")
    if there == here or (there == "" and not (ROOT / "labctl" / f"{parts[0]}.py").exists()):
        return True  # the same room, or a name of labctl/__init__.py
    given = MAY_IMPORT[here]
    return (there != "" and there in given) or any(within(name, one) for one in given if one not in MAY_IMPORT)


def layer(path: str, tree: ast.AST) -> list[str]:
    """Offences against the order of the house in one module, given its path relative to the root."""
    here = room_of(path)
    if here not in MAY_IMPORT:
        return [f"the folder of {path} has no entry in MAY_IMPORT"]
    named = list(imports(tree))
    wrong = [f"relative import {name}" for name in named if name.startswith(".")]
    wrong += [f"{name}: say labctl.{name}" for name in named if name.split(".")[0] in FOLDERS[1:]]
    ours = [name.removeprefix("labctl.") for name in named if name.startswith("labctl.")]
    wrong += [f"{here or 'the root'} imports {name}" for name in ours if not seen_from(here, name)]
    if here in PURE or path in PURE_AT_THE_ROOT:
        pure = ("labctl", *PURE_MODULES, *PURE_BESIDES.get(path, ()))
        wrong += [f"the pure core imports {name}" for name in named if name.split(".")[0] not in pure]
        wrong += [f"the pure core calls {name}" for name in reaching(tree)]
    return wrong


def reaching(tree: ast.AST) -> Iterator[str]:
    """What a tree uses of the language and of numpy that leads out of it, or differs from run to run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REACHES_OUT:
            yield node.func.id
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "numpy") and node.attr in OF_NUMPY:
            yield f"numpy.{node.attr}"


def clock(path: str, tree: ast.AST) -> list[str]:
    """Only clock.py reads time; times.py says it in a zone, logs.py before each line."""
    if path in ("labctl/clock.py", "labctl/times.py", "labctl/logs.py"):
        return []
    return [f"reads time by {name}" for name in imports(tree) if name.split(".")[0] in ("time", "datetime")]


def vendor(path: str, tree: ast.AST) -> list[str]:
    """A vendor's library is imported in one file only."""
    found = [(name, VENDORS[name.split(".")[0]]) for name in imports(tree) if name.split(".")[0] in VENDORS]
    return [f"{name} belongs to {' and '.join(owners)} alone" for name, owners in found if path not in owners]


def seal(path: str, tree: ast.AST) -> list[str]:
    """Only ledger.py names the folder of the sealed schedule."""
    if path == "labctl/store/ledger.py":
        return []
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return ["names the seal folder" for text in texts if text == "seal" or text.startswith("seal/")]


def length(path: str, source: str) -> list[str]:
    lines = len(source.splitlines())
    return [f"{lines} lines; the cap is {LONGEST}"] if lines > LONGEST else []


def docstring(path: str, tree: ast.Module) -> list[str]:
    """The first line says what a module is for; an empty package marker is let off nothing."""
    return [] if ast.get_docstring(tree) else ["no docstring"]


def name_of(path: str) -> list[str]:
    stem = Path(path).stem
    return [f"a module named {stem}"] if stem in BANNED_NAMES or path == "labctl/protocols.py" else []


def all_offences(path: str, source: str) -> list[str]:
    """What is wrong with one module, each as one line."""
    tree = ast.parse(source)
    found = layer(path, tree) + clock(path, tree) + vendor(path, tree) + seal(path, tree)
    return found + length(path, source) + docstring(path, tree) + name_of(path)


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.thorough
def test_a_module_keeps_to_the_house_rules():
    named = ((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in modules())
    assert {path: found for path, source in named if (found := all_offences(path, source))} == {}


PLANTED: list[tuple[str, str, str]] = [
    ("labctl/runtime/runner.py", "from labctl.drivers.sim import fr3", "runtime imports drivers.sim"),
    ("labctl/runtime/runner.py", "from labctl import ui", "runtime imports ui"),
    ("labctl/store/journal.py", "def f():\n    import labctl.analysis.report.page", "store imports analysis.report"),
    ("labctl/core/trial.py", "import os", "pure core imports os"),
    ("labctl/core/trial.py", "from pathlib import Path", "pure core imports pathlib"),
    ("labctl/core/trial.py", "import secrets", "pure core imports secrets"),
    ("labctl/core/trial.py", "import sys", "pure core imports sys"),
    ("labctl/core/design.py", "text = open('seed').read()", "pure core calls open"),
    ("labctl/core/design.py", "import numpy as np\nx = np.random.default_rng()", "pure core calls numpy.random"),
    ("labctl/core/trial.py", "from labctl.realtime import kept", "core imports realtime"),
    ("labctl/config/conditions.py", "from sqlmodel import SQLModel", "pure core imports sqlmodel"),
    ("labctl/config/conditions.py", "from labctl.core import trial", "config imports core.trial"),
    ("labctl/core/design.py", "import random", "pure core imports random"),
    ("labctl/newly_made/thing.py", "x = 1", "has no entry in MAY_IMPORT"),
    ("labctl/runtime/runner.py", "from time import monotonic", "reads time"),
    ("labctl/store/journal.py", "from labctl.runtime.attach import Attachment", "store imports runtime.attach"),
    ("labctl/viewing/showing.py", "from labctl.runtime.runner import Runner", "viewing imports runtime.runner"),
    ("analysis/report/page.py", "from labctl.clock import SECOND", "analysis.report imports clock"),
    ("analysis/survival/ks.py", "from labctl.analysis.report import page", "analysis.survival imports analysis.report"),
    ("drivers/sim/robot.py", "from labctl.store.journal import Journal", "drivers.sim imports store.journal"),
    ("drivers/franka/robot.py", "from labctl.drivers.sim.camera import f", "drivers.franka imports drivers.sim.camera"),
    ("drivers/ur/robot.py", "from labctl.drivers.ur.emulator import ur5", "drivers.ur imports drivers.ur.emulator"),
    ("drivers/sim/robot.py", "from labctl import bus", "drivers.sim imports bus"),
    ("ui/console/app.py", "from labctl.store.journal import Journal", "ui.console imports store.journal"),
    ("ui/console/app.py", "from labctl.drivers import common", "ui.console imports drivers"),
    ("fixtures/loading.py", "from labctl.runtime.runner import Runner", "fixtures imports runtime.runner"),
    ("labctl/runtime/runner.py", "import drivers.sim_fr3", "say labctl.drivers.sim_fr3"),
    ("labctl/runtime/runner.py", "from . import ledger", "relative import"),
    (
        "drivers/sim/robot.py",
        "import franky",
        "franky belongs to drivers/franka/robot.py and drivers/franka/hand.py alone",
    ),
    ("drivers/sim/camera.py", "import cv2", "cv2 belongs to"),
    ("labctl/runtime/runner.py", "import pytest", "pytest belongs to"),
    ("labctl/cli/look.py", "import sqlite3", "sqlite3 belongs to"),
    ("labctl/store/verifying/verify.py", "from sqlalchemy import text", "sqlalchemy belongs to"),
    ("labctl/store/server/copying.py", "import psycopg", "psycopg belongs to"),
    ("labctl/pages/reviewing.py", "from aiohttp import web", "aiohttp belongs to"),
    (
        "labctl/pages/recorded_videos.py",
        "from labctl.runtime.review_writer import review",
        "pages imports runtime.review_writer",
    ),
    ("labctl/cli/demo.py", "from labctl.testing import robot", "cli imports testing"),
    ("ui/overview.py", "import rerun as rr", "rerun belongs to ui/rerun/episode.py"),
    ("labctl/reporting/operations_table.py", "path = folder / 'seal'", "names the seal folder"),
    ("labctl/reporting/operations_table.py", "path = 'seal/schedule.json'", "names the seal folder"),
    ("labctl/reporting/operations_table.py", "x = 1\n" * 401, "lines; the cap is 400"),
    ("labctl/utils.py", "x = 1", "a module named utils"),
    ("labctl/types.py", "x = 1", "a module named types"),
]


@pytest.mark.parametrize(("path", "source", "expected"), PLANTED, ids=[f"{p}-{e}" for p, _, e in PLANTED])
def test_a_planted_offence_is_named(path: str, source: str, expected: str):
    documented = f'"""A module. May not do much."""\n{source}\n'
    assert any(expected in found for found in all_offences(path, documented))


def test_a_missing_docstring_is_named():
    assert all_offences("labctl/runtime/runner.py", "x = 1\n") == ["no docstring"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("labctl/clock.py", "import time"),
        ("labctl/store/ledger.py", "path = 'seal'"),
        ("drivers/franka/robot.py", "import franky\nfrom labctl.drivers.common import limits"),
        ("ui/rerun/episode.py", "import rerun"),
        ("analysis/report/page.py", "from labctl.analysis import table"),
        ("analysis/report/page.py", "from labctl.errors import InputError"),
        ("labctl/reporting/operations_table.py", "text = 'sealed'"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str):
    assert all_offences(path, f'"""A module. May not do much."""\n{source}\n') == []


def circles(imported: Mapping[str, set[str]]) -> list[set[str]]:
    """The sets of modules that import each other in a loop, when they are loaded or when they are used."""
    reached: dict[str, set[str]] = {}
    for start in imported:
        seen, todo = set[str](), [start]
        while todo:
            new = imported.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        reached[start] = seen
    return [own for start in imported if (own := {o for o in reached[start] if start in reached.get(o, ())})]


def for_types_alone(tree: ast.AST) -> set[ast.AST]:
    """What stands under `if TYPE_CHECKING`."""
    guards = (n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    return {inner for guard in guards for inner in ast.walk(guard)}


@pytest.mark.thorough
def test_no_two_modules_import_each_other() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("labctl."): path for path in modules()}
    found: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = ast.parse(path.read_text("utf-8"))
        apart = for_types_alone(tree)
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) and n not in apart]
        found[name] = {one.removeprefix("labctl.") for n in nodes for one in imports(n)} & {*names} - {name}
    assert circles(found) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})[0] == {"a", "b", "c"}


def test_the_rules_look_at_every_folder():
    seen = {path.relative_to(ROOT).parts[0] for path in modules()}
    assert seen == set(FOLDERS)


def test_rules_are_functions_of_text_alone():
    rules: list[Callable[..., list[str]]] = [layer, clock, vendor, seal, docstring]
    tree = ast.parse('"""Doc."""')
    assert all(rule("labctl/anything.py", tree) == [] for rule in rules)


# -- folders, and what tests import of each other


def python_files() -> list[Path]:
    """Every Python file that is or would be committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).exists()]


TOP = {
    *(
        "labctl",
        "drivers",
        "fixtures",
        "protocols",
        "analysis",
        "ui",
        "tests",
        "hw_configs",
        "docs",
        ".ci",
        ".github",
        "changelog.d",
    ),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "CITATION.cff", "Makefile"),
    *("pyproject.toml", "constraints.txt", "constraints-lowest.txt", "mkdocs.yml", ".gitignore"),
}
"""What lies at the top: what somebody's script left there was committed once."""


def test_nothing_lies_at_the_top_but_what_belongs_there():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = {name.split("/")[0] for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert found <= TOP, f"not of the project: {sorted(found - TOP)}"


def too_full(files: list[Path]) -> dict[str, int]:
    """Folders that hold more than MOST of these files."""
    return {str(folder): n for folder, n in Counter(path.parent for path in files).items() if n > MOST}


def missing(source: str) -> Iterator[str]:
    """Modules of tests/ that a test imports by name, and that are not there."""
    for node in ast.walk(ast.parse(source)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            folder = TESTS / node.module.replace(".", "/")
            modules = [f"{node.module}.{alias.name}" for alias in node.names] if folder.is_dir() else [node.module]
        for module in modules:
            path = TESTS / module.replace(".", "/")
            if module.split(".")[0] in OF_TESTS and not (path.with_suffix(".py").exists() or path.is_dir()):
                yield module


def test_no_folder_holds_more_python_files_than_one_reads_at_a_glance() -> None:
    assert too_full([path.relative_to(ROOT) for path in python_files()]) == {}


@pytest.mark.thorough
def test_what_tests_import_of_each_other_is_there() -> None:
    wrong = {str(path): list(missing(path.read_text("utf-8"))) for path in python_files() if TESTS in path.parents}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_a_folder_too_full_and_a_module_that_has_moved_are_named() -> None:
    assert too_full([Path("full") / f"{n}.py" for n in range(MOST + 1)]) == {"full": MOST + 1}
    source = "from support.gone import x\nfrom support.runs import campaigns, gone\nimport harness.gone\nimport json\n"
    assert list(missing(source)) == ["support.gone", "support.runs.gone", "harness.gone"]
