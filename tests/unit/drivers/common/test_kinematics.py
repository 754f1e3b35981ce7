"""Forward and inverse kinematics against tables written out again here, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from labctl import rotations
from labctl.drivers.common import kinematics
from labctl.drivers.common.kinematics import Chain
from labctl.drivers.common.robot_tables import FR3, UR5, UR5E, RobotModel, Tool, with_tool
from labctl.drivers.common.sweep import levers

ARMS = pytest.mark.parametrize("arm", [FR3, UR5, UR5E], ids=["fr3", "ur5", "ur5e"])


def _rx(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _rz(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def _shift(x: float, z: float) -> np.ndarray:
    out = np.eye(4)
    out[0, 3], out[2, 3] = x, z
    return out


def _fr3(q: np.ndarray) -> np.ndarray:
    """Franka's table: modified DH, a 0 0 0 .0825 -.0825 0 .088; d .333 0 .316 0 .384 0 0; flange .107; hand -45 deg
    and .1034.
    """
    a = [0, 0, 0, 0.0825, -0.0825, 0, 0.088]
    d = [0.333, 0, 0.316, 0, 0.384, 0, 0]
    alpha = np.deg2rad([0, -90, 90, 90, -90, 90, 90])
    out = np.eye(4)
    for i in range(7):
        out = out @ _rx(alpha[i]) @ _shift(a[i], 0) @ _rz(q[i]) @ _shift(0, d[i])
    return out @ _shift(0, 0.107) @ _rz(-math.pi / 4) @ _shift(0, 0.1034)


def _ur5(q: np.ndarray) -> np.ndarray:
    """Universal Robots' table for the UR5: standard DH, d .089159 0 0 .10915 .09465 .0823; a 0 -.425 -.39225 0 0 0;
    gripper .1034.
    """
    a = [0, -0.425, -0.39225, 0, 0, 0]
    d = [0.089159, 0, 0, 0.10915, 0.09465, 0.0823]
    alpha = np.deg2rad([90, 0, 0, 90, -90, 0])
    out = np.eye(4)
    for i in range(6):
        out = out @ _rz(q[i]) @ _shift(0, d[i]) @ _shift(a[i], 0) @ _rx(alpha[i])
    return out @ _shift(0, 0.1034)


def _random(arm: RobotModel, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(np.maximum(arm.lower, -3), np.minimum(arm.upper, 3), (n, arm.dof))


@pytest.mark.parametrize(("arm", "written_out"), [(FR3, _fr3), (UR5, _ur5)], ids=["fr3", "ur5"])
def test_forward_kinematics_equals_the_published_table_multiplied_out(arm, written_out):
    q = _random(arm, 200)
    poses = kinematics.poses(arm.chain, q)
    for row, pose in zip(q, poses, strict=True):
        expected = written_out(row)
        assert np.abs(pose[:3] - expected[:3, 3]).max() < 1e-12
        assert np.abs(rotations.matrix(pose[None, 3:])[0] - expected[:3, :3]).max() < 1e-12


def test_the_ur5_at_zero_stands_where_its_links_add_up():
    """All joints at zero: x = a2 + a3, y = -(d4 + d6 + tool), z = d1 - d5 (Universal Robots' DH drawing)."""
    x, y, z = kinematics.pose(UR5.chain, [0.0] * 6)[:3]
    assert (x, y, z) == pytest.approx((-0.81725, -(0.10915 + 0.0823 + 0.1034), 0.089159 - 0.09465))


@ARMS
def test_one_pose_and_many_poses_agree(arm):
    q = _random(arm, 20)
    many = kinematics.poses(arm.chain, q)
    assert np.abs(np.array([kinematics.pose(arm.chain, row.tolist()) for row in q]) - many).max() < 1e-14
    assert np.abs(kinematics.positions(arm.chain, q).T - many[:, :3]).max() < 1e-14
    assert np.abs(np.linalg.norm(many[:, 3:], axis=1) - 1).max() < 1e-14


@ARMS
def test_the_jacobian_is_the_derivative_of_the_position(arm):
    q = _random(arm, 5)
    jacobian, tip, _ = kinematics.jacobian(arm.chain, q)
    assert np.abs(tip - kinematics.poses(arm.chain, q)[:, :3]).max() < 1e-12
    for j in range(arm.dof):
        step = np.zeros(arm.dof)
        step[j] = 1e-6
        slope = (kinematics.positions(arm.chain, q + step) - kinematics.positions(arm.chain, q - step)).T / 2e-6
        assert np.abs(jacobian[:, :3, j] - slope).max() < 1e-8


@ARMS
@settings(max_examples=60, deadline=None)
@given(
    x=st.floats(0.3, 0.6),  # the far corner of the totes; a UR5's reach ends at (0.65, 0.39, 0.40)
    y=st.floats(-0.4, 0.4),
    z=st.floats(0.0, 0.3),
    turn=st.floats(-1.5, 1.5),
)
def test_inverse_then_forward_returns_every_downward_pose_over_the_totes(arm, x, y, z, turn):
    yaw = math.atan2(y, x) + turn
    pose = np.array([[x, y, z, math.cos(yaw / 2), math.sin(yaw / 2), 0.0, 0.0]])
    q = arm.inverse(pose, arm.home)
    assert (q >= arm.lower).all() and (q <= arm.upper).all()
    back = kinematics.poses(arm.chain, q)[0]
    assert np.abs(back[:3] - pose[0, :3]).max() < 1e-9
    assert abs(abs(float(back[3:] @ pose[0, 3:])) - 1) < 1e-9


@ARMS
def test_inverse_of_forward_reaches_tilted_poses_near_home(arm):
    q = arm.home + np.random.default_rng(3).uniform(-0.35, 0.35, (40, arm.dof))
    poses = kinematics.poses(arm.chain, q)
    back = kinematics.poses(arm.chain, arm.inverse(poses, arm.home))
    assert np.abs(back[:, :3] - poses[:, :3]).max() < 1e-4
    assert np.abs(np.abs(np.sum(back[:, 3:] * poses[:, 3:], axis=1)) - 1).max() < 1e-6


@ARMS
def test_a_pose_beyond_reach_gives_finite_joints_within_limits(arm):
    pose = np.array([[3.0, 0.5, 0.2, 1.0, 0.0, 0.0, 0.0]])
    q = arm.inverse(pose, arm.home)
    assert np.isfinite(q).all() and (q >= arm.lower).all() and (q <= arm.upper).all()


@ARMS
def test_a_straight_path_of_poses_gives_joints_without_jumps(arm):
    s = np.linspace(0, 1, 60)
    yaw = 0.4 * s
    path = np.stack(
        [0.45 + 0.1 * s, 0.3 - 0.6 * s, 0.1 + 0.2 * s, np.cos(yaw / 2), np.sin(yaw / 2), 0 * s, 0 * s], axis=1
    )
    assert np.abs(np.diff(arm.inverse(path, arm.home), axis=0)).max() < 0.1


@ARMS
def test_no_joint_moves_the_tool_further_than_its_lever(arm):
    q = _random(arm, 300, seed=7)
    jacobian, _, _ = kinematics.jacobian(arm.chain, q)
    assert (np.linalg.norm(jacobian[:, :3], axis=1) <= levers(arm.chain) + 1e-12).all()


def test_a_table_with_an_oblique_axis_is_refused():
    with pytest.raises(ValueError, match="quarter turn"):
        Chain(rows=((0.0, 0.3, 0.1),), tool_z=0.0)


TOOLS = [
    Tool((0.0, 0.0, 0.163)),
    Tool((0.02, -0.03, 0.12), (0.0, 0.0, 0.6)),
    Tool((0.0, 0.05, 0.10), (0.3, -0.7, 2.5)),
    Tool((-0.04, 0.0, 0.0), (math.pi / 2, 0.0, 0.0)),
]


@ARMS
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_stands_on_the_flange_as_urdf_says(arm: RobotModel, tool: Tool) -> None:
    """URDF: a fixed joint's origin is a shift xyz, then fixed-axis roll, pitch and yaw; scipy's "xyz" is that order."""
    changed = with_tool(arm, tool)
    q = _random(arm, 20)
    flange = kinematics.poses(with_tool(arm, Tool((0.0, 0.0, 0.0))).chain, q)
    turn = Rotation.from_quat(flange[:, 3:])
    expected = turn * Rotation.from_euler("xyz", tool.rpy)
    poses = kinematics.poses(changed.chain, q)
    assert np.abs(poses[:, :3] - flange[:, :3] - turn.apply(tool.xyz)).max() < 1e-12
    assert (Rotation.from_quat(poses[:, 3:]) * expected.inv()).magnitude().max() < 1e-12
    jacobian, tip, turned = kinematics.jacobian(changed.chain, q)
    assert np.abs(tip - poses[:, :3]).max() < 1e-12
    assert np.abs(turned - expected.as_matrix()).max() < 1e-12
    for j in range(arm.dof):
        step = 1e-6 * np.eye(arm.dof)[j]
        slope = (kinematics.positions(changed.chain, q + step) - kinematics.positions(changed.chain, q - step)).T / 2e-6
        assert np.abs(jacobian[:, :3, j] - slope).max() < 1e-8
    assert (np.linalg.norm(jacobian[:, :3], axis=1) <= levers(changed.chain) + 1e-12).all()


@ARMS
@pytest.mark.parametrize("tool", TOOLS)
def test_an_arm_with_any_tool_reaches_its_own_poses_again(arm: RobotModel, tool: Tool) -> None:
    changed = with_tool(arm, tool)
    q = arm.home + np.random.default_rng(3).uniform(-0.35, 0.35, (40, arm.dof))
    for rows in (q, arm.home[None, :]):
        poses = kinematics.poses(changed.chain, rows)
        back = kinematics.poses(changed.chain, changed.inverse(poses, arm.home))
        assert np.abs(back[:, :3] - poses[:, :3]).max() < 1e-4
        assert np.abs(np.abs(np.sum(back[:, 3:] * poses[:, 3:], axis=1)) - 1).max() < 1e-6
