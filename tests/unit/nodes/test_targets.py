"""Speeds integrated into joint angles and poses."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND
from labctl.nodes.targets import integrated_joints, integrated_poses

T_NS = np.arange(1, 11, dtype=np.int64) * 100 * MILLISECOND
STEP_NS = 100 * MILLISECOND


def test_a_constant_joint_speed_for_a_second_is_that_many_radians():
    q = integrated_joints(T_NS, np.full((10, 3), 0.5), STEP_NS, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(q[-1], [1.5, 2.5, 3.5])
    np.testing.assert_allclose(q[0], [1.05, 2.05, 3.05])


def test_a_constant_twist_moves_and_turns_about_the_base_axes():
    start = np.array([0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])
    twist = np.tile([0.1, 0.0, -0.05, 0.0, 0.0, np.pi / 2], (10, 1))
    poses = integrated_poses(T_NS, twist, STEP_NS, start)
    np.testing.assert_allclose(poses[-1, :3], [0.5, 0.0, 0.25])
    # a quarter turn about z after a half turn about x: (0, 0, s, c) * (1, 0, 0, 0) with s = c = sqrt(1/2)
    np.testing.assert_allclose(poses[-1, 3:], [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0], atol=1e-12)


@given(st.lists(st.tuples(*[st.floats(-2, 2)] * 6), min_size=10, max_size=10))
def test_whatever_the_twists_the_quaternions_keep_unit_length(twists):
    start = np.array([0.4, 0.0, 0.3, 0.0, 0.6, 0.0, 0.8])
    poses = integrated_poses(T_NS, np.array(twists), STEP_NS, start)
    np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0)
