"""A wrong option of any driver is refused where a campaign is opened: one line, at its place in the file, and nothing
is made. No vendor's library is loaded for it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.policies.cards import card_toml

from labctl import cli, devices
from labctl.config.options import CameraOptions, Options, schema_of
from labctl.drivers import BY_NAME, OPTIONS

ROOT = Path(__file__).resolve().parents[3]
HOST = {"host": "127.0.0.9"}
CARD = {"card": "card.toml", "endpoint": "ws://127.0.0.1:1"}
# The options that a driver cannot do without.
NEEDED: dict[str, dict[str, Any]] = {
    "emulated": {"driver": "franka", "driver_options": HOST},
    "faults": {"driver": "sim_fr3", "verb": "observe", "fault": "raise"},
    "franka": HOST,
    "opencv_camera": {"source": 0},
    "policy_callable": {"card": "card.toml", "function": "math:floor"},
    "policy_gr00t": {"card": "card.toml", "endpoint": "tcp://127.0.0.1:1"},
    "policy_openpi": CARD,
    "policy_roboarena": CARD,
    "replay": {"file": "recording.npz"},
    "robotiq_serial": {"port": "/dev/ttyUSB0"},
    "teleop_gello": {"port": "/dev/ttyUSB0", "signs": [1.0] * 7, "offsets_rad": [0.0] * 7},
    "ur5": HOST,
}
GRIPPERS = ("franka_hand", "robotiq_serial", "robotiq_socket")
CAMERAS = ("opencv_camera", "realsense", "sim_camera")
PERSONS = ("sim_person", "teleop")
ARMS = ("policy_callable", "policy_gr00t", "policy_openpi", "policy_roboarena", "sim_person", "sim_policy", "teleop")
NOWHERE = ("sim_operator", "sim_operator_prompt")  # no table of a file holds options for it


def table_of(driver: str) -> type[Options]:
    found = devices.options_type(driver)
    assert found is not None and issubclass(found, Options)
    return found


def mistakes(driver: str) -> Iterator[tuple[str, str, Any, str]]:
    """Sort, option, its wrong value, and what the line says of it."""
    yield "unknown", "colour_of_case", 1, "'colour_of_case'"
    of_table = CameraOptions.OF_TABLE if driver in CAMERAS else ()
    typed = ranged = False
    for name, schema in schema_of(table_of(driver)).items():
        if name in ("card", *of_table):
            continue
        parts = schema.get("anyOf", [schema])
        if not typed:
            typed = True
            yield "type", name, 3 if any(part.get("type") == "object" for part in parts) else {"x": 1}, name
        for part in parts:
            if not ranged and ({"minimum", "exclusiveMinimum", "enum"} & set(part)):
                ranged = True
                value = "nothing of the kind" if "enum" in part else part.get("minimum", 0) - 1
                yield "range", name, value, name


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def written(lab: Path, driver: str, options: Mapping[str, Any]) -> tuple[str, int]:
    """Write the options into the lab's cell or protocol; the file and the line of the last option."""
    cell, protocol = lab / "cells" / "sim_fr3.toml", lab / "protocols" / "first.toml"
    if driver in ARMS:
        dialect = driver.removeprefix("policy_") if driver.startswith("policy_") else "openpi"
        (lab / "protocols" / "card.toml").write_text(card_toml(dialect))
        kept = protocol.read_text()
        person, one, other = (kept.index(f'[[arm]]\nname = "{name}"') for name in ("human", "policy-a", "policy-b"))
        head, name, kind = kept[:other], "tried", "policy"
        if driver in PERSONS:
            head, name, kind = kept[:person] + kept[one:other], "human", "human"
        rows = ["[[arm]]", f'name = "{name}"', f'kind = "{kind}"', f'controller = "{driver}"', "[arm.options]"]
        path, text = protocol, head + "\n".join(rows)
    elif driver in CAMERAS:
        text = cell.read_text()
        rows = ["[[camera]]", 'name = "tried"', f'driver = "{driver}"', "width = 64", "height = 48", "rate_hz = 5.0"]
        path, text = cell, text.rstrip() + "\n" + "\n".join([*rows, "[camera.options]"])
    elif driver.startswith("teleop_"):
        rows = ["[teleop]", f'device = "{driver.removeprefix("teleop_")}"', "[teleop.options]"]
        path, text = cell, cell.read_text().rstrip() + "\n" + "\n".join(rows)
    else:
        robot = "franka" if driver in GRIPPERS else driver
        text = cell.read_text().replace('driver = "sim_fr3"', f'driver = "{robot}"').rstrip()
        rows = ["[robot.options]"]
        if driver in GRIPPERS:
            rows += [f"{key} = {toml(value)}" for key, value in HOST.items()]
            rows += ["[robot.options.gripper]", f'driver = "{driver}"']
        path, text = cell, text + "\n" + "\n".join(rows)
    text += "".join(f"\n{key} = {toml(value)}" for key, value in options.items()) + "\n"
    path.write_text(text)
    return path.name, len(text.splitlines())


def opened(lab: Path) -> tuple[int, str]:
    err = io.StringIO()
    command = ["open", "protocols/first.toml", "--cell", "cells/sim_fr3.toml"]
    with contextlib.chdir(lab), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        code = cli.call(command)
    return code, err.getvalue()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.call(["new", str(tmp_path / "lab")]) == 0
    return tmp_path / "lab"


TRIED = [
    pytest.param(driver, *case, id=f"{driver}-{case[0]}", marks=pytest.mark.thorough if case[0] == "type" else ())
    for driver in BY_NAME
    if driver not in NOWHERE
    for case in mistakes(driver)
]


@pytest.mark.parametrize(("driver", "sort", "name", "value", "said"), TRIED)
def test_a_wrong_option_is_refused_at_its_line_when_a_campaign_is_opened(
    lab: Path, driver: str, sort: str, name: str, value: Any, said: str
):
    options = {**{key: given for key, given in NEEDED.get(driver, {}).items() if key != name}, name: value}
    file, line = written(lab, driver, options)
    code, err = opened(lab)
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("error: ") and f"{file}:{line}: {driver}" in err and said in err, err
    assert sort != "unknown" or "known options: " in err or "has no options" in err, err
    assert list((lab / "campaigns").iterdir()) == []


@pytest.mark.parametrize("driver", [name for name in BY_NAME if name in NEEDED])
def test_an_option_that_is_missing_is_named_with_what_it_may_be(lab: Path, driver: str):
    if driver in ARMS:
        options = {"card": "card.toml"}
    else:
        options = {}
    written(lab, driver, options)
    code, err = opened(lab)
    one_of_two = driver == "opencv_camera"
    wanted = "opencv_camera: give one of source and source_env" if one_of_two else f"{driver} needs the option"
    assert code == 2 and wanted in err, err


def test_a_wrong_option_inside_a_wrapped_driver_is_refused_at_its_line(lab: Path):
    file, line = written(lab, "emulated", {"driver": "ur5", "driver_options": {**HOST, "gain": 5.0}})
    code, err = opened(lab)
    assert code == 2 and f"{file}:{line}: ur5: gain must be a number from 100 to 2000, found 5.0" in err, err


def test_a_gripper_that_nobody_knows_is_refused(lab: Path):
    written(lab, "franka", {**HOST, "gripper": {"driver": "robotic_serial"}})
    code, err = opened(lab)
    assert code == 2 and "no driver named 'robotic_serial'" in err, err


def test_a_cameras_own_size_is_refused_at_its_table(lab: Path):
    written(lab, "opencv_camera", {"source": 0})
    cell = lab / "cells" / "sim_fr3.toml"
    cell.write_text(cell.read_text().replace("width = 64", "width = 64000"))
    line = cell.read_text().splitlines().index("width = 64000") + 1
    code, err = opened(lab)
    assert code == 2 and f"sim_fr3.toml:{line}: opencv_camera: width must be" in err, err


def test_doctor_finds_a_wrong_option_with_its_line(lab: Path):
    file, line = written(lab, "franka", {**HOST, "servo": "torque"})
    out = io.StringIO()
    with contextlib.chdir(lab), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        cli.call(["doctor", "cells/sim_fr3.toml"])
    assert f'{file}:{line}: franka: servo must be one of "velocity", "cartesian"' in out.getvalue()


def test_what_may_be_optional_is_known_without_any_vendors_library():
    vendors = "franky rtde_control rtde_receive dashboard_client pymodbus pyrealsense2 cv2 hid pygame dynamixel_sdk"
    code = (
        "import sys\nfrom labctl.devices import options_type\nfrom labctl.drivers import BY_NAME\n"
        "assert all(options_type(name) for name in BY_NAME)\n"
        f"print([name for name in {vendors.split()!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("driver", BY_NAME)
def test_what_a_driver_declares_is_what_its_build_takes(driver: str):
    """Read from the text: not every library is everywhere."""
    module, _, name = BY_NAME[driver].partition(":")
    path = ROOT / (module.removeprefix("labctl.").replace(".", "/") + ".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    build = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == (name or "build"))
    annotation = build.args.args[0].annotation
    assert isinstance(annotation, ast.Name) and annotation.id == OPTIONS[driver].partition(":")[2]


def test_every_option_has_a_line_of_help():
    missing = [
        f"{driver}.{name}"
        for driver in OPTIONS
        for name, s in schema_of(table_of(driver)).items()
        if not s.get("description")
    ]
    assert missing == []
