"""Speeds integrated into joint angles and poses, and a path whose targets are replaced."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.nodes.targets import Targets, integrated_joints, integrated_poses

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


def _line(t_ms: np.ndarray, rate: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Knots of one joint that turns at a steady rate, rad/s, with a hand that is at the knot's number."""
    return t_ms * MILLISECOND, np.column_stack([rate * t_ms / 1e3, np.arange(len(t_ms), dtype=float)])


@pytest.mark.parametrize("hz", [10, 15, 50, 200])
def test_no_target_that_is_still_to_come_is_skipped_when_a_later_one_comes(hz):
    targets, held = Targets(1), np.zeros(2)
    t_ns, values = _line(np.round(np.arange(0, 1000, 1000 / hz)).astype(np.int64))
    targets.replace(t_ns, values, 9 * SECOND, 0, held)
    now_ns, first_ns = 500 * MILLISECOND, 650 * MILLISECOND
    asked_ns = now_ns - 100 * MILLISECOND  # a late visit: setpoints up to then were asked for
    grid = np.arange(asked_ns, t_ns[t_ns < first_ns][-2] + 1, 5 * MILLISECOND)
    before = targets.sample(grid)
    targets.replace(np.array([first_ns]), np.zeros((1, 2)), 9 * SECOND, now_ns, held)
    np.testing.assert_allclose(targets.sample(grid), before, atol=1e-9)


def test_a_target_that_is_replaced_while_the_path_is_on_its_way_to_it_sets_nothing_back():
    """An answer that counts from its capture claims the end of the step that is under way when it comes."""
    targets, held = Targets(1), np.zeros(2)
    targets.replace(*_line(np.arange(0, 2000, 100)), 9 * SECOND, 0, held)
    t_ns, values = _line(np.arange(580, 2000, 100))
    values[:, 1] = t_ns / (100 * MILLISECOND)
    targets.replace(t_ns, values, 9 * SECOND, 550 * MILLISECOND, held)
    grid = np.arange(530, 1000, 10) * MILLISECOND
    on_line = np.column_stack([0.5 * grid / SECOND, grid / (100 * MILLISECOND)])
    np.testing.assert_allclose(targets.sample(grid), on_line, atol=1e-9, err_msg="both answers ask for the same")


def test_a_path_that_is_left_at_a_time_leaves_from_where_it_is_then():
    targets, held = Targets(1), np.zeros(2)
    targets.replace(*_line(np.arange(0, 1000, 100)), 9 * SECOND, 0, held)
    left_ns, here = 530 * MILLISECOND, np.array([0.265, 5.3])
    ends = np.array([left_ns + 70 * MILLISECOND, left_ns + 170 * MILLISECOND])
    then = np.tile([here[0], 7.0], (2, 1))
    targets.replace(ends, then, 9 * SECOND, left_ns + MILLISECOND, held, left_ns)
    grid = np.arange(left_ns, ends[-1] + SECOND, 5 * MILLISECOND)
    np.testing.assert_allclose(targets.sample(grid)[0], here)
    np.testing.assert_allclose(targets.sample(grid)[:, 0], here[0], err_msg="neither on nor back")
    assert (np.diff(targets.sample(grid)[:, 1]) >= 0).all() and targets.sample(grid)[-1, 1] == 7.0


def test_what_is_late_of_speeds_is_left_out_and_an_opening_that_was_due_is_asked_for_at_once():
    targets, held = Targets(1), np.array([0.2, 0.0])
    ends = np.array([90, 100, 200]) * MILLISECOND
    targets.replace(ends, np.array([[0.2, 0.5], [0.2, 0.6], [0.3, 0.7]]), SECOND, 100 * MILLISECOND, held, ends[1])
    np.testing.assert_allclose(targets.sample(np.array([95, 100, 150, 200]) * MILLISECOND)[:, 0], [0.2, 0.2, 0.25, 0.3])
    np.testing.assert_allclose(targets.sample(np.array([100, 200]) * MILLISECOND)[:, 1], [0.6, 0.7])
