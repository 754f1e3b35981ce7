"""A robot led on until it is where it was sent, however long the machine takes that it runs on."""

from __future__ import annotations

import numpy as np

from labctl.testing.robot import RobotRig
from labctl.testing.robot_rig import PATIENCE_NS


def off(rig: RobotRig, at: np.ndarray) -> float:
    """How far the joint that is furthest from `at` (dof,) is from there, rad."""
    return float(np.abs(rig.robot.observe()["q"] - at).max())


def arrives(rig: RobotRig, at: np.ndarray) -> None:
    """The last setpoint is given until the robot is there: an emulator that waits for its turn takes its time."""
    over_ns = rig.now_ns + PATIENCE_NS
    while off(rig, at) > 1e-3:
        status = rig.robot.status()
        assert status.mode in ("idle", "moving") and rig.now_ns < over_ns, (off(rig, at), status)
        rig.follow(np.repeat(at[None, :], 10, axis=0))
