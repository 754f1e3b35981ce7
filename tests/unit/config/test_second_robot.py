"""A second robot in a cell's file: what it lacks, or what it cannot have with the first, is one line at its place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.robots.cells import ROOT

from labctl.config.cell_schema import parse_cell
from labctl.config.robots import boxes_apart
from labctl.errors import InputError
from labctl.store.driver_options import check_cell_options

CELL = (ROOT / "hw_configs" / "sim_pair.toml").read_text("utf-8")


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        check_cell_options(parse_cell(text, "cell.toml"))
    said = str(error.value)
    assert "\n" not in said and said.startswith("cell.toml:"), said
    return said


def test_the_shipped_cell_of_two_says_the_axes_of_both() -> None:
    cell = parse_cell(CELL, "cell.toml")
    check_cell_options(cell)
    assert (cell.joints, cell.hand, cell.names) == (14, 2, ("left", "right"))
    assert cell.driver == ("pair", {})
    first, second = cell.sides
    assert (first.joints, second.joints, second.second_robot) == (7, 7, None)


def test_a_cell_of_one_robot_is_as_before() -> None:
    cell = parse_cell((ROOT / "hw_configs" / "sim_fr3.toml").read_text("utf-8"), "cell.toml")
    assert cell.sides == (cell,) and cell.driver == ("sim_fr3", {}) and cell.names == ("",)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('name = "right"  ', 'name = "left"  ', 'name = "left"  ', "both robots would be named 'left'"),
        ('name = "right"  ', 'name = "sensor"  ', 'name = "sensor"', "'sensor' is what other streams begin with"),
        ("base_m = [0.0, -1.40, 0.0]", "base_m = [0.0, -1.0, 0.0]", "base_m", "overlap by 0.20 m, and nothing parts"),
        ("[second_robot.limits]", "[second_robot.limit]", "[second_robot.limit]", "unknown key 'limit'"),
        ("box_max_m = [0.80, 0.60, 0.80]\n\n[read", "box_max_m = [0.80, -0.7, 0.8]\n\n[read", "box_max_m", "is empty"),
    ],
)
def test_what_a_second_robot_cannot_be_is_refused_at_its_line(old: str, new: str, line: str, told: str) -> None:
    assert old in CELL
    text = CELL.replace(old, new, 1)
    said = refused(text)
    assert told in said
    number = int(said.split(":")[1])
    assert line in text.splitlines()[number - 1], said


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("sim_fr3", "box_max_m = [0.80, 0.60, 0.80]", "box_max_m = [800.0, 600.0, 800.0]", "box_max_m is [800.0, 600"),
        ("sim_fr3", "box_min_m = [0.15, -0.60, 0.00]", "box_min_m = [-150, -600.0, 0.00]", "box_min_m is [-150.0, -6"),
        (
            "sim_pair",
            "base_m = [0.0, -1.40, 0.0]",
            "base_m = [0.0, -1400.0, 0.0]",
            "base_m is [0.0, -1400.0, 0.0]",
        ),
    ],
)
def test_a_box_or_a_base_in_millimetres_is_refused_in_a_new_cell_and_read_in_a_campaign(
    name: str, old: str, new: str, told: str
) -> None:
    """A box of 800 m held the tool back nowhere; boxes 1400 m apart need no `keep_apart_m`."""
    text = (ROOT / "hw_configs" / f"{name}.toml").read_text("utf-8")
    assert old in text
    text = text.replace(old, new, 1)
    said = refused(text)
    assert told in said and said.endswith("and no arm reaches 10 m; give it in m")
    assert new in text.splitlines()[int(said.split(":")[1]) - 1]
    assert parse_cell(text, "cell.toml", frozen=True).robot


def test_another_rate_of_setpoints_is_refused() -> None:
    at = CELL.index("[second_robot]")
    text = CELL[:at] + CELL[at:].replace("control_hz = 100.0", "control_hz = 50.0", 1)
    assert "control_hz is 50, the first robot's 100; both are led by one row of setpoints" in refused(text)


def test_a_wrong_option_or_axis_of_the_second_is_refused_in_its_own_table() -> None:
    at = CELL.index("[second_robot.limits]")
    text = CELL[:at] + "[second_robot.options]\nhaste = 1\n" + CELL[at:]
    said = refused(text)
    assert "haste" in said and "haste" in text.splitlines()[int(said.split(":")[1]) - 1]


def test_a_device_for_a_second_robot_that_is_not_there_is_refused() -> None:
    plain = (ROOT / "hw_configs" / "sim_fr3.toml").read_text("utf-8")
    text = plain.replace("[lease]", '[teleop]\ndevice = "gamepad"\n[second_teleop]\ndevice = "gamepad"\n[lease]', 1)
    assert "this cell has one robot; [teleop] is its device" in refused(text)


def test_boxes_are_compared_where_the_bases_stand_and_are_turned() -> None:
    cell = parse_cell(CELL, "cell.toml")
    second = cell.second_robot
    assert second is not None
    assert boxes_apart(cell.robot, second) == pytest.approx(0.2)
    facing = second.model_copy(update={"base_m": (1.4, 0.0, 0.0), "base_yaw_rad": math.pi})
    assert facing.in_first(np.array([0.5, 0.1, 0.2])) == pytest.approx([0.9, -0.1, 0.2])
    assert boxes_apart(cell.robot, facing) == pytest.approx(-0.2), "0.6 to 1.25 against 0.15 to 0.8"
