"""How far an FR3's joints wander while its tool goes round in closed loops: before issue 20.5 and now; printed, not
judged. `before` is kept in the tests as it was.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from support.robots.tool_loops import LOOPS, before, drift, leaning

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3

RATE_HZ = 50.0  # of a hand's


@pytest.mark.benchmark
@pytest.mark.parametrize("name", LOOPS)
def test_how_far_the_joints_wander(name: str) -> None:
    print()
    for what, inverse in (("before", before), ("now", FR3.method)):
        found = drift(inverse, LOOPS[name], leaning(inverse), RATE_HZ)
        print(f"{name}, {what}: {found[0]:.4f} rad after one loop, {found[-1]:.4f} rad after a minute")


@pytest.mark.benchmark
@pytest.mark.parametrize("n", [1, 16, 50])
def test_what_an_answer_takes(n: int) -> None:
    q = FR3.home + np.array([0.1, 0.05, 0.2, 0.1, 0.3, 0.1, 0.1])
    poses = np.array([kinematics.pose(FR3.chain, (q + 0.003 * i).tolist()) for i in range(1, n + 1)])
    took = {}
    for what, inverse in (("before", before), ("now", FR3.method)):
        began = time.process_time()
        for _ in range(50):
            inverse(FR3.chain, poses, q)
        took[what] = (time.process_time() - began) / 50
    print(f"\n{n} poses: {took['now'] / took['before']:.1f} times what they took before ({1e3 * took['now']:.1f} ms)")
