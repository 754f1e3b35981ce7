"""Every way of handing setpoints to a client leads the arm to where they end."""

from __future__ import annotations

import numpy as np
import pytest
from support.emulators import NAMES, Emulator
from support.robots import RobotRig, cell_named

from labctl.clock import SECOND

# velocity on the FR3 and joint on the UR are what the conformance suite uses
MODES = [("emulated_fr3", "cartesian"), ("emulated_ur5e", "cartesian"), ("emulated_ur5e", "velocity")]
LOADS = {
    "emulated_fr3": {"load_kg": 0.5, "load_com_m": [0.0, 0.0, 0.05]},
    "emulated_ur5e": {"payload_kg": 0.5, "payload_cog_m": [0.0, 0.0, 0.05]},
}


@pytest.mark.parametrize(("name", "servo"), MODES)
def test_the_arm_arrives_with_a_load_set(name: str, servo: str) -> None:
    emulator, cell = Emulator(NAMES[name]), cell_named(name)
    options = cell["robot"]["options"]
    options["driver_options"] |= {"host": emulator.host, "servo": servo, **LOADS[name]}
    rig = RobotRig("emulated", options, cell, live=True)
    try:
        rig.connect()
        start = rig.robot.observe()["q"]
        swing = 0.2 * (1 - np.cos(np.linspace(0, np.pi, 150))) / 2
        path = start + swing[:, None] * np.eye(rig.robot.dof)[0]
        rig.follow(np.concatenate([path, np.repeat(path[-1:], 60, axis=0)]))
        rig.wait(SECOND)
        assert np.abs(rig.robot.observe()["q"] - path[-1]).max() < 1e-3, rig.robot.status()
    finally:
        rig.robot.close()
        emulator.end()
