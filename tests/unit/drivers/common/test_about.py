"""What a robot that is led by setpoints says of itself, with and without words of its link and its gripper."""

from __future__ import annotations

from types import SimpleNamespace

from support.robots.cells import cell_named

from labctl.drivers.common.about import joined, library
from labctl.drivers.common.robot_tables import FR3

LIMITS = cell_named("emulated_fr3").robot.limits
TOLD = {"model": "A", "serial": "1", "firmware": "2", "client": "c 3"}


def test_the_links_words_the_cells_limits_and_the_grippers_words_are_one() -> None:
    link = SimpleNamespace(about=lambda: {**TOLD, "limits": {"watchdog_hz": 4.0}})
    about = joined(link, SimpleNamespace(about=lambda: TOLD), LIMITS, FR3)
    assert about["serial"] == "1" and about.get("gripper") == TOLD
    limits = about.get("limits", {})
    assert limits["watchdog_hz"] == 4.0 and limits["tool_speed_m_s"] == 0.8


def test_a_link_and_a_gripper_of_older_packages_go_on_working() -> None:
    about = joined(SimpleNamespace(), SimpleNamespace(), LIMITS, FR3)
    assert about["model"] == "fr3" and about["client"] == library("labctl") and "gripper" not in about
