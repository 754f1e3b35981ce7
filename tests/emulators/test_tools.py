"""An emulated FR3 with a tool that is not the Franka Hand, behind the real client: refused where the cell says another
one, and moved as every arm where the cell says the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import Emulator

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3, Tool, with_tool
from labctl.errors import DeviceRefused
from labctl.testing.robot import FollowingConformance, RobotRig

pytestmark = [pytest.mark.real_time, pytest.mark.busy]

BY_Z_ALONE = ("tool_z_m=0.163", "tool_yaw_rad=0.0", "tool_kg=0.0")  # what Desk has then: no turn, no mass
# A tool that stands aside and is turned about every axis: nothing of it is the hand's.
ODD = ("tool_x_m=0.02", "tool_z_m=0.14", "tool_roll_rad=0.2", "tool_pitch_rad=-0.1", "tool_yaw_rad=0.5", "tool_kg=0.9")
SAID = {"tool_xy_m": [0.02, 0.0], "tool_z_m": 0.14, "tool_rpy_rad": [0.2, -0.1, 0.5], "tool_kg": 0.9}


def rig_at(emulator: Emulator, tool: dict[str, object]) -> RobotRig:
    cell = cell_named("emulated_fr3")
    options = cell.robot.options
    options["driver_options"] |= {"host": emulator.host, **tool}
    return RobotRig("emulated", options, cell, live=True)


def test_a_robotiq_entered_in_desk_by_z_alone_is_refused_in_one_line() -> None:
    emulator = Emulator("fr3", *BY_Z_ALONE)
    try:
        rig = rig_at(emulator, {"tool_z_m": 0.163})
        with pytest.raises(DeviceRefused) as refused:
            rig.connect()
        said = str(refused.value)
        del refused  # its frames hold the client's robot, and with it the connection
        assert "\n" not in said
        assert "tool_rpy_rad is [0.0000, 0.0000, 0.0000] on the robot, [0.0000, 0.0000, -0.7854] in the cell" in said
        assert "tool_kg is 0.000 on the robot, 0.730 in the cell" in said
        assert "correct the one that is wrong: Desk, Settings, End effector, or the cell's [robot.options]" in said
        rig.robot.close()
        same = rig_at(emulator, {"tool_z_m": 0.163, "tool_rpy_rad": [0.0, 0.0, 0.0], "tool_kg": 0.0})
        same.connect()
        same.robot.close()
    finally:
        emulator.end()


@pytest.mark.parametrize("servo", ["velocity", pytest.param("cartesian", marks=pytest.mark.thorough)])
def test_with_the_same_tool_on_both_sides_null_motion_moves_nothing_and_the_tool_turns_about_its_own_point(
    servo: str,
) -> None:
    emulator = Emulator("fr3", *ODD)
    rig = rig_at(emulator, {**SAID, "servo": servo})
    try:
        rig.connect()
        seen = rig.robot.observe()
        chain = with_tool(FR3, Tool((0.02, 0.0, 0.14), (0.2, -0.1, 0.5))).chain
        assert np.abs(kinematics.pose(chain, seen["q"].tolist()) - seen["tcp"]).max() < 1e-6
        FollowingConformance().test_null_motion_does_not_move(rig)
        FollowingConformance().test_tool_frames_the_tool_turns_about_its_own_point_and_axes(rig)
    finally:
        rig.robot.close()
        emulator.end()
