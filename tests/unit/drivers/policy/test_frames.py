"""A policy's poses are of the frame that its card names: DROID's are of panda_link8, wherever the fingertips are.

The numbers here are of Franka's URDF (franka_description, joint origins), written out as it has them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.policies.cards import card
from support.robots.cells import cell_named, changed

from labctl.config.cell_schema import Cell
from labctl.config.policy_card import Card, parse_card
from labctl.devices import Observation
from labctl.drivers.common import kinematics
from labctl.drivers.common.flange import tool_of
from labctl.drivers.common.robot_tables import FR3, HAND_M, HAND_RPY, Tool, with_tool
from labctl.drivers.policy.actions import to_chunk
from labctl.drivers.policy.client import card_for, in_frame_of
from labctl.drivers.policy.inputs import read
from labctl.drivers.policy.options import PolicyOptions
from labctl.errors import InputError
from labctl.nodes.playing import Play

ROOT = Path(__file__).parents[4]
Q = math.pi / 2
# origin of panda_joint1 to 8: x y z (m), roll (rad); pitch and yaw are zero, each joint turns about its z
ORIGINS = [
    ((0, 0, 0.333), 0), ((0, 0, 0), -Q), ((0, -0.316, 0), Q), ((0.0825, 0, 0), Q),
    ((-0.0825, 0.384, 0), -Q), ((0, 0, 0), Q), ((0.088, 0, 0), Q), ((0, 0, 0.107), 0),
]  # fmt: skip
DROID_HOME = np.array([0, -math.pi / 5, 0, -4 * math.pi / 5, 0, 3 * math.pi / 5, 0.0])  # droid, its reset pose
POSES = [DROID_HOME, FR3.home, np.array([0.4, -0.3, 0.2, -2.1, 0.5, 1.7, -0.9])]


def urdf_link8(q: np.ndarray) -> np.ndarray:
    """The pose (4, 4) of panda_link8 in panda_link0."""
    pose = np.eye(4)
    for (xyz, roll), angle in zip(ORIGINS, [*q, 0.0], strict=True):
        step = np.eye(4)
        step[:3, :3] = (Rotation.from_euler("x", roll) * Rotation.from_euler("z", angle)).as_matrix()
        step[:3, 3] = xyz
        pose = pose @ step
    return pose


CELLS = {
    "the simulated hand": cell_named("sim_fr3"),
    "an emulated hand": cell_named("emulated_fr3"),
    "a Robotiq": cell_named("fr3_droid_cell"),
    "any tool": changed(
        cell_named("fr3_droid_cell"),
        {"robot": {"options": {"tool_xy_m": [0.02, -0.01], "tool_rpy_rad": [0.3, -0.2, 1.0]}}},
    ),
}


def shipped(name: str) -> Card:
    return parse_card((ROOT / "protocols" / "cards" / f"{name}.toml").read_text(), name)


def seen(cell: Cell, q: np.ndarray) -> dict[str, np.ndarray]:
    tcp = np.array(kinematics.pose(with_tool(FR3, tool_of(cell)).chain, q.tolist()))
    return {"q": q, "dq": np.zeros(7), "tcp": tcp, "gripper": np.array([0.04])}


def only(states: list[str], frame: str, **action: Any) -> Card:
    """A card that reads nothing but the tool's pose."""
    made = card()
    made["input"] = [{"key": "pose", "state": states, "dtype": "float64"}]
    made["tool"] = {"frame": frame}
    made["action"] |= action
    return Card.model_validate(made)


def test_the_tool_of_a_cell_is_what_its_file_says() -> None:
    assert tool_of(CELLS["the simulated hand"]) == tool_of(CELLS["an emulated hand"])
    assert tool_of(CELLS["the simulated hand"]) == Tool((0.0, 0.0, HAND_M), HAND_RPY)
    assert tool_of(CELLS["a Robotiq"]) == Tool((0.0, 0.0, 0.163))


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("q", POSES, ids=["droid's home", "labctl's home", "elsewhere"])
def test_roboarenas_card_sends_where_panda_link8_is_by_the_urdf(cell: Cell, q: np.ndarray) -> None:
    made = in_frame_of(shipped("roboarena_droid"), cell)
    entry = next(entry for entry in made.input if entry.key == "observation/cartesian_position")
    made = made.model_copy(update={"input": (entry,)})
    sent = read(made, Observation(0, seen(cell, q)))[entry.key].astype(float)
    link8 = urdf_link8(q)
    assert np.abs(sent[:3] - link8[:3, 3]).max() < 1e-6
    turned = Rotation.from_euler("xyz", sent[3:]) * Rotation.from_matrix(link8[:3, :3]).inv()
    assert turned.magnitude() < 1e-6


def test_the_fingertips_that_were_sent_before_are_a_hand_and_45_degrees_away() -> None:
    arrays = seen(CELLS["the simulated hand"], DROID_HOME)
    link8 = urdf_link8(DROID_HOME)
    assert np.linalg.norm(arrays["tcp"][:3] - link8[:3, 3]) == pytest.approx(0.1034)
    turned = Rotation.from_matrix(link8[:3, :3]).inv() * Rotation.from_quat(arrays["tcp"][3:])
    assert turned.as_euler("xyz", degrees=True) == pytest.approx([0.0, 0.0, -45.0], abs=1e-9)


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_pose_asked_of_the_flange_is_where_the_flange_goes(cell: Cell) -> None:
    made = in_frame_of(only(["tcp_position"], "flange", space="tcp_pose", rotation="quaternion_xyzw"), cell)
    for q in POSES:
        link8, arrays = urdf_link8(q), seen(cell, q)
        asked = np.concatenate([link8[:3, 3], Rotation.from_matrix(link8[:3, :3]).as_quat(), [0.0]])
        pose = to_chunk(asked[None, :], made, arrays).values[0]
        assert np.abs(pose[:3] - arrays["tcp"][:3]).max() < 1e-9
        assert abs(pose[3:] @ arrays["tcp"][3:]) == pytest.approx(1.0)


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("space", ["droid_cartesian_velocity", "tcp_delta"])
def test_a_measured_step_of_the_flange_moves_and_turns_the_flange(cell: Cell, space: str) -> None:
    """DROID: measured panda_link8 + 0.075 m and 0.15 rad times the action, about the axes of the base."""
    given = {"rotation": "rotvec", "relative_to": "measured"} if space == "tcp_delta" else {}
    made = in_frame_of(only(["tcp_position"], "flange", space=space, **given), cell)
    move, spin = np.array([0.01, -0.02, 0.015]), np.array([0.05, -0.03, 0.06])
    scale = (0.075, 0.15) if space == "droid_cartesian_velocity" else (1.0, 1.0)
    arrays = seen(cell, POSES[2])
    row = np.concatenate([move / scale[0], spin / scale[1], [0.0]])
    play = Play(to_chunk(row[None, :], made, arrays), 0, 0, 1, "e")
    found = np.asarray(play.targets(0, arrays)[0].arrays["values"])[0]
    tool, link8 = tool_of(cell), urdf_link8(POSES[2])
    turned = Rotation.from_rotvec(spin) * Rotation.from_matrix(link8[:3, :3])
    assert np.abs(found[:3] - (link8[:3, 3] + move + turned.apply(tool.xyz))).max() < 1e-9
    assert (Rotation.from_quat(found[3:]) * (turned * Rotation.from_euler("xyz", tool.rpy)).inv()).magnitude() < 1e-9


def test_a_velocity_of_the_flange_is_refused_and_so_is_a_flange_that_nobody_knows() -> None:
    made = only(["gripper"], "flange", space="tcp_velocity")
    with pytest.raises(InputError, match='say frame = "tcp"'):
        in_frame_of(made, cell_named("sim_fr3"))
    unknown = changed(cell_named("sim_fr3"), {"robot": {"driver": "franka_hand"}})
    with pytest.raises(InputError, match="nobody says where the tool of driver 'franka_hand' is on its flange"):
        in_frame_of(only(["tcp_position"], "flange"), unknown)


def test_a_card_comes_to_its_policy_in_the_frame_of_the_cells_tool() -> None:
    made, _ = card_for("policy_openpi", PolicyOptions(card=only(["tcp_position"], "flange")), cell_named("sim_fr3"))
    assert made.tool.frame == "tcp" and made.tool.shift_m == pytest.approx((0.0, 0.0, -0.1034))
