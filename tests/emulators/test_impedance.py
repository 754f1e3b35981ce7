"""Under `servo = "impedance"` the installed franky moves the emulated FR3 as polymetis's law moves a simulated one.

By the robot's own clock alone: how quick this machine is does not show.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.droid_law import STEP_S, UNIT_RAD, acting, moved
from support.robots.droid_rig import droid_rig, pulled

from labctl.clock import MILLISECOND
from labctl.testing.robot import RobotRig

pytestmark = [pytest.mark.real_time, pytest.mark.busy, pytest.mark.thorough]


@pytest.fixture(scope="module")
def robot_of() -> Iterator[RobotRig]:
    """An emulated FR3 whose cell leaves the law alone."""
    with droid_rig(cell_named("emulated_fr3"), "impedance") as made:
        yield made


@pytest.fixture
def rig(robot_of: RobotRig) -> RobotRig:
    robot_of.recover()
    robot_of.stage()
    robot_of.wait(200 * MILLISECOND)
    return robot_of


@pytest.mark.parametrize("joint", [0, 3, 5])
def test_a_step_is_answered_as_the_law_answers_it(rig: RobotRig, joint: int) -> None:
    """DROID's full unit in one joint: 0.2 rad. To within a twentieth of the step in every joint at all times, the
    two laid over each other in time: the robot's own time of the first target is not told.
    """
    start = rig.robot.observe()["q"]
    goal = start + UNIT_RAD * np.eye(7)[joint]
    _, q = pulled(rig, lambda at_s, _: goal if at_s < 1.0 else None)
    law = moved(start, lambda now, _: goal, 800)
    off = [np.abs(q[begin : begin + 600] - law[:600]).max(axis=0) for begin in range(min(200, len(q) - 600))]
    best = min(off, key=lambda row: float(row.max()))
    assert best.max() < UNIT_RAD / 20, best


@pytest.mark.parametrize("joint", [0, 1, 4, 6])
def test_a_policy_of_droid_moves_the_arm_as_fast_as_polymetis_would(rig: RobotRig, joint: int) -> None:
    """A joint velocity of 1: 0.2 rad beyond the measured joints, fifteen times a second."""
    unit, held = np.eye(7)[joint], [np.zeros(7)]
    due = [0.0]

    def wanted(at_s: float, q: np.ndarray) -> np.ndarray | None:
        if at_s >= due[0]:
            due[0], held[0] = due[0] + STEP_S, q + UNIT_RAD * unit
        return held[0] if at_s < 0.6 else None

    start = rig.robot.observe()["q"]
    t_s, q = pulled(rig, wanted)
    law = moved(start, acting(unit), 600)
    late = (t_s > 0.3) & (t_s < 0.58)
    ours = np.polyfit(t_s[late], q[late, joint], 1)[0]
    theirs = np.polyfit(np.arange(300, 580) / 1000, law[300:580, joint], 1)[0]
    assert 0.85 < ours / theirs < 1.1, (ours, theirs)  # a target comes up to two of our visits after its step
