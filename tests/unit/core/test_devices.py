"""A driver that cannot be loaded is one clear line."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from support.machine.packages import install

from labctl import drivers
from labctl.devices import load
from labctl.drivers import BY_NAME, EMULATORS
from labctl.errors import InputError
from labctl.software import collect_pins


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
    *(
        "sim_operator",
        "sim_operator_prompt",
        "sim_person",
        "sim_policy",
        "sim_ur5",
        "teleop",
        "teleop_gamepad",
        "teleop_gello",
    ),
    *("teleop_keyboard", "teleop_spacemouse", "ur5"),
)


def defines(path: Path, function: str = "build") -> bool:
    """Whether a module defines a function itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body)


def path_of(module: str) -> Path:
    return ROOT / (module.removeprefix("labctl.").replace(".", "/") + ".py")


def test_every_name_that_a_cell_file_may_have_is_a_function_of_a_module() -> None:
    assert set(NAMES) <= set(drivers.known())
    for place in BY_NAME.values():
        module, _, name = place.partition(":")
        assert defines(path_of(module), name or "build"), place
    for place in EMULATORS.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name or "build")), place


def test_every_driver_on_disk_has_a_name() -> None:
    built = {path for path in (ROOT / "drivers").rglob("*.py") if defines(path)}
    assert built - {path_of(place) for place in (*BY_NAME.values(), *EMULATORS.values())} == set()


def test_an_unknown_name_is_one_line_with_the_known_ones() -> None:
    with pytest.raises(
        InputError,
        match=r"cell.toml:3: no driver named 'frnaka'; did you mean 'franka'\?; known drivers: emulated, fa",
    ):
        load("frnaka", {}, where="cell.toml:3")
    for name in (".arm", "..", "no_such.arm:build"):
        with pytest.raises(InputError, match=r"no driver named .*: there is no module '[no_such.arm]+' here; install"):
            load(name, {})


ARM = "def build(options, **given): return ('arm', dict(options), given)\ndef other(options): return 'other'\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path to install packages in. What was registered before and after is read anew."""
    monkeypatch.syspath_prepend(tmp_path)
    drivers.registered.cache_clear()
    yield tmp_path
    drivers.registered.cache_clear()


def test_a_package_registers_its_driver_by_an_entry_point(path: Path) -> None:
    install(path, "lab-arms", {"arms_a/__init__.py": ARM}, {"our_arm": "arms_a", "our_other": "arms_a:other"})
    assert load("our_arm", {"speed": 2}, fixture=3) == ("arm", {"speed": 2}, {"fixture": 3})
    assert load("our_other", {}) == load("our_arm:other", {}) == "other"


def test_an_unknown_name_lists_those_of_packages_too_and_how_to_add_one(path: Path) -> None:
    install(path, "lab-arms", {"arms_b.py": ARM}, {"our_arm": "arms_b"})
    with pytest.raises(
        InputError, match=r"opencv_camera, our_arm, pair, policy_.* in the group 'labctl.drivers'"
    ) as caught:
        load("their_arm", {})
    assert "\n" not in str(caught.value)


def test_a_name_that_labctl_has_too_is_refused_naming_both(path: Path) -> None:
    install(path, "lab-arms", {"arms_c.py": ARM}, {"sim_fr3": "arms_c", "our_arm": "arms_c"})
    both = r"two drivers are named 'sim_fr3', of labctl \(labctl.drivers.sim.robot:fr3\) and of lab-arms 1.0 \(arms_c\)"
    with pytest.raises(InputError, match=both):
        load("our_arm", {}, where="cell.toml:3")


def test_a_name_that_two_packages_have_is_refused_naming_both(path: Path) -> None:
    install(path, "lab-arms", {"arms_d.py": ARM}, {"our_arm": "arms_d"})
    install(path, "more-arms", {"arms_e.py": ARM}, {"our_arm": "arms_e"}, version="2.1")
    with pytest.raises(InputError, match=r"of lab-arms 1.0 \(arms_d\) and of more-arms 2.1 \(arms_e\); uninstall"):
        load("our_arm", {})


def test_a_registered_module_that_is_not_there_names_its_package(path: Path) -> None:
    install(path, "lab-arms", {}, {"our_arm": "arms_gone"})
    with pytest.raises(InputError, match=r"driver 'our_arm' of lab-arms 1.0 .* there is no module 'arms_gone'"):
        load("our_arm", {})


def test_what_a_package_s_driver_lacks_is_not_blamed_on_an_extra_of_labctl(path: Path) -> None:
    install(path, "lab-arms", {"arms_f.py": "import vendors_library_f"}, {"our_arm": "arms_f"})
    with pytest.raises(InputError, match="driver 'our_arm' needs the module 'vendors_library_f': install it"):
        load("our_arm", {})


def test_labctl_s_own_names_are_found_without_reading_the_registry_and_others_by_reading_it_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(path, "lab-arms", {"arms_g.py": ARM}, {"our_arm": "arms_g"})
    reads = []
    whole = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda **asked: reads.append(asked) or whole(**asked))
    assert drivers.find("sim_fr3") == "labctl.drivers.sim.robot:fr3" and reads == []
    load("our_arm", {})
    load("our_arm", {})
    assert reads == [{"group": "labctl.drivers"}]


def test_the_packages_that_register_drivers_are_among_a_run_s_pins(path: Path) -> None:
    install(path, "lab-arms", {"arms_h.py": ARM}, {"our_arm": "arms_h"}, version="0.3")
    collect_pins.cache_clear()
    try:
        assert collect_pins()["packages"]["lab-arms"] == "0.3"
    finally:
        collect_pins.cache_clear()
