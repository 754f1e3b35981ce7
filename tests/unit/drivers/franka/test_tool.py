"""The end effector that is set on a Franka robot is compared with the cell's as a whole: shift, turn and mass."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.robots.cells import cell_named

from labctl.drivers.common.robot_tables import FR3, HAND_KG, HAND_M, HAND_RPY, Tool
from labctl.drivers.franka.options import FrankaOptions
from labctl.drivers.franka.tool import unlike

HAND = Tool((0.0, 0.0, HAND_M), HAND_RPY)


def _set(tool: Tool) -> np.ndarray:
    """A tool as Desk gives it to a client, (4, 4) in single precision as the FCI sends it."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_euler("xyz", tool.rpy).as_matrix(), tool.xyz
    return pose.astype(np.float32).astype(float)


def test_the_franka_hand_is_what_a_cell_has_that_says_nothing() -> None:
    """F_T_EE of the hand: z 0.1034 m, turned by -45 degrees (Franka's FCI documentation), 0.73 kg."""
    half = np.sqrt(0.5)
    published = np.array([[half, half, 0, 0], [-half, half, 0, 0], [0, 0, 1, 0.1034], [0, 0, 0, 1]])
    assert unlike(published, 0.73, HAND, HAND_KG) == ""


def test_a_robotiq_entered_by_z_alone_is_named_with_what_was_found_what_the_cell_says_and_what_to_do() -> None:
    said = unlike(_set(Tool((0.0, 0.0, 0.163))), 0.0, Tool((0.0, 0.0, 0.163), HAND_RPY), HAND_KG)
    assert said == (
        "the robot's end effector is not the cell's tool: tool_rpy_rad is [0.0000, 0.0000, 0.0000] on the robot, "
        "[0.0000, 0.0000, -0.7854] in the cell; tool_kg is 0.000 on the robot, 0.730 in the cell; correct the one "
        "that is wrong: Desk, Settings, End effector, or the cell's [robot.options]"
    )


@pytest.mark.parametrize(
    ("found", "kg", "key"),
    [
        (Tool((0.0, 0.0, 0.1050), HAND_RPY), HAND_KG, "tool_z_m is 0.1050 on the robot, 0.1034 in the cell"),
        (Tool((0.0, -0.02, HAND_M), HAND_RPY), HAND_KG, "tool_xy_m is [0.0000, -0.0200] on the robot"),
        (Tool((0.0, 0.0, HAND_M), (0.0, 0.02, HAND_RPY[2])), HAND_KG, "tool_rpy_rad is [0.0000, 0.0200, -0.7854]"),
        (Tool((0.0, 0.0, HAND_M), (np.pi, 0.0, HAND_RPY[2])), HAND_KG, "tool_rpy_rad"),
        (HAND, 0.9, "tool_kg is 0.900 on the robot, 0.730 in the cell"),
    ],
)
def test_each_part_that_differs_is_named_alone(found: Tool, kg: float, key: str) -> None:
    said = unlike(_set(found), kg, HAND, HAND_KG)
    assert key in said and said.count(" on the robot") == 1 and "\n" not in said


def test_what_is_written_in_single_precision_and_rounded_by_hand_is_the_same_tool() -> None:
    assert unlike(_set(Tool((0.0003, 0.0, 0.1030), (0.0, 0.0, -0.785))), 0.7, HAND, HAND_KG) == ""


@pytest.mark.parametrize(
    ("has", "given", "sent"),
    [(0.0, 0.0, []), (0.5, 0.0, [0.0]), (0.0, 0.5, [0.5]), (0.5, 0.5, [0.5])],
)
def test_a_load_of_before_is_taken_away_where_the_cell_has_none(has: float, given: float, sent: list[float]) -> None:
    """The load of another campaign stayed, and the record said that there was none."""
    pytest.importorskip("franky")
    from labctl.drivers.franka.robot import FrankaLink

    options = FrankaOptions.read({"host": "127.0.0.1", "load_kg": given}, "franka")
    link, asked = FrankaLink(FR3, options, cell_named("emulated_fr3").robot), list[float]()
    robot = SimpleNamespace(state=SimpleNamespace(m_load=has), set_load=lambda kg, *_: asked.append(kg))
    link._set_load(robot)
    assert asked == sent
