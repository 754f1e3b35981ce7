"""How fast an FR3 answers DROID's actions: by the law that DROID has, and by each servo of ours; printed, not judged.

The emulated FR3 through the installed franky, by the robot's own clock, with a cell that leaves speeds to the robot. A
step is 0.2 rad in one joint; a policy asks for a joint velocity of 1 at 15 Hz, from the measured joints. What the lab's
processes add is not in it.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.droid_law import STEP_S, UNIT_RAD, acting, moved
from support.robots.droid_rig import droid_rig, pulled

from labctl.drivers.common.robot_tables import FR3

JOINTS = (0, 1, 3, 4, 5, 6)
MS = 900


def rise(t_s: np.ndarray, q: np.ndarray, share: float) -> float:
    """When a joint has gone that share of DROID's unit, ms."""
    return 1e3 * float(t_s[int(np.argmax(q - q[0] > share * UNIT_RAD))])


def words(t_s: np.ndarray, q: np.ndarray) -> str:
    over = (float(q.max()) - q[0]) / UNIT_RAD - 1
    return f"half of a step after {rise(t_s, q, 0.5):.0f} ms, 90 % after {rise(t_s, q, 0.9):.0f} ms, {over:+.0%} beyond"


def speed(t_s: np.ndarray, q: np.ndarray) -> float:
    late = (t_s > 0.3) & (t_s < 0.58)
    return float(np.polyfit(t_s[late], q[late], 1)[0])


@pytest.mark.benchmark
def test_how_an_arm_answers_droids_actions() -> None:
    print()
    t_s = np.arange(MS) / 1000
    for joint in JOINTS:
        unit = np.eye(7)[joint]
        goal = FR3.home + UNIT_RAD * unit
        step, acted = moved(FR3.home, lambda now, q, goal=goal: goal, MS), moved(FR3.home, acting(unit), MS)
        found = f"{words(t_s, step[:, joint])}; {speed(t_s, acted[:, joint]):.2f} rad/s a unit"
        print(f"polymetis's law, joint {joint + 1}: {found}")


@pytest.mark.benchmark
@pytest.mark.parametrize("servo", ["velocity", "impedance"])
def test_how_the_driver_answers_them(servo: str) -> None:
    print()
    with droid_rig(cell_named("emulated_fr3"), servo) as rig:
        for joint in JOINTS:
            unit, due, held = np.eye(7)[joint], [0.0], [np.zeros(7)]
            rig.stage()
            goal = rig.robot.observe()["q"] + UNIT_RAD * unit
            t_s, q = pulled(rig, lambda at_s, _, goal=goal: goal if at_s < MS / 1000 else None)
            found = words(t_s, q[:, joint])
            rig.stage()

            def asks(at_s: float, q: np.ndarray, unit=unit, due=due, held=held) -> np.ndarray | None:
                if at_s >= due[0]:
                    due[0], held[0] = due[0] + STEP_S, q + UNIT_RAD * unit
                return held[0] if at_s < 0.6 else None

            t_s, q = pulled(rig, asks)
            print(f"{servo}, joint {joint + 1}: {found}; {speed(t_s, q[:, joint]):.2f} rad/s a unit")
