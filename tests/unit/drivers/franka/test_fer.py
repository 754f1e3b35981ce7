"""The FER (Panda) by analogy: its own limits where an FR3's would be too wide or too narrow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FER, FR3
from labctl.drivers.franka.impedance import DroidLaw
from labctl.drivers.franka.options import FRANKY_RAD_S, FRANKY_RAD_S2, FrankaOptions
from labctl.errors import InputError


def test_frankys_own_limits_are_the_fers() -> None:
    """franky 2.0.0 has them for every robot; a test asks the wheel (emulators/test_vendor_kinematics)."""
    assert FER.velocity.tolist() == list(FRANKY_RAD_S) and FER.acceleration.tolist() == list(FRANKY_RAD_S2)
    assert (FER.ends, FER.chain) == (None, FR3.chain)
    assert ((FER.lower < FER.home) & (FER.home < FER.upper)).all()


def test_its_inverse_keeps_to_its_own_joints() -> None:
    q = FER.home + np.array([0.2, 0.1, 0.0, 0.2, 0.0, 0.1, -0.3])
    pose = np.array([kinematics.pose(FER.chain, q.tolist())])
    found = FER.inverse(pose, q + 0.01)
    assert np.abs(kinematics.positions(FER.chain, found) - pose[:, :3].T).max() < 1e-6
    assert ((found >= FER.lower) & (found <= FER.upper)).all()


def test_a_cell_names_it_and_droids_gains_for_it_are_stiffer() -> None:
    assert FrankaOptions.read({"host": "127.0.0.1", "model": "fer"}, "franka").model == "fer"
    with pytest.raises(InputError, match="fr3"):
        FrankaOptions.read({"host": "127.0.0.1", "model": "panda"}, "franka")
    assert DroidLaw(FER).flange_stiffness[0] == 750.0 and DroidLaw(FR3).flange_stiffness[0] == 400.0


def test_franky_is_bounded_by_the_robots_own_limits() -> None:
    """No motion, and no stop, beyond nine tenths of what the robot allows: joint 2 of an FER may 7.5 rad/s2."""
    pytest.importorskip("franky")
    from labctl.drivers.franka.robot import FrankaLink

    class Limit:
        def __init__(self, most: Any) -> None:
            self.max = self.now = most

        def set(self, value: Any) -> None:
            self.now = value

    for arm, second in ((FR3, 10.0), (FER, 7.5)):
        options = FrankaOptions.read({"host": "127.0.0.1", "model": arm.name, "dynamics_factor": 0.5}, "franka")
        link = FrankaLink(arm, options, cell_named("emulated_fr3").robot)
        tool = {f"{part}_{what}_limit": Limit(9e9) for part in ("translation", "rotation") for what in TOOL}
        robot: Any = SimpleNamespace(
            joint_acceleration_limit=Limit(np.full(7, 100.0)), joint_jerk_limit=Limit(np.full(7, 1e5)), **tool
        )
        link._bound(robot)
        assert np.isclose(robot.joint_acceleration_limit.now[1] * 0.5, 0.9 * second)


TOOL = ("acceleration", "jerk")
