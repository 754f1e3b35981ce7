"""Our FR3 driver against franka-sim with limits and communication constraints enforced: `make peer-franka-sim`.

Its model is crude and its time this machine's, or slower: claims are on violations, not on how closely it follows. It
waits for nobody, so a busy machine loses commands, which its checks then see as jumps: run it on a quiet one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import address
from support.runs.live_campaign import wait_for

from labctl.errors import DeviceLost
from labctl.testing.robot import RobotRig

pytestmark = pytest.mark.interop

SERVER = Path(__file__).with_name("franka_sim_server.py")


@pytest.fixture(params=["velocity", "cartesian", "impedance"])
def rig(request: pytest.FixtureRequest) -> Iterator[RobotRig]:
    """The driver in one of its servos, connected to a server of this test's own."""
    python, host = os.environ.get("FRANKA_SIM"), address()
    assert python, "set FRANKA_SIM to the Python of an environment with franka-sim"
    process = subprocess.Popen([python, str(SERVER), host])
    cell = cell_named("emulated_fr3")
    options = cell.robot.options["driver_options"]
    options |= {"host": host, "servo": request.param, "gripper": {"driver": "franka_hand"}}
    options |= {"tool_z_m": 0.0, "tool_rpy_rad": [0.0, 0.0, 0.0], "tool_kg": 0.0}  # it has no end effector
    del options["home_rad"]
    made = RobotRig("franka", options, cell, live=True)
    try:

        def connected() -> bool:
            try:
                made.robot.connect(made.now_ns)
            except DeviceLost:
                return False
            return True

        wait_for("franka-sim", connected)
        yield made
    finally:
        made.robot.close()
        process.terminate()
        process.wait(10)


def swing(rig: RobotRig, joint: int, by_rad: float, n: int = 150) -> np.ndarray:
    s = (1 - np.cos(np.linspace(0, np.pi, n))) / 2
    return rig.robot.observe()["q"] + by_rad * s[:, None] * np.eye(7)[joint]


def violations(rig: RobotRig) -> list[str]:
    """What the robot says that was broken, whatever our driver made of it."""
    newest = rig.robot._link._reading.newest()
    return [newest.mode, *newest.errors] if newest.mode == "Reflex" or newest.errors else []


def test_every_joint_is_led_without_a_violation(rig: RobotRig) -> None:
    """The arm goes there, or our own supervision stops one that does not follow: franka-sim resolves a tool's motions
    in a way of its own (issue 20.20).
    """
    for joint in range(7):
        path = swing(rig, joint, 0.15)
        rig.follow(path)
        rig.wait(2_000_000_000)
        assert violations(rig) == [], joint
        if rig.robot.status().mode == "safety_stop":
            assert "does not follow" in rig.robot.status().reason
            return
        assert abs(rig.robot.observe()["q"][joint] - path[0, joint]) > 0.05, joint


@pytest.mark.parametrize("joint", [0, 3, 5, 6])
def test_a_stop_in_motion_breaks_no_limit(rig: RobotRig, joint: int) -> None:
    """Issue 20.18: joints 6 and 7 fastest tripped the robot's own limits."""
    rig.follow(swing(rig, joint, 0.4, 100)[:60])
    rig.robot.stop()
    rig.until(lambda: rig.robot.status().mode != "moving")
    rig.wait(1_000_000_000)
    assert violations(rig) == [] and rig.robot.status().mode in ("stopped", "safety_stop")
