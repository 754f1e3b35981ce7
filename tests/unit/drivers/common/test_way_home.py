"""The way home goes up before it goes over, keeps every limit, and is refused in words where it leaves the box."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import Limits, limits_of
from labctl.drivers.common.robot_tables import FR3, UR5E, Arm
from labctl.drivers.common.way_home import way_home
from support.robots.cells import cell_named

from labctl.errors import DeviceRefused, InputError

PERIOD_S = 0.01


def _limits(arm: Arm, **changed: Any) -> Limits:
    table = cell_named("emulated_fr3" if arm is FR3 else "emulated_ur5e")["robot"]["limits"]
    return limits_of(arm, {**table, **changed}, arm.home)


def _places(arm: Arm, q: np.ndarray) -> np.ndarray:
    return kinematics.positions(arm.chain, q).T


def _in_tote(arm: Arm) -> np.ndarray:
    return arm.inverse(np.array([[0.48, 0.24, 0.03, 1.0, 0.0, 0.0, 0.0]]), arm.home)[0]


@pytest.mark.parametrize("arm", [FR3, UR5E], ids=lambda arm: arm.name)
def test_out_of_a_tote_the_tool_goes_straight_up_before_it_goes_over(arm: Arm) -> None:
    start = _in_tote(arm)
    at = _places(arm, way_home(arm, _limits(arm), start, arm.home, 0.5, PERIOD_S))
    inside = at[:, 2] < 0.12  # the rim of the fixture's totes
    assert inside.sum() > 10
    assert np.abs(at[inside, :2] - [0.48, 0.24]).max() < 2e-3
    assert np.abs(at[-1] - _places(arm, arm.home[None, :])[0]).max() < 1e-9


@pytest.mark.parametrize("arm", [FR3, UR5E], ids=lambda arm: arm.name)
@pytest.mark.parametrize("seed", range(6))
def test_from_anywhere_in_the_box_no_limit_is_broken_on_the_way(arm: Arm, seed: int) -> None:
    rng, limits = np.random.default_rng(seed), _limits(arm)
    place = rng.uniform([0.35, -0.3, 0.03], [0.6, 0.3, 0.3])
    start = arm.inverse(np.array([[*place, 1.0, 0.0, 0.0, 0.0]]), arm.home)[0]
    q = way_home(arm, limits, start, arm.home, 0.5, PERIOD_S)
    path = np.concatenate([start[None, :], start[None, :], q, q[-1:]])
    speed = np.diff(path, axis=0) / PERIOD_S
    assert np.abs(speed).max() <= 0.5 + 1e-9
    assert (np.abs(np.diff(speed, axis=0)) / PERIOD_S <= limits.acceleration).all()
    at = _places(arm, path)
    assert ((at >= limits.box_min - 1e-3) & (at <= limits.box_max + 1e-3)).all()
    assert np.linalg.norm(np.diff(at, axis=0), axis=1).max() / PERIOD_S <= limits.tool_speed


def test_a_lift_goes_as_high_as_the_arm_can_and_is_refused_where_that_is_too_low() -> None:
    start = FR3.inverse(np.array([[0.72, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0]]), FR3.home)[0]
    wide = replace(_limits(FR3), box_max=np.array([0.9, 0.6, 1.2]))
    up = FR3.home.copy()
    up[1], up[3], up[5] = -0.6, -0.9, 1.6  # a home that far out the tool cannot be lifted to
    assert _places(FR3, up[None, :])[0, 2] > 0.6
    at = _places(FR3, way_home(FR3, wide, start, up, 0.5, PERIOD_S))
    straight = at[np.abs(at[:, 0] - 0.72) < 2e-3]
    assert 0.05 + 0.15 < straight[:, 2].max() < 0.6
    short = replace(wide, upper=np.minimum(FR3.upper, start + 0.05), lower=np.maximum(FR3.lower, start - 0.05))
    with pytest.raises(DeviceRefused, match=r"cannot be lifted straight up by 1\.01 m, to the height of home"):
        way_home(FR3, short, start, up, 0.5, PERIOD_S)


def test_a_way_that_leaves_the_box_is_refused_in_words() -> None:
    start, home = FR3.home.copy(), FR3.home.copy()
    start[0], home[0] = -0.9, 0.9  # swings out beyond x = 0.4 in between
    limits = replace(_limits(FR3), box_max=np.array([0.4, 0.6, 0.8]))
    with pytest.raises(DeviceRefused, match=r"the way home leaves the workspace box at x = 0\.42 m .*lead it by hand"):
        way_home(FR3, limits, start, home, 0.5, PERIOD_S)


def test_an_arm_that_stands_outside_the_box_comes_back_and_goes_no_further_out() -> None:
    start = FR3.home.copy()
    start[0] = 1.2
    limits = replace(_limits(FR3), box_max=np.array([0.8, 0.2, 0.8]))
    assert _places(FR3, start[None, :])[0, 1] > 0.35
    q = way_home(FR3, limits, start, FR3.home, 0.5, PERIOD_S)
    assert np.diff(_places(FR3, q)[:, 1]).max() <= 1e-9


def test_an_arm_at_home_has_no_way_to_go() -> None:
    assert len(way_home(FR3, _limits(FR3), FR3.home, FR3.home, 0.5, PERIOD_S)) == 1


def test_the_box_must_hold_the_cells_own_home_and_not_ours() -> None:
    away = UR5E.home.copy()
    away[0] += -np.pi / 2
    table = cell_named("emulated_ur5e")["robot"]["limits"]
    x, y, z = _places(UR5E, away[None, :])[0]
    box = {"box_min_m": [x - 0.3, y - 0.3, z - 0.3], "box_max_m": [x + 0.3, y + 0.3, z + 0.3]}
    assert limits_of(UR5E, {**table, **box}, away).box_min[1] < -0.5
    assert limits_of(UR5E, {**table, **box}, None).box_min[1] < -0.5, "an arm that stays where it is has no home"
    with pytest.raises(InputError, match=r"must hold the home of the ur5e, where the tool is at"):
        limits_of(UR5E, {**table, **box}, UR5E.home)
