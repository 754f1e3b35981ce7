"""The way home goes up before it goes over, keeps every limit, and is refused in words where it leaves the box."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named

from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import Limits, limits_of
from labctl.drivers.common.robot_tables import FR3, HAND_M, UR5E, RobotModel, Tool, with_tool
from labctl.drivers.common.servo.way_home import way_home
from labctl.errors import DeviceRefused, InputError

PERIOD_S = 0.01


def _limits(arm: RobotModel, **changed: Any) -> Limits:
    table = cell_named("emulated_fr3" if arm is FR3 else "emulated_ur5e").robot.limits
    return limits_of(arm, table.model_copy(update=changed), arm.home)


def _places(arm: RobotModel, q: np.ndarray) -> np.ndarray:
    return kinematics.positions(arm.chain, q).T


def _cut(arm: RobotModel) -> list[kinematics.Chain]:
    """The robot up to each of its links."""
    return [replace(arm.chain, rows=arm.chain.rows[:k], tool_z=0.0) for k in range(2, arm.dof + 1)]


def _kept(arm: RobotModel, limits: Limits, start: np.ndarray, q: np.ndarray) -> None:
    """No limit of joints, tool or box is broken from rest at start to rest at the end of q."""
    path = np.concatenate([start[None, :], start[None, :], q, q[-1:]])
    speed = np.diff(path, axis=0) / PERIOD_S
    assert np.abs(speed).max() <= 0.5 + 1e-9
    assert (np.abs(np.diff(speed, axis=0)) / PERIOD_S <= limits.acceleration).all()
    at = _places(arm, path)
    assert ((at >= limits.box_min - 1e-3) & (at <= limits.box_max + 1e-3)).all()
    assert np.linalg.norm(np.diff(at, axis=0), axis=1).max() / PERIOD_S <= limits.tool_speed


def _in_tote(arm: RobotModel) -> np.ndarray:
    return arm.inverse(np.array([[0.48, 0.24, 0.03, 1.0, 0.0, 0.0, 0.0]]), arm.home)[0]


@pytest.mark.parametrize("arm", [FR3, UR5E], ids=lambda arm: arm.name)
def test_out_of_a_tote_the_tool_goes_straight_up_before_it_goes_over(arm: RobotModel) -> None:
    start = _in_tote(arm)
    at = _places(arm, way_home(arm, _limits(arm), start, arm.home, 0.5, PERIOD_S))
    inside = at[:, 2] < 0.12  # the rim of the fixture's totes
    assert inside.sum() > 10
    assert np.abs(at[inside, :2] - [0.48, 0.24]).max() < 2e-3
    assert np.abs(at[-1] - _places(arm, arm.home[None, :])[0]).max() < 1e-9


@pytest.mark.parametrize("arm", [FR3, UR5E], ids=lambda arm: arm.name)
@pytest.mark.parametrize("seed", range(6))
def test_from_anywhere_in_the_box_no_limit_is_broken_on_the_way(arm: RobotModel, seed: int) -> None:
    rng, limits = np.random.default_rng(seed), _limits(arm)
    place = rng.uniform([0.35, -0.3, 0.03], [0.6, 0.3, 0.3])
    start = arm.inverse(np.array([[*place, 1.0, 0.0, 0.0, 0.0]]), arm.home)[0]
    q = way_home(arm, limits, start, arm.home, 0.5, PERIOD_S)
    _kept(arm, limits, start, q)


def test_a_lift_goes_as_high_as_the_arm_can() -> None:
    start = FR3.inverse(np.array([[0.72, 0.0, 0.05, 1.0, 0.0, 0.0, 0.0]]), FR3.home)[0]
    wide = replace(_limits(FR3), box_max=np.array([0.9, 0.6, 1.2]))
    up = FR3.home.copy()
    up[1], up[3], up[5] = -0.6, -0.9, 1.6  # a home that far out the tool cannot be lifted to
    assert _places(FR3, up[None, :])[0, 2] > 0.6
    at = _places(FR3, way_home(FR3, wide, start, up, 0.5, PERIOD_S))
    straight = at[np.abs(at[:, 0] - 0.72) < 2e-3]
    assert 0.05 + 0.15 < straight[:, 2].max() < 0.6


HIGH = np.array([0.0, -0.4, 0.0, -1.4, 0.0, 1.9, 0.8])  # the FR3's tool above all that stands there
TILTS = {FR3.name: ((1, 0.5), (1, 0.9), (2, 0.9), (2, -0.9), (5, -0.5), (5, -1.0)), UR5E.name: ((1, -0.9), (3, 1.0))}
TILTED = [(arm, *tilt) for arm in (FR3, UR5E) for tilt in TILTS[arm.name]]


@pytest.mark.parametrize(("arm", "joint", "by"), TILTED, ids=lambda value: getattr(value, "name", str(value)))
def test_a_hand_that_cannot_be_kept_as_it_is_turns_while_it_is_lifted(arm: RobotModel, joint: int, by: float) -> None:
    home = HIGH if arm is FR3 else arm.home
    limits = replace(_limits(arm), box_min=np.full(3, -1.5), box_max=np.full(3, 1.5))
    start = home + by * np.eye(arm.dof)[joint]
    q = way_home(arm, limits, start, home, 0.5, PERIOD_S)
    _kept(arm, limits, start, q)
    assert np.abs(q[-1] - home).max() < 1e-9
    at = _places(arm, np.concatenate([start[None, :], q]))
    if at[-1, 2] > at[0, 2] + 0.15:
        risen = at[at[:, 2] < at[0, 2] + 0.1]
        assert np.abs(risen[:, :2] - at[0, :2]).max() < 2e-3, "sideways before it was up"


@pytest.mark.parametrize("name", ["emulated_fr3", "emulated_ur5e", "fr3_droid_cell", "ur5e_cell"])
def test_only_where_the_joints_straight_way_leaves_the_box_is_an_arm_refused(name: str) -> None:
    """Seeded starts all over the box, the hand at any angle, no limit broken on the ways that are found."""
    robot = cell_named(name).robot
    options = robot.options.get("driver_options", robot.options)
    arm = with_tool(FR3 if "fr3" in name else UR5E, Tool((0.0, 0.0, options.get("tool_z_m", HAND_M))))
    home = arm.home if options["home_rad"] == "default" else np.array(options["home_rad"])
    limits, rng = limits_of(arm, robot.limits, home), np.random.default_rng(3)
    q = rng.uniform(np.maximum(limits.lower, home - 1.5), np.minimum(limits.upper, home + 1.5), (400, arm.dof))
    at = _places(arm, q)
    starts = q[((at > limits.box_min) & (at < limits.box_max)).all(axis=1)][:12]
    assert len(starts) == 12
    refused = 0
    for start in starts:
        try:
            _kept(arm, limits, start, way_home(arm, limits, start, home, 0.5, PERIOD_S))
        except DeviceRefused:
            refused += 1
            straight = start + np.linspace(0.0, 1.0, 200)[:, None] * (home - start)
            heights = [kinematics.positions(chain, straight)[2].min() for chain in _cut(arm)]
            at = _places(arm, straight)
            outside = (at < limits.box_min).any() or (at > limits.box_max).any()
            assert outside or min(heights) < limits.box_min[2]
    assert refused < 4


def test_an_arm_that_cannot_be_lifted_at_all_goes_straight_by_its_joints_where_that_stays_in_the_box() -> None:
    start = FR3.inverse(np.array([[0.6, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0]]), FR3.home)[0]
    limits = _limits(FR3)
    stuck = replace(limits, upper=np.minimum(FR3.upper, start + 1e-6), lower=np.maximum(FR3.lower, start - 1e-6))
    home = start + 0.3 * np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    q = way_home(FR3, stuck, start, home, 0.5, PERIOD_S)
    along = (q - start) @ (home - start) / ((home - start) @ (home - start))
    assert np.abs(q - start - along[:, None] * (home - start)).max() < 1e-9
    narrow = replace(stuck, box_max=np.array([0.8, 0.6, float(_places(FR3, home[None, :])[0, 2]) - 0.02]))
    with pytest.raises(DeviceRefused, match=r"the way home leaves the workspace box at z"):
        way_home(FR3, narrow, start, home, 0.5, PERIOD_S)


def test_a_way_on_which_a_link_comes_below_the_box_is_refused_though_the_tool_stays_inside() -> None:
    robot = cell_named("ur5e_cell").robot
    arm, home = with_tool(UR5E, Tool((0.0, 0.0, robot.options["tool_z_m"]))), np.array(robot.options["home_rad"])
    limits = limits_of(arm, robot.limits, home)
    limits = replace(limits, box_min=np.array([*limits.box_min[:2], 0.02]))
    start = np.array([1.69, 0.14, 3.03, 0.08, 0.29, 1.17])
    at = _places(arm, start + np.linspace(0.0, 1.0, 200)[:, None] * (home - start))
    assert ((at >= limits.box_min) & (at <= limits.box_max)).all()
    with pytest.raises(DeviceRefused, match=r"the robot itself comes below the workspace box at z = 0\.00 m"):
        way_home(arm, limits, start, home, 0.5, PERIOD_S)


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
    table = cell_named("emulated_ur5e").robot.limits
    x, y, z = _places(UR5E, away[None, :])[0]
    box = {"box_min_m": (x - 0.3, y - 0.3, z - 0.3), "box_max_m": (x + 0.3, y + 0.3, z + 0.3)}
    moved = table.model_copy(update=box)
    assert limits_of(UR5E, moved, away).box_min[1] < -0.5
    assert limits_of(UR5E, moved, None).box_min[1] < -0.5, "a robot that stays where it is has no home"
    with pytest.raises(InputError, match=r"must hold the home of the ur5e, where the tool is at"):
        limits_of(UR5E, moved, UR5E.home)
