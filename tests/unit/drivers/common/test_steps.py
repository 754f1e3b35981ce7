"""Steps of a policy as they are given to a robot under a law: at once, and inside the cell's limits all the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.robots.droid_law import FLANGE, KQ, KQD, KX, KXD

from labctl.config.cell_schema import Limits
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import AHEAD_S, limits_of
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.steps import StepLimiter
from labctl.drivers.franka.impedance import DroidLaw

WIDE = Limits(
    velocity_rad_s=FR3.velocity.tolist(),
    acceleration_rad_s2=[10.0] * 7,
    box_min_m=[-1.0, -1.0, -1.0],
    box_max_m=[1.0, 1.0, 1.5],
)
LAW = DroidLaw(FR3)
STEPS = st.lists(st.floats(-0.6, 0.6), min_size=7, max_size=7).map(np.array)


def limiter(cell: Limits, at: np.ndarray) -> StepLimiter:
    made = StepLimiter(FR3, limits_of(FR3, cell, None), LAW.rate, lambda: at)
    made.reset(at)
    return made


def test_a_step_that_keeps_the_limits_is_the_target_at_once() -> None:
    """DROID's longest step: 0.2 rad, in one joint."""
    goal = FR3.home + 0.2 * np.eye(7)[3]
    made = limiter(WIDE, FR3.home)
    assert (made.follow(np.repeat(goal[None, :], 3, axis=0)).q == goal).all() and not made.clipped
    assert made.brake_tail().shape == (0, 7)


def test_the_speed_a_step_leads_to_is_that_of_polymetis_law() -> None:
    """Torques of stiffness and damping are equal in steady motion: K e = D v, with the gains of DROID's files."""
    q = FR3.home + np.linspace(-0.3, 0.3, 7)
    jacobian = kinematics.jacobian(FLANGE, q[None, :])[0][0]
    stiffness = np.diag(KQ) + jacobian.T @ np.diag(KX) @ jacobian
    damping = np.diag(KQD) + jacobian.T @ np.diag(KXD) @ jacobian
    assert np.allclose(damping @ LAW.rate(q), stiffness, atol=1e-9)


def test_gains_moved_to_the_tool_act_as_they_do_at_the_flange() -> None:
    """The same torques for any error of the joints: J_tool' K_tool J_tool = J_flange' K J_flange."""
    q = FR3.home + np.linspace(0.2, -0.3, 7)
    stiffness, damping = LAW.at_tool(q)
    tool, flange = (kinematics.jacobian(chain, q[None, :])[0][0] for chain in (FR3.chain, FLANGE))
    assert np.allclose(tool.T @ stiffness @ tool, flange.T @ np.diag(KX) @ flange, atol=1e-9)
    assert np.allclose(tool.T @ damping @ tool, flange.T @ np.diag(KXD) @ flange, atol=1e-9)


@settings(max_examples=80, deadline=None)
@given(STEPS)
def test_no_step_leads_faster_or_further_than_the_cell_allows(step: np.ndarray) -> None:
    tight = Limits(
        velocity_rad_s=[0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0],
        acceleration_rad_s2=[2.2] * 7,
        box_min_m=[0.3, -0.1, 0.3],
        box_max_m=[0.5, 0.1, 0.4],
        tool_speed_m_s=0.4,
    )
    made = limiter(tight, FR3.home)
    found = made.follow((FR3.home + step)[None, :]).q[0]
    speed = LAW.rate(FR3.home) @ (found - FR3.home)
    assert (np.abs(speed) <= np.array(tight.velocity_rad_s) + 1e-9).all()
    tool = kinematics.jacobian(FR3.chain, FR3.home[None, :])[0][0, :3] @ speed
    assert np.linalg.norm(tool) <= 0.4 + 1e-9
    at = kinematics.positions(FR3.chain, found[None, :])[:, 0]
    assert (at >= np.array(tight.box_min_m)).all() and (at <= np.array(tight.box_max_m)).all()
    assert bool(made.clipped) == (not np.allclose(found, FR3.home + step))


@pytest.mark.parametrize("joint", range(7))
@pytest.mark.parametrize("end", [-1, 1])
def test_near_the_end_of_a_joint_a_step_leads_no_faster_than_the_robot_allows_there(joint: int, end: int) -> None:
    ends = FR3.ends
    assert ends is not None
    low, high = ends.reachable()
    for left in (0.02, 0.1, 0.3):
        at = FR3.home.copy()
        at[joint] = high[joint] - left if end > 0 else low[joint] + left
        goal = at + 0.4 * end * np.eye(7)[joint]
        found = limiter(WIDE, at).follow(goal[None, :]).q[0]
        speed = LAW.rate(at) @ (found - at)
        least, most = ends.most(at, AHEAD_S)
        assert (speed <= most + 1e-9).all() and (speed >= least - 1e-9).all()
        assert (found <= high + 1e-12).all() and (found >= low - 1e-12).all()


def test_an_arm_outside_the_box_stays_until_a_step_leads_inside() -> None:
    high = kinematics.positions(FR3.chain, FR3.home[None, :])[2, 0]
    box = {"box_min_m": [-1.0, -1.0, high + 0.01], "box_max_m": [1.0, 1.0, 1.5]}
    made = limiter(WIDE.model_copy(update=box), FR3.home)
    lifts, lowers = FR3.home.copy(), FR3.home.copy()
    lifts[1] -= 0.1
    lowers[1] += 0.1
    assert (made.follow(lowers[None, :]).q[0] == FR3.home).all() and made.clipped == "workspace box z"
    assert np.allclose(made.follow(lifts[None, :]).q[0], lifts) and not made.clipped


def test_a_row_that_is_no_number_leaves_the_target_where_it_is() -> None:
    made = limiter(WIDE, FR3.home)
    rows = np.array([FR3.home + 0.05, np.full(7, np.nan)])
    assert (made.follow(rows).q[1] == FR3.home + 0.05).all()
