"""An emulated UR whose links are not as published, behind the real client: what is not to move does not, and a step is
as long as it was asked for, whether its controller says what was measured on it or not.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import Emulator

from labctl.testing.robot import FollowingConformance, RobotRig, led

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("servo", ["joint", pytest.param("cartesian", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("says", ["said", pytest.param("unsaid", marks=pytest.mark.thorough)])
def test_ten_null_steps_move_the_tool_less_than_a_tenth_of_a_millimetre(says: str, servo: str) -> None:
    emulator, cell = Emulator("ur5e", f"calibration={says}"), cell_named("emulated_ur5e")
    options = cell.robot.options
    options["driver_options"] |= {"host": emulator.host, "servo": servo, "watchdog_hz": 2.0}
    rig = RobotRig("emulated", options, cell, live=True)
    try:
        rig.connect()
        FollowingConformance().test_null_motion_does_not_move(rig)
        before = rig.robot.observe()["tcp"]
        wanted = before + np.array([0.0, 0.05, -0.05, 0.0, 0.0, 0.0, 0.0])
        led(rig, np.linspace(before, wanted, 100))
        off = float(np.abs(rig.robot.observe()["tcp"][:3] - wanted[:3]).max())
        assert off < (2e-4 if says == "said" else 1e-3)
    finally:
        rig.robot.close()
        emulator.end()
