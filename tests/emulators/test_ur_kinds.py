"""Other software and other models of a UR behind the real client: connected, at home, moved and stopped."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.arriving import arrives
from support.robots.cells import cell_named
from support.robots.emulators import Emulator

from labctl.drivers.common.robot_tables import URS
from labctl.errors import DeviceRefused
from labctl.testing.robot import RobotRig
from labctl.testing.robot_rig import turned

pytestmark = [pytest.mark.real_time, pytest.mark.thorough]

KINDS = [
    ("ur5e", "5.5.1"),  # refused for ever as "local control" before issue 20.14
    ("ur5e", "10.10.0"),  # PolyScope X: no dashboard, and not yet its Robot API
    ("ur5e", "10.11.0"),  # the Robot API
    ("ur3e", ""),
    ("ur7e", ""),
    ("ur10e", ""),
    ("ur15", ""),
    ("ur20", ""),
]
API_PORT = 8080


def software(polyscope: str) -> list[str]:
    """Options of an emulator with this software; the Robot API where no right is needed to serve it."""
    return [f"polyscope={polyscope}", f"robot_api_port={API_PORT}"] if polyscope else []


def refused(rig: RobotRig) -> str:
    """Why the robot does not recover now."""
    try:
        rig.robot.recover()
    except DeviceRefused as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("model", "polyscope"), KINDS)
def test_it_is_driven(model: str, polyscope: str) -> None:
    emulator, cell = Emulator(model, *software(polyscope)), cell_named("emulated_ur5e")
    wide = {"box_min_m": (-1.5, -1.5, -0.5), "box_max_m": (1.5, 1.5, 2.0), "velocity_rad_s": (0.8,) * 6}
    limits = cell.robot.limits.model_copy(update=wide)
    cell = cell.model_copy(update={"robot": cell.robot.model_copy(update={"limits": limits})})
    options = cell.robot.options
    options["driver_options"] |= {"host": emulator.host, "model": model, "watchdog_hz": 2.0, "home_rad": "default"}
    options["driver_options"]["robot_api_port"] = API_PORT
    rig = RobotRig("emulated", options, cell, live=True)
    try:
        rig.connect()
        assert np.abs(rig.robot.observe()["q"] - URS[model].home).max() < 0.01
        path = turned(rig.robot)
        rig.follow(path)
        arrives(rig, path[-1])
        emulator.inject("protective_stop")
        rig.until(lambda: rig.robot.status().mode == "safety_stop")
        if polyscope == "10.10.0":
            rig.until(lambda: "at the pendant" in refused(rig))
        else:
            rig.recover()
            assert rig.robot.status().mode in ("idle", "moving")
    finally:
        rig.robot.close()
        emulator.end()


def test_a_polyscope_x_is_powered_on_released_stopped_and_unlocked_by_its_robot_api() -> None:
    emulator, cell = Emulator("ur5e", "start=power_off", *software("10.12.0")), cell_named("emulated_ur5e")
    options = cell.robot.options
    options["driver_options"] |= {"host": emulator.host, "watchdog_hz": 2.0, "robot_api_port": API_PORT}
    rig = RobotRig("emulated", options, cell, live=True)
    try:
        rig.robot.connect(rig.now_ns)
        assert "switched off" in rig.robot.status().reason
        rig.recover()  # power on, brake release, the program
        assert rig.robot.status().mode == "idle" and emulator.stats()["mode"] == "Robotmode: RUNNING"
        emulator.inject("protective_stop")
        rig.until(lambda: rig.robot.status().mode == "safety_stop")
        rig.recover()
        assert rig.robot.status().mode == "idle" and emulator.stats()["safety"] == "Safetymode: NORMAL"
        emulator.inject("local_control")
        rig.until(lambda: rig.robot.status().mode == "safety_stop")
        rig.until(lambda: "local control" in refused(rig))
        emulator.clear()
        rig.recover()
        assert rig.robot.status().mode == "idle"
    finally:
        rig.robot.close()
        emulator.end()
