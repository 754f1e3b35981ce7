"""An FR3's joints come back when its tool does, and no pose is answered from another branch than its neighbour (20.5).

The bars are the issue's: 0.02 rad after a closed loop, 0.05 rad after a minute, no joint beyond its limit in 50 ms. The
way before had 0.07 rad after one loop of the leaning tool and 0.85 rad after a minute.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.tool_loops import LOOPS, PLACE, TILT_RAD, before, drift, leaning, led, tilted

from labctl.drivers.common import kinematics, null_space
from labctl.drivers.common.robot_tables import FR3, FR3_POSTURE, FR3_UPPER

RATE_HZ = 15.0  # of DROID's policies
MOST_RAD_S = np.array(cell_named("fr3_droid_cell").robot.limits.velocity_rad_s)


def _swung(by: float) -> np.ndarray:
    """The joints of home, the elbow swung aside while the tool stays, as a person's hand leaves a robot."""
    q = FR3.home.copy()
    for _ in range(20):
        swing = np.linalg.svd(kinematics.jacobian(FR3.chain, q[None, :])[0][0])[2][-1]
        q = q + by / 20 * swing * np.sign(swing[2])
    return q


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOOPS)
def test_the_joints_are_back_after_a_closed_loop_and_do_not_drift_in_a_minute(name: str) -> None:
    found = drift(FR3.method, LOOPS[name], leaning(FR3.method), RATE_HZ)
    assert found[0] < 0.02
    assert found.max() < 0.05


def test_an_arm_whose_elbow_was_swung_aside_comes_to_its_posture_and_then_drifts_no_more() -> None:
    loop = LOOPS["circle of 0.1 m"]
    q = _swung(0.4)
    pose = np.array(kinematics.pose(FR3.chain, q.tolist()))
    each = round(loop.takes_s * RATE_HZ)
    way = np.array([[*(pose[:3] + loop.at((i + 1) / each)), *pose[3:]] for i in range(each)])
    rows = np.array(list(led(FR3.method, np.tile(way, (6, 1)), q)))
    ends = rows[each - 1 :: each]
    assert abs(q[2]) > 0.2 and abs(ends[-1][2]) < 1e-3  # joint 3 rests at zero
    assert np.abs(np.diff(ends[-3:], axis=0)).max() < 0.005
    assert (np.abs(np.diff(rows, axis=0, prepend=q[None, :])) * RATE_HZ <= MOST_RAD_S).all()


def test_an_elbow_swings_for_no_tool_that_stays() -> None:
    q = _swung(0.4)
    pose = np.array(kinematics.pose(FR3.chain, q.tolist()))
    assert np.abs(FR3.inverse(np.repeat(pose[None, :], 4, axis=0), q) - q).max() < 1e-9


@pytest.mark.parametrize("swing", [0.0, 0.4])
def test_a_tool_that_comes_back_to_straight_down_turns_no_joint_beyond_its_limit_in_50_ms(swing: float) -> None:
    """Whatever branch the robot is on: it snapped by 0.28 rad onto that of the closed form."""
    q = leaning(FR3.method) if not swing else _swung(swing)
    lean = TILT_RAD if not swing else 0.0
    first = np.array(kinematics.pose(FR3.chain, q.tolist()))[:3]
    n = 60 * 2
    ways = np.column_stack([np.linspace(0, 1, n)] * 3) * (np.array(PLACE) - first) + first
    turns = np.array([tilted(lean * max(0.0, 1 - 2 * i / n)) for i in range(n)])
    rows = np.array(list(led(FR3.method, np.column_stack([ways, turns]), q)))
    assert (np.abs(np.diff(rows, axis=0, prepend=q[None, :])) <= 0.05 * MOST_RAD_S).all()
    assert np.abs(kinematics.positions(FR3.chain, rows).T - ways).max() < 1e-6


def test_a_hand_that_turns_on_and_on_meets_the_end_of_its_joint_and_not_another_branch() -> None:
    """The closed form answers a yaw beyond half a turn from the joint's other end, 6 rad away."""
    x, y, z = PLACE
    yaws = np.arange(0.0, 4.0, 0.02)
    poses = np.array([[x, y, z, math.cos(yaw / 2), -math.sin(yaw / 2), 0.0, 0.0] for yaw in yaws])
    rows = np.array(list(led(FR3.method, poses, FR3.home)))
    old = np.array(list(led(before, poses, FR3.home)))
    assert np.abs(np.diff(old, axis=0)).max() > 5.0
    assert np.abs(np.diff(rows, axis=0)).max() < 0.1
    assert (rows <= FR3_UPPER + 1e-12).all() and rows[-1][6] > FR3_UPPER[6] - 0.1
    assert np.abs(rows[-1] - rows[-2]).max() == 0.0  # out of reach: it stays
    back = np.array(list(led(FR3.method, poses[::-1], rows[-1])))
    assert np.abs(np.diff(back, axis=0)).max() < 0.1 and np.abs(back[-1] - rows[0]).max() < 0.02


def test_a_joint_near_its_end_is_kept_from_it_by_the_elbow() -> None:
    """DROID's solver keeps 0.3 rad from the ends of the joints."""
    x, y, z = PLACE
    yaws = np.arange(0.0, -2.2, -0.02)
    poses = np.array([[x, y, z, math.cos(yaw / 2), math.sin(yaw / 2), 0.0, 0.0] for yaw in yaws])
    rows = np.array(list(led(FR3.method, poses, FR3.home)))
    closed = np.array(list(led(before, poses, FR3.home)))[-1]
    assert FR3_UPPER[6] - null_space.MARGIN_RAD < closed[6]
    assert rows[-1][6] < closed[6] - 0.005  # 0.23 of the elbow's swing is all that joint 7 has of it
    assert np.abs(kinematics.positions(FR3.chain, rows).T - poses[:, :3]).max() < 1e-6


def test_where_the_arm_is_in_the_plane_the_solver_gives_what_the_closed_form_gives() -> None:
    poses = np.array([[0.5, y, 0.2, 1.0, 0.0, 0.0, 0.0] for y in np.linspace(0.0, 0.3, 12)])
    found = null_space.joints(FR3.chain, poses, FR3.inverse(poses[:1], FR3.home)[0], FR3_POSTURE)
    assert np.abs(found - FR3.inverse(poses, FR3.home)).max() < 1e-4
