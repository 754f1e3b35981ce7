"""What a report says of the robot that episodes ran on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from labctl.plain import RobotAbout
from labctl.reporting.robot_used import changes_of_robot, robot_facts

FR3: RobotAbout = {
    "model": "Franka fr3",
    "serial": None,
    "firmware": "robot server 10",
    "client": "franky-control 2.0.0",
    "limits": {"velocity_rad_s": [1.0, 0.5], "servo": "velocity"},
    "gripper": {"model": "Robotiq 2F-85", "serial": None, "firmware": None, "client": "pymodbus 3.11"},
}


def record_with(*robots: RobotAbout | None) -> Any:
    """A record of scored episodes e-1, e-2 …; None: recorded before a robot said what it is."""
    starts = [{} if one is None else {"robot": one} for one in robots]
    episodes = [SimpleNamespace(id=f"e-{i}", start=start) for i, start in enumerate(starts, 1)]
    return SimpleNamespace(episodes={one.id: one for one in episodes}, scored=[("trial", one) for one in episodes])


def test_a_robot_its_gripper_and_the_limits_in_force_are_rows_of_the_provenance() -> None:
    said = "Franka fr3, robot server 10, by franky-control 2.0.0; gripper: Robotiq 2F-85, by pymodbus 3.11"
    limits = "velocity_rad_s [1, 0.5], servo velocity"
    assert robot_facts(record_with(FR3, FR3)) == {"robot_as_connected": said, "limits_in_force": limits}


def test_another_firmware_between_two_episodes_is_a_line_of_the_report() -> None:
    newer: RobotAbout = {**FR3, "firmware": "robot server 11", "limits": {"velocity_rad_s": [1.0, 0.7]}}
    record = record_with(FR3, newer, newer)
    assert changes_of_robot(record) == [
        "the robot changed before episode e-2: firmware robot server 10 to robot server 11, "
        "limits.velocity_rad_s [1, 0.5] to [1, 0.7], limits.servo velocity to absent"
    ]
    assert robot_facts(record)["robot_of_episodes"] == (
        "e-1 to e-1 (1): Franka fr3, robot server 10, by franky-control 2.0.0; gripper: Robotiq 2F-85, by pymodbus "
        "3.11; e-2 to e-3 (2): Franka fr3, robot server 11, by franky-control 2.0.0; gripper: Robotiq 2F-85, by "
        "pymodbus 3.11"
    )


def test_a_campaign_from_before_robots_said_what_they_are_has_no_such_row() -> None:
    assert robot_facts(record_with(None, None)) == {} and changes_of_robot(record_with(None, FR3)) == []
