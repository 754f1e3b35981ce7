"""`labctl doctor CELL.toml` against an emulator: a healthy cell from each unhealthy one, in an operator's words."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.robots.cells import cell_named
from support.robots.emulators import NAMES, Emulator, address, leave_out_without_client
from support.runs.campaigns import cell_toml
from support.runs.live_campaign import wait_for

from labctl.checks.computer import Check
from labctl.checks.doctor import check_cell
from labctl.testing.robot import RobotRig

pytestmark = pytest.mark.real_time

HOSTS = {"emulated_fr3": "127.0.0.2", "emulated_ur5e": "127.0.0.3", "emulated_ur5": "127.0.0.4"}
FR3 = {
    "reflex": "collision",
    "latched_reflex": "names no cause",
    "user_stop": "user stop: the external activation device is pressed; release it",
    "brakes_closed": "open Desk, open the brakes and activate FCI",
}
UR5E = {
    "protective_stop": "protective stop: look at the robot",
    "emergency_stop": "emergency stop: release the button",
    "safeguard_stop": "safeguard stop: close the safeguard",
    "power_off": "the robot is switched off",
}


@pytest.fixture(scope="module", params=list(HOSTS))
def emulator(request) -> Iterator[Emulator]:
    made = Emulator(NAMES[request.param])
    made.cell = request.param
    yield made
    made.end()


def arm_of(cell: str, host: str, folder: Path) -> Check:
    path = folder / "cell.toml"
    path.write_text(cell_toml(cameras=False, durable=True, base=cell).replace(HOSTS[cell], host), "utf-8")
    return next(check for check in check_cell(path, folder) if check.name == "robot")


@pytest.mark.thorough
def test_a_healthy_robot_is_connected_and_each_fault_is_told_in_words(emulator: Emulator, tmp_path: Path) -> None:
    found = arm_of(emulator.cell, emulator.host, tmp_path)
    if emulator.cell == "emulated_fr3":
        assert found.text.startswith("connected and idle"), found
    else:
        assert "gripper: not activated: acknowledge to activate it" in found.text, found
    for fault, words in (FR3 if emulator.cell == "emulated_fr3" else UR5E).items():
        emulator.inject(fault)
        told = arm_of(emulator.cell, emulator.host, tmp_path)
        assert told.level == "warn" and words in told.text and told.remedy, (fault, told)
        emulator.clear()
        if fault in ("reflex", "latched_reflex", "protective_stop", "emergency_stop", "power_off"):
            _mend(emulator)


def _mend(emulator: Emulator) -> None:
    """What an operator's acknowledgement would do: recovery over the real protocol."""
    cell = cell_named(emulator.cell)
    options = copy.deepcopy(cell.robot.options)
    options["driver_options"]["host"] = emulator.host
    rig = RobotRig("emulated", options, cell, live=True)
    try:
        rig.robot.connect(rig.now_ns)
        rig.recover()
    finally:
        rig.robot.close()
    wait_for("a sound robot", lambda: "reflex" not in str(emulator.stats().get("mode")))


@pytest.mark.parametrize("cell", list(HOSTS))
def test_a_robot_that_is_not_there_fails_in_one_line(cell: str, tmp_path: Path) -> None:
    leave_out_without_client(cell)
    found = arm_of(cell, address(), tmp_path)
    assert found.level == "fail" and "\n" not in found.text
    assert "does not answer" in found.text
