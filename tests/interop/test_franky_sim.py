"""Our FR3 driver against somebody else's robot: franky-sim, in an environment of its own (it weighs 680 MB).

Set FRANKY_SIM to its executable, for example:
python -m venv v && v/bin/pip install 'franky-sim[mujoco]' && export FRANKY_SIM=v/bin/franky-sim
"""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import address
from support.runs.live_campaign import wait_for

from labctl.errors import DeviceLost
from labctl.testing.robot import RobotRig

pytestmark = pytest.mark.interop


def test_the_fr3_driver_moves_the_arm_of_franky_sim() -> None:
    server, host = os.environ.get("FRANKY_SIM"), address()
    assert server, "set FRANKY_SIM to the executable of an environment with franky-sim"
    process = subprocess.Popen([server, "--simulator", "mujoco", "--hostname", host])
    cell = cell_named("emulated_fr3")
    options = cell.robot.options["driver_options"]
    options["host"] = host
    del options["home_rad"]
    rig = RobotRig("franka", options, cell, live=True)
    try:

        def connected() -> bool:
            try:
                rig.robot.connect(rig.now_ns)
            except DeviceLost:
                return False
            return True

        wait_for("franky-sim", connected)
        start = rig.robot.observe()["q"]
        swing = 0.1 * (1 - np.cos(np.linspace(0, np.pi, 200))) / 2
        rig.follow(start + swing[:, None] * np.eye(7)[0])
        rig.wait(500_000_000)
        moved = rig.robot.observe()["q"] - start
        assert abs(moved[0] - 0.1) < 0.02 and np.abs(moved[1:]).max() < 0.02
    finally:
        rig.robot.close()
        process.terminate()
        process.wait(10)
