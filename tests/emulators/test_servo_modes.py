"""Every way of handing setpoints to a client leads the robot to where they end, and no pause of ours makes it stop."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.arriving import arrives, off
from support.robots.cells import cell_named
from support.robots.emulators import NAMES, Emulator, busy, network_is_read

from labctl.testing.robot import RobotRig

pytestmark = [pytest.mark.real_time, pytest.mark.thorough]

MODES = [(name, servo) for name in ("emulated_fr3", "emulated_ur5e") for servo in ("joint", "cartesian", "velocity")]
MODES.remove(("emulated_fr3", "joint"))  # the FR3 is not given joints: see the driver
MODES += [("emulated_fr3", servo) for servo in ("impedance", "velocity, states of the client", "velocity, an FER")]
LOADS = {
    "emulated_fr3": {"load_kg": 0.5, "load_com_m": [0.0, 0.0, 0.05]},
    # a watchdog on the robot that outlasts the pauses of a test and those of a machine
    "emulated_ur5e": {"payload_kg": 0.5, "payload_cog_m": [0.0, 0.0, 0.05], "watchdog_hz": 2.0},
}
# An FER by analogy: its limits, on the emulated FR3
BESIDES = {"": {}, "states of the client": {"states": "client"}, "an FER": {"model": "fer"}}
PAUSE_US = 150_000  # longer than the FR3's driver lets a speed hold, shorter than the watchdog on the UR


TRIED = [
    pytest.param((name, servo), id=f"{name}-{servo}", marks=busy(name))
    for name, servo in MODES
    if "of the client" not in servo or network_is_read()  # who may not takes them from there in any case
]


@pytest.fixture(scope="module", params=TRIED)
def robot_of(request: pytest.FixtureRequest) -> Iterator[RobotRig]:
    """A robot with a load, driven in one of its modes."""
    name, servo = request.param
    emulator, cell = Emulator(NAMES[name]), cell_named(name)
    options = cell.robot.options
    servo, _, besides = servo.partition(", ")
    options["driver_options"] |= {"host": emulator.host, "servo": servo, **LOADS[name]}
    options["driver_options"] |= BESIDES[besides]
    made = RobotRig("emulated", options, cell, live=True)
    try:
        made.connect()
        yield made
    finally:
        made.robot.close()
        emulator.end()


@pytest.fixture
def rig(robot_of: RobotRig) -> RobotRig:
    """It, at home and free to move."""
    robot_of.recover()
    robot_of.stage()
    return robot_of


def swing(rig: RobotRig, by_rad: float = 0.2) -> np.ndarray:
    """Setpoints that turn the first joint."""
    turn = by_rad * (1 - np.cos(np.linspace(0, np.pi, 150))) / 2
    return rig.robot.observe()["q"] + turn[:, None] * np.eye(rig.robot.dof)[0]


def test_the_arm_arrives_with_a_load_set(rig: RobotRig) -> None:
    path = swing(rig)
    rig.follow(path)
    arrives(rig, path[-1])


def test_after_a_pause_of_the_whole_process_the_arm_goes_on_to_the_end(rig: RobotRig) -> None:
    """Nothing of ours runs while the interpreter's lock is held, as when a machine stands still."""
    for k, sign in enumerate((1, -1, 1)):
        path = swing(rig, 0.2 * sign)
        pause = threading.Timer(0.4 + 0.3 * k, ctypes.PyDLL(None).usleep, (PAUSE_US,))
        pause.start()
        rig.follow(path)
        pause.join()
        arrives(rig, path[-1])


def test_a_stop_in_motion_is_a_stop_and_not_one_of_the_robots_own(rig: RobotRig) -> None:
    path = swing(rig)
    halfway = threading.Timer(0.8, rig.robot.stop)
    halfway.start()
    rig.follow(path)
    halfway.join()
    rig.at_rest()
    assert rig.robot.status().mode == "stopped" and off(rig, path[-1]) > 0.02
    rig.recover()
    assert rig.robot.status().mode == "idle"


def test_an_arm_that_has_not_settled_can_be_sent_home(rig: RobotRig) -> None:
    home = rig.robot.observe()["q"]
    rig.follow(swing(rig))
    rig.stage()
    rig.at_rest()
    assert off(rig, home) < 1e-3 and rig.robot.status().mode == "idle", rig.robot.status()
