"""What files say of axes is refused in one line, at its place, where the robot has them otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.runs.axes import teleop

from labctl.axes import Axis, axes_of, composed, hand_of, prefixed, twist_of
from labctl.config.axes import NamedAxis, action_problem
from labctl.config.cell_schema import parse_cell
from labctl.drivers.common.simulated_axes import FR3_JOINTS, ON_A_BASE, ON_A_RAIL, RAIL, WITH_A_HAND
from labctl.errors import InputError
from labctl.store.driver_options import check_cell_options

ROOT = Path(__file__).resolve().parents[3]
CELL = (ROOT / "hw_configs" / "sim_rail.toml").read_text("utf-8")
PLAIN = (ROOT / "hw_configs" / "sim_fr3.toml").read_text("utf-8")
VACUUM = '[[robot.axis]]\nname = "vacuum"\nkind = "vacuum"\nunit = "1"\nvelocity = 4.0\n'


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        check_cell_options(parse_cell(text, "cell.toml"))
    said = str(error.value)
    assert "\n" not in said and re.match(r"cell\.toml:\d+: ", said), said
    return said


def test_the_shipped_cell_of_a_robot_on_a_rail_says_what_it_has() -> None:
    cell = parse_cell(CELL, "cell.toml")
    check_cell_options(cell)
    assert (cell.joints, cell.hand) == (8, 1)
    plain = parse_cell(PLAIN, "cell.toml")
    assert (plain.joints, plain.hand) == (7, 1), "as before there were axes"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('unit = "m"', 'unit = "mm"', "unit of axis 'rail' is 'mm'; an axis of kind prismatic is in m"),
        ('name = "rail"', 'name = "rial"', "sim_rail has no axis 'rial'; did you mean 'rail'?; beside its joints:"),
        ('kind = "prismatic"', 'kind = "opening"', "axis 'rail' of sim_rail is prismatic in m, found opening in m"),
        ("velocity = 0.5", "velocity = 5.0", "velocity of axis 'rail' is 5; sim_rail allows 0 to 0.6 m"),
        ("velocity = 0.5", "velocity = 0.5\nupper = 0.9", "upper of axis 'rail' is 0.9; sim_rail allows -0.4 to 0.4 m"),
        ("velocity = 0.5", "velocity = 0.5\nlower = 0.2\nupper = 0.1", "lower 0.2 is not below upper 0.1"),
        (VACUUM, "", "no limits of axis 'vacuum' of sim_rail; add a [[robot.axis]]"),
        ("velocity = 4.0", "velocity = 40.0", "velocity of axis 'vacuum' is 40; sim_rail allows 0 to 4 1"),
        (VACUUM, VACUUM + VACUUM, "'vacuum' appears twice in 'axis'"),
        ("2.5, 2.5, 2.5]", "2.5, 2.5]", "velocity_rad_s"),
        (
            'kind = "vacuum"\nunit = "1"',
            'kind = "twist"\nunit = "m/s"',
            "axis 'vacuum' of kind twist has no acceleration; say how much of its speed may come or go in a second",
        ),
        (
            "[lease]",
            '[teleop]\ndevice = "gamepad"\n[lease]',
            "nothing says how the device leads 'vacuum' of sim_rail; add a [[teleop.axis]]",
        ),
    ],
)
def test_what_the_robot_has_otherwise_is_refused_at_its_line(old: str, new: str, told: str) -> None:
    assert old in CELL
    assert told in refused(CELL.replace(old, new, 1))


BASE = (ROOT / "hw_configs" / "sim_base.toml").read_text("utf-8")


def test_the_shipped_cell_of_a_base_that_drives_says_what_it_has() -> None:
    cell = parse_cell(BASE, "cell.toml")
    check_cell_options(cell)
    assert (cell.joints, cell.hand) == (10, 1), "its three speeds are led with the joints"
    assert twist_of(ON_A_BASE) == (7, 8, 9) and not twist_of(ON_A_RAIL)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('unit = "m/s"', 'unit = "m"', "unit of axis 'base.vx' is 'm'; an axis of kind twist is in m/s or rad/s"),
        ('unit = "m/s"', 'unit = "rad/s"', "axis 'base.vx' of sim_base is twist in m/s, found twist in rad/s"),
        (
            "velocity = 0.3 ",
            "velocity = 0.3\nlower = -0.1 ",
            "is a speed and has no ends; velocity limits it either way",
        ),
        ("velocity = 0.3 ", "velocity = 0.9 ", "velocity of axis 'base.vx' is 0.9; sim_base allows 0 to 0.5 m/s"),
        (
            "acceleration = 0.6 ",
            "acceleration = 6.0 ",
            "acceleration of axis 'base.vx' is 6; sim_base allows 0 to 1 m/s",
        ),
        ("acceleration = 0.6 ", "# ", "axis 'base.vx' of kind twist has no acceleration"),
        ('name = "base.wz"', 'name = "base.vz"', "sim_base has no axis 'base.vz'; did you mean"),
    ],
)
def test_what_cannot_be_of_a_bases_speed_is_refused_at_its_line(old: str, new: str, told: str) -> None:
    assert old in BASE
    assert told in refused(BASE.replace(old, new, 1))


def test_a_device_leads_a_base_no_faster_than_the_cell_lets_it() -> None:
    led = BASE.replace("[lease]", f"{teleop('gamepad', 'sim_base')}\n[lease]", 1)
    check_cell_options(parse_cell(led, "cell.toml"))
    told = "speed of axis 'base.vx' is 0.4; the cell allows 0.3 m/s: say so much or less"
    assert told in refused(led.replace("speed = 0.2", "speed = 0.4", 1))


def test_in_a_cell_of_two_robots_no_base_drives() -> None:
    pair = (ROOT / "hw_configs" / "sim_pair.toml").read_text("utf-8")
    axis = '[[second_robot.axis]]\nname = "base.vx"\nkind = "twist"\nunit = "m/s"\nvelocity = 0.3\nacceleration = 0.6\n'
    assert "in a cell of two robots no base drives: where both stand" in refused(
        pair.replace("[lease]", f"{axis}[lease]", 1)
    )


LED = CELL.replace("[lease]", f"{teleop('gamepad', 'sim_rail')}\n[lease]", 1)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('by = "ry"', 'by = "pedal"', "unknown axis 'pedal' of the device; axes are x, y, z, rx, ry, rz"),
        ("speed = 0.3", "speed = 0.6", "speed of axis 'rail' is 0.6; the cell allows 0.5 m/s"),
        ("speed = 0.3", "", "axis 'rail' has no speed; it is the arm's: say by and speed"),
        ("speed = 0.3", "speed = 0.3\nclosed = 1.0", "axis 'rail' is the arm's: say by and speed, and take closed out"),
        ("closed = 1.0", "closed = 1.5", "closed of axis 'vacuum' is 1.5; it goes from 0 to 1 1"),
        ("closed = 1.0", "closed = 0.0", "closed and open of axis 'vacuum' are both 0"),
        ("closed = 1.0", 'by = "x"\nclosed = 1.0', "axis 'vacuum' is the hand's: say closed and open, and take by out"),
        (
            'name = "rail"\nby',
            'name = "rial"\nby',
            "did you mean 'rail'?; it has: rail",
        ),
    ],
)
def test_how_a_device_leads_an_axis_is_refused_at_its_line_where_it_cannot(old: str, new: str, told: str) -> None:
    check_cell_options(parse_cell(LED, "cell.toml"))
    assert old in LED
    assert told in refused(LED.replace(old, new, 1))


def test_a_gripper_of_one_opening_takes_no_axis_of_a_hand() -> None:
    text = PLAIN.replace("[readiness]", f"{teleop('gamepad', 'sim_rail')}\n[readiness]", 1)
    assert "take [[teleop.axis]] out" in refused(text)


def test_a_robot_that_declares_no_axes_takes_none() -> None:
    assert "take [[robot.axis]] out" in refused(PLAIN.replace("[readiness]", f"{VACUUM}[readiness]", 1))


def test_a_list_of_robots_is_refused_in_a_line_that_names_the_two_tables() -> None:
    said = refused(CELL.replace("[robot]", "[[robot]]", 1).replace("[robot.limits]", "[robot.limits]", 1))
    assert "say [robot] for the first and [second_robot] for the second" in said


def test_devices_are_composed_arms_first_and_a_name_that_two_have_needs_a_prefix() -> None:
    assert [axis.name for axis in ON_A_RAIL][:2] == ["rail", FR3_JOINTS[0].name] and ON_A_RAIL[-1].hand
    with pytest.raises(ValueError, match="two devices have an axis 'fr3_joint1'"):
        composed(FR3_JOINTS, FR3_JOINTS)
    both = composed(prefixed("left", FR3_JOINTS), prefixed("right", FR3_JOINTS), RAIL)
    assert len(both) == 15 and both[0].name == "left.fr3_joint1"


def test_a_robot_that_declares_nothing_has_joints_in_rad_and_one_opening_in_m() -> None:
    class Plain:
        joint_names = ("a", "b")

    axes = axes_of(Plain())
    assert [(axis.name, axis.unit) for axis in axes] == [("a", "rad"), ("b", "rad"), ("gripper", "m")]
    assert hand_of(axes) == (Axis("gripper", "opening", "m", hand=True),)


def named(axes: Any, **other: str) -> list[NamedAxis]:
    return [NamedAxis(name=axis.name, unit=other.get(axis.name, axis.unit)) for axis in axes]


def test_an_action_of_named_axes_has_each_in_its_unit_and_in_the_robots_order() -> None:
    assert action_problem(named(WITH_A_HAND), WITH_A_HAND, "sim_hand") == ""
    wrong = action_problem(named(ON_A_RAIL, rail="mm"), ON_A_RAIL, "sim_rail")
    assert wrong == "axis 'rail' of sim_rail is in m, the policy card has it in mm"
    assert "name them as rail, " in action_problem(named(ON_A_RAIL[::-1]), ON_A_RAIL, "sim_rail")
    assert "name them as rail, " in action_problem(named(ON_A_RAIL[:-1]), ON_A_RAIL, "sim_rail")
    assert "no axis 'hand.thumb'" in action_problem(named(WITH_A_HAND), ON_A_RAIL, "sim_rail")
