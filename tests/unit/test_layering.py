"""The direction of imports and the shape of modules, read from the syntax trees of every module on disk.

May not: import what it judges. Every rule is first shown a planted offence, so none of them can be asleep.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("labctl", "drivers", "analysis", "ui", "fixtures", "protocols")
LONGEST = 400
BANNED_NAMES = {"utils", "util", "helpers", "types", "misc"}

PURE = set(
    [
        "model",
        "policy_card",
        "schema",
        "schema_cell",
        "toml_text",
        "looks",
        "design",
        "trial",
        "trial_table",
        "interlock",
        "recovery",
        "rollout",
        "presence",
        "scene_words",
        "problem",
        "projection",
        "detector",
        "reviewed",
        "devices",
        "clock",
        "errors",
        "events",
        "bus",
    ]
)
IMPURE_MODULES = ("os", "time", "random", "zmq", "sqlmodel", "sqlalchemy", "socket", "subprocess", "threading")
# Only the files named may import the library; a driver is one file, a gripper another.
VENDORS = {
    "franky": ("drivers/franka.py", "drivers/franka_hand.py"),
    "rtde_control": ("drivers/ur5.py",),
    "rtde_receive": ("drivers/ur5.py",),
    "rtde_io": ("drivers/ur5.py",),
    "dashboard_client": ("drivers/ur5.py",),
    "pymodbus": ("drivers/robotiq_serial.py",),
    "pyrealsense2": ("drivers/common/librealsense.py",),
    "libusb_package": ("drivers/common/librealsense.py",),
    "cv2": ("drivers/opencv_camera.py",),
    "skimage": ("labctl/scene_match.py",),
    "msgpack": ("drivers/common/policy_codec.py", "drivers/bridges/lerobot_openpi.py"),
    "websockets": ("drivers/common/policy_socket.py", "drivers/bridges/lerobot_openpi.py"),
    "mcap": ("labctl/export_mcap.py",),
    "hid": ("drivers/teleop_spacemouse.py",),
    "pygame": ("drivers/teleop_gamepad.py",),
    "dynamixel_sdk": ("drivers/teleop_gello.py",),
    "rerun": (
        "ui/rerun_episode.py",
        "ui/rerun_parts.py",
        "ui/rerun_blueprint.py",
        "ui/rerun_live.py",
        "ui/rerun_depth.py",
    ),
}
DRIVER_SEES = (*("labctl.devices", "labctl.clock", "labctl.errors", "labctl.scheduling"), "labctl.drivers.common")
OUTER = ("labctl.drivers", "labctl.analysis", "labctl.ui", "labctl.fixtures", "labctl.protocols")


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module a tree imports, anywhere in it; `from a import b` gives both `a` and `a.b`, as b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def layer(path: str, tree: ast.AST) -> list[str]:
    """Offences against design.md section 3 in one module, given its path relative to the root."""
    folder, stem = path.split("/")[0], Path(path).stem
    named = list(imports(tree))
    wrong = [f"relative import {name}" for name in named if name.startswith(".")]
    wrong += [f"{name}: say labctl.{name}" for name in named if name.split(".")[0] in FOLDERS[1:]]
    ours = [name for name in named if within(name, "labctl")]
    if folder == "labctl":
        wrong += [f"labctl imports {name}" for name in ours if any(within(name, outer) for outer in OUTER)]
    if folder == "labctl" and path.count("/") == 1 and stem in PURE:
        impure = IMPURE_MODULES if stem != "clock" else tuple(m for m in IMPURE_MODULES if m != "time")
        wrong += [f"the pure core imports {name}" for name in named if name.split(".")[0] in impure]
    if folder == "analysis":
        wrong += [
            f"analysis imports {name}" for name in ours if not within(name, "labctl.analysis") and name != "labctl"
        ]
    if folder == "drivers":
        sees = (*DRIVER_SEES, "labctl.drivers.emulate") if path.startswith("drivers/emulate/") else DRIVER_SEES
        seen = [name for name in ours if not any(within(name, allowed) for allowed in sees)]
        wrong += [f"a driver imports {name}" for name in seen if name not in ("labctl", "labctl.drivers")]
    if folder == "ui":
        closed = ("labctl.drivers", "labctl.journal", "labctl.ledger")
        wrong += [f"ui imports {name}" for name in ours if any(within(name, c) for c in closed)]
    if folder in ("fixtures", "protocols"):
        seen = [
            name for name in ours if not any(within(name, allowed) for allowed in ("labctl.model", "labctl.errors"))
        ]
        wrong += [f"{folder} imports {name}" for name in seen if name != "labctl"]
    return wrong


def clock(path: str, tree: ast.AST) -> list[str]:
    """Only clock.py reads time."""
    if path == "labctl/clock.py":
        return []
    return [f"reads time by {name}" for name in imports(tree) if name.split(".")[0] in ("time", "datetime")]


def vendor(path: str, tree: ast.AST) -> list[str]:
    """A vendor's library is imported in one file only."""
    found = [(name, VENDORS[name.split(".")[0]]) for name in imports(tree) if name.split(".")[0] in VENDORS]
    return [f"{name} belongs to {' and '.join(owners)} alone" for name, owners in found if path not in owners]


def seal(path: str, tree: ast.AST) -> list[str]:
    """Only ledger.py names the folder of the sealed schedule."""
    if path == "labctl/ledger.py":
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


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_keeps_to_the_house_rules(path: Path):
    assert all_offences(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) == []


PLANTED: list[tuple[str, str, str]] = [
    ("labctl/runner.py", "from labctl.drivers import sim_fr3", "labctl imports labctl.drivers"),
    ("labctl/runner.py", "from labctl import ui", "labctl imports labctl.ui"),
    ("labctl/cli/report.py", "def f():\n    import labctl.analysis.report", "labctl imports labctl.analysis"),
    ("labctl/trial.py", "import os", "pure core imports os"),
    ("labctl/model.py", "from sqlmodel import SQLModel", "pure core imports sqlmodel"),
    ("labctl/design.py", "import random", "pure core imports random"),
    ("labctl/runner.py", "from time import monotonic", "reads time"),
    ("analysis/report.py", "from labctl.errors import InputError", "analysis imports labctl.errors"),
    ("drivers/sim_fr3.py", "from labctl.journal import Journal", "a driver imports labctl.journal"),
    ("drivers/sim_fr3.py", "from labctl.drivers.sim_camera import f", "a driver imports labctl.drivers.sim_camera"),
    ("drivers/sim_fr3.py", "from labctl import bus", "a driver imports labctl.bus"),
    ("ui/console.py", "from labctl.journal import Journal", "ui imports labctl.journal"),
    ("ui/console.py", "from labctl.drivers import common", "ui imports labctl.drivers"),
    ("fixtures/loading.py", "from labctl.runner import Runner", "fixtures imports labctl.runner"),
    ("labctl/runner.py", "import drivers.sim_fr3", "say labctl.drivers.sim_fr3"),
    ("labctl/runner.py", "from . import ledger", "relative import"),
    ("drivers/sim_fr3.py", "import franky", "franky belongs to drivers/franka.py and drivers/franka_hand.py alone"),
    ("drivers/sim_camera.py", "import cv2", "cv2 belongs to"),
    ("ui/overview.py", "import rerun as rr", "rerun belongs to ui/rerun_episode.py"),
    ("labctl/export.py", "path = folder / 'seal'", "names the seal folder"),
    ("labctl/export.py", "path = 'seal/schedule.json'", "names the seal folder"),
    ("labctl/export.py", "x = 1\n" * 401, "lines; the cap is 400"),
    ("labctl/utils.py", "x = 1", "a module named utils"),
    ("labctl/types.py", "x = 1", "a module named types"),
]


@pytest.mark.parametrize(("path", "source", "expected"), PLANTED, ids=[f"{p}-{e}" for p, _, e in PLANTED])
def test_a_planted_offence_is_named(path: str, source: str, expected: str):
    documented = f'"""A module. May not do much."""\n{source}\n'
    assert any(expected in found for found in all_offences(path, documented))


def test_a_missing_docstring_is_named():
    assert all_offences("labctl/runner.py", "x = 1\n") == ["no docstring"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("labctl/clock.py", "import time"),
        ("labctl/ledger.py", "path = 'seal'"),
        ("drivers/franka.py", "import franky\nfrom labctl.drivers.common import limits"),
        ("ui/rerun_episode.py", "import rerun"),
        ("analysis/report.py", "from labctl.analysis import table"),
        ("labctl/export.py", "text = 'sealed'"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str):
    assert all_offences(path, f'"""A module. May not do much."""\n{source}\n') == []


def test_the_rules_look_at_every_folder():
    seen = {path.relative_to(ROOT).parts[0] for path in modules()}
    assert seen == set(FOLDERS)


def test_rules_are_functions_of_text_alone():
    rules: list[Callable[..., list[str]]] = [layer, clock, vendor, seal, docstring]
    tree = ast.parse('"""Doc."""')
    assert all(rule("labctl/anything.py", tree) == [] for rule in rules)
