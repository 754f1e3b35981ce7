"""Claims about a cell's limits: none of them is wider than the robot's maker allows, not for one joint either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labctl.config.cell_schema import Limits
from labctl.drivers.common.limits import limits_of
from labctl.drivers.common.robot_tables import FR3, UR5, UR5E, RobotModel
from labctl.errors import InputError

JOINTS = [pytest.param(arm, joint, id=f"{arm.name}-{joint}") for arm in (FR3, UR5, UR5E) for joint in range(arm.dof)]


def as_published(arm: RobotModel, **changed: Any) -> Limits:
    rows = {"velocity_rad_s": arm.velocity.tolist(), "acceleration_rad_s2": arm.acceleration.tolist()}
    return Limits(**{**rows, "box_min_m": [-1.0, -1.0, -1.0], "box_max_m": [1.0, 1.0, 1.5], **changed})


@pytest.mark.parametrize("arm", [FR3, UR5, UR5E], ids=lambda arm: arm.name)
def test_what_the_maker_allows_is_taken(arm: RobotModel) -> None:
    found = limits_of(arm, as_published(arm), arm.home)
    assert (found.velocity == arm.velocity).all() and (found.acceleration == arm.acceleration).all()


@pytest.mark.parametrize("name", ["velocity_rad_s", "acceleration_rad_s2"])
@pytest.mark.parametrize(("arm", "joint"), JOINTS)
def test_one_joint_beyond_it_is_refused(arm: RobotModel, joint: int, name: str) -> None:
    allowed = getattr(as_published(arm), name)
    row = [float(np.nextafter(most, np.inf)) if i == joint else most for i, most in enumerate(allowed)]
    with pytest.raises(InputError, match=f"{name} must be above 0 and at most what the {arm.name} allows"):
        limits_of(arm, as_published(arm, **{name: row}), arm.home)
