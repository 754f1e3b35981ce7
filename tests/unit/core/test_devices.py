"""A driver that cannot be loaded is one clear line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from labctl.drivers import BY_NAME, EMULATORS

from labctl.devices import known_drivers, load
from labctl.errors import InputError


def test_a_library_that_the_system_lacks_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a wheel expects a shared object that no package of the system brought."""
    (tmp_path / "rig").mkdir()
    (tmp_path / "rig" / "__init__.py").write_text("")
    says = "libusb-1.0.so.0: cannot open shared object file"
    (tmp_path / "rig" / "usb_arm.py").write_text(f"raise ImportError({says!r})")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as caught:
        load("rig.usb_arm:build", {}, where="cell.toml:3")
    assert str(caught.value) == f"cell.toml:3: driver 'rig.usb_arm:build' cannot load its library: {says}"


ROOT = Path(__file__).resolve().parents[3]
# As cell and protocol files have named them since the first; a name may come, none may go.
NAMES = (
    *(
        "emulated",
        "faults",
        "franka",
        "franka_hand",
        "opencv_camera",
        "policy_callable",
        "policy_gr00t",
        "policy_openpi",
    ),
    *("policy_roboarena", "realsense", "replay", "robotiq_serial", "robotiq_socket", "sim_camera", "sim_fr3"),
    *("sim_operator", "sim_person", "sim_policy", "sim_ur5", "teleop", "teleop_gamepad", "teleop_gello"),
    *("teleop_keyboard", "teleop_spacemouse", "ur5"),
)


def has_build(path: Path) -> bool:
    """Whether a module defines `build` itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "build" for node in tree.body)


def test_every_name_that_a_cell_file_may_have_is_a_module_with_a_build() -> None:
    assert set(NAMES) <= set(known_drivers())
    for module in (*BY_NAME.values(), *EMULATORS.values()):
        path = ROOT / (module.removeprefix("labctl.").replace(".", "/") + ".py")
        assert has_build(path), module


def test_every_driver_on_disk_has_a_name() -> None:
    built = {path for path in (ROOT / "drivers").rglob("*.py") if has_build(path)}
    named = {m.removeprefix("labctl.").replace(".", "/") + ".py" for m in (*BY_NAME.values(), *EMULATORS.values())}
    assert {str(path.relative_to(ROOT)) for path in built} - named == set()


def test_an_unknown_name_is_one_line_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"cell.toml:3: no driver named 'frnaka'; known drivers: emulated, faults, fran"
    ):
        load("frnaka", {}, where="cell.toml:3")
