"""An FR3's joints slow down before their ends by libfranka's own numbers, in the limiter and in the emulator alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.robots.cells import cell_named

from labctl.drivers.common.limits import Limiter, limits_of
from labctl.drivers.common.robot_tables import FR3, FR3_ENDS

# libfranka, include/franka/rate_limiting.h, computeUpperLimitsJointVelocity and computeLowerLimitsJointVelocity: at
# most `vmax`, else -offset + sqrt(twice * (upper - q)), less 1e-3; towards the lower end likewise
PUBLISHED = (
    (2.62, 0.30, 12.0, 2.75010, 2.750100),
    (2.62, 0.20, 5.17, 1.79180, 1.791800),
    (2.62, 0.20, 7.00, 2.90650, 2.906500),
    (2.62, 0.30, 8.00, -0.1458, 3.048100),
    (5.26, 0.35, 34.0, 2.81010, 2.810100),
    (4.18, 0.35, 11.0, 4.52050, -0.54092),
    (5.26, 0.35, 34.0, 3.01960, 3.019600),
)
SHIPPED = ("sim_fr3", "emulated_fr3", "fr3_droid_cell")


def published(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest speed (7,) at q (7,), as that header writes them down; none beyond zero."""
    low, high = np.empty(7), np.empty(7)
    for i, (vmax, offset, twice, upper, lower) in enumerate(PUBLISHED):
        high[i] = min(vmax, max(0.0, -offset + np.sqrt(max(0.0, twice * (upper - q[i]))))) - 1e-3
        low[i] = max(-vmax, min(0.0, offset - np.sqrt(max(0.0, twice * (lower + q[i]))))) + 1e-3
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


JOINTS = st.lists(st.floats(0.0, 1.0), min_size=7, max_size=7).map(
    lambda share: FR3.lower + np.array(share) * (FR3.upper - FR3.lower)
)


@given(JOINTS)
def test_the_formula_is_libfrankas(q: np.ndarray) -> None:
    low, high = FR3_ENDS.most(q)
    expected = published(q)
    most = FR3.velocity - 1e-3  # the header's own cap; ours is beside it, in the joint's own limit
    assert np.allclose(np.minimum(high, most), expected[1], atol=1e-12)
    assert np.allclose(np.maximum(low, -most), expected[0], atol=1e-12)


@given(JOINTS, st.floats(0.0, 0.3))
def test_a_speed_held_for_as_long_as_said_still_fits_where_it_ends(q: np.ndarray, ahead_s: float) -> None:
    for speed in FR3_ENDS.most(q, ahead_s):
        low, high = published(q + speed * ahead_s)
        at_most = np.abs(speed) <= FR3.velocity - 1e-3
        assert ((speed >= low - 1e-9) & (speed <= high + 1e-9))[at_most].all()


@settings(max_examples=300)
@given(JOINTS, st.lists(st.floats(-1.0, 1.0), min_size=7, max_size=7), st.floats(0.0, 0.3))
def test_the_quick_look_misses_no_joint_that_is_too_fast_for_its_end(
    q: np.ndarray, share: list[float], ahead_s: float
) -> None:
    middle, speed = (FR3_ENDS.lower + FR3_ENDS.upper) / 2, np.array(share) * FR3.velocity
    low, high = FR3_ENDS.most(q, ahead_s)
    near = FR3_ENDS.near(middle, ahead_s).any(np.abs(q - middle).tolist(), np.abs(speed).tolist())
    assert near or ((low <= speed) & (speed <= high)).all()


def test_the_quick_look_is_as_narrow_as_the_limit_itself() -> None:
    middle = (FR3_ENDS.lower + FR3_ENDS.upper) / 2
    near, far = FR3_ENDS.near(middle, 0.1), 0.6 * (FR3_ENDS.upper - middle)
    most = FR3_ENDS.most(middle + far, 0.1)[1]
    for joint in range(7):
        at, speed = np.zeros(7), np.zeros(7)
        at[joint], speed[joint] = far[joint], most[joint]
        assert not near.any(at.tolist(), np.maximum(speed - 1e-6, 0.0).tolist())
        assert near.any(at.tolist(), (speed + 1e-6).tolist())


def test_at_the_outermost_angle_nothing_moves() -> None:
    low, high = FR3_ENDS.reachable()
    assert np.allclose(FR3_ENDS.most(high)[1], 0.0, atol=1e-9) and np.allclose(FR3_ENDS.most(low)[0], 0.0, atol=1e-9)


@pytest.mark.parametrize("name", SHIPPED)
@settings(max_examples=15, deadline=None)
@given(joint=st.integers(0, 6), end=st.sampled_from([-1, 1]), seed=st.integers(0, 10**6))
def test_the_shipped_cells_slow_down_before_every_end(name: str, joint: int, end: int, seed: int) -> None:
    """From the middle of the other joints' range straight at an end, as fast as the cell allows, and there again."""
    robot = cell_named(name).robot
    box = {"box_min_m": (-2.0, -2.0, -2.0), "box_max_m": (2.0, 2.0, 2.0)}
    wide = robot.limits.model_copy(update={**box, "tool_speed_m_s": 9.0})
    limiter = Limiter(FR3, limits_of(FR3, wide, None), 1 / robot.control_hz)
    far = 0.3 + 0.5 * np.random.default_rng(seed).random()
    goal = FR3.home.copy()
    goal[joint] = (FR3.upper if end > 0 else FR3.lower)[joint]
    start = goal.copy()
    start[joint] -= end * far
    limiter.reset(start)
    rows = [np.repeat(start[None, :], 2, axis=0)]
    rows += [limiter.follow(np.repeat((goal + 0.2 * end * np.eye(7)[joint])[None, :], 10, axis=0)).q for _ in range(30)]
    path = np.concatenate(rows)
    speed = np.diff(path, axis=0) * robot.control_hz
    allowed = np.array([published(q) for q in path[1:]])
    assert ((speed >= allowed[:, 0]) & (speed <= allowed[:, 1])).all()
    assert abs(path[-1, joint] - goal[joint]) < 0.08, "it comes near the end all the same"
