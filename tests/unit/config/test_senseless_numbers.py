"""Numbers of a cell that are in another unit than their key, or so small that the robot would never move."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.config.cell_schema import parse_cell
from labctl.errors import InputError
from labctl.store.driver_options import check_cell_options

ROOT = Path(__file__).parents[3]


def changed(name: str, old: str, new: str) -> str:
    """A shipped cell with `old` replaced."""
    text = (ROOT / "hw_configs" / f"{name}.toml").read_text("utf-8")
    assert text.count(old) == 1
    return text.replace(old, new)


def refused(text: str, at: str) -> str:
    """The refusal, after asserting that it names the line of `at`."""
    with pytest.raises(InputError) as caught:
        check_cell_options(parse_cell(text, "cell.toml"))
    said, line = str(caught.value), text[: text.index(at)].count("\n") + 1
    assert said.startswith(f"cell.toml:{line}: ") and "\n" not in said, said
    return said


UR_COG, FR3_TURN = "payload_cog_m = [0.0, 0.0, 0.06]", "tool_rpy_rad = [0.0, 0.0, 0.0]"
ROS2_DOMAIN = "domain = 42                  # ROS_DOMAIN_ID"


@pytest.mark.parametrize(
    ("name", "old", "new", "unit"),
    [
        ("ur5e_cell", UR_COG, "payload_cog_m = [0.0, 0.0, 60.0]", "m, each number from -0.5 to 0.5"),
        ("ur5e_cell", UR_COG, "tool_xy_m = [12.0, 0.0]", "m, each number from -0.5 to 0.5"),
        ("ur5e_cell", UR_COG, "tool_rpy_rad = [0.0, 0.0, 90.0]", "rad, each number from -6.28319 to 6.28319"),
        ("fr3_droid_cell", FR3_TURN, "tool_rpy_rad = [0.0, 0.0, -45.0]", "rad, each number from -6.28319 to 6.28319"),
        ("fr3_droid_cell", FR3_TURN, "load_com_m = [0.0, 0.0, 40.0]", "m, each number from -0.5 to 0.5"),
        ("emulated_ros2", ROS2_DOMAIN, "tool_xy_m = [12.0, 0.0]", "m, each number from -0.5 to 0.5"),
        ("emulated_ros2", ROS2_DOMAIN, "tool_rpy_rad = [0.0, 0.0, 90.0]", "rad, each number from -6.28319 to 6.28319"),
    ],
)
def test_an_option_in_millimetres_or_degrees_is_refused(name: str, old: str, new: str, unit: str) -> None:
    """A UR that took a centre of gravity 60 m away would compensate a moment of 590 N m."""
    key, _, value = new.partition(" = ")
    said = refused(changed(name, old, new), new)
    assert f"{key} is in {unit}, found {value}" in said


@pytest.mark.parametrize("new", ["payload_cog_m = [-0.05, 0.0, 0.5]", "tool_rpy_rad = [0.0, 0.0, -6.28]"])
def test_an_option_at_the_end_of_its_range_is_taken(new: str) -> None:
    check_cell_options(parse_cell(changed("ur5e_cell", UR_COG, new), "cell.toml"))


@pytest.mark.parametrize("key", ["duration_s", "stale_target_s"])
def test_a_lease_that_shorter_than_two_setpoints_is_refused_in_a_new_cell_and_read_in_a_campaign(
    key: str,
) -> None:
    old = {"duration_s": "duration_s = 0.3", "stale_target_s": "stale_target_s = 0.5"}[key]
    for control_hz in (100.0, 7.0):
        text = changed("fr3_droid_cell", old, f"{key} = 0.001").replace(
            "control_hz = 100.0", f"control_hz = {control_hz}"
        )
        said = refused(text, f"{key} = 0.001")
        assert f"{key} is 0.001, and setpoints come each " in said
        assert parse_cell(text, "cell.toml", frozen=True).lease
        enough = said.partition("give ")[2].split()[0]
        assert parse_cell(text.replace(f"{key} = 0.001", f"{key} = {enough}"), "cell.toml").lease, (
            "what it says to give"
        )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("state_hz = 1000.0", "state_hz = 1e9", "state_hz is 1e+09; allowed is 0.1 to 10000"),
        ("control_hz = 100.0", "control_hz = 1e9", "control_hz is 1e+09; allowed is 0.1 to 10000"),
        ("observe_hz = 30.0", "observe_hz = 1e-6", "observe_hz is 1e-06; allowed is 0.1 to 10000"),
        ("keyframe_s = 1.0", "keyframe_s = 1e9", "keyframe_s is 1e+09; allowed is 0 to 3600"),
        ('name = "wrist"', f'name = "{"w" * 101}"', "name has 101 characters, and files are named"),
    ],
)  # fmt: skip
def test_a_number_that_nothing_can_be_run_with_is_refused_in_a_new_cell_and_read_in_a_campaign(
    old: str, new: str, said: str
) -> None:
    """A run at 1e9 states per second was ended by the kernel, one at 1e-6 stood; keyframe_s = 1e9 was a traceback."""
    text = changed("fr3_droid_cell", old, new)
    assert said in refused(text, new)
    assert parse_cell(text, "cell.toml", frozen=True).robot


def test_a_camera_has_a_rate_and_a_time_between_keyframes_of_its_own_that_are_looked_at() -> None:
    text = (ROOT / "hw_configs" / "fr3_droid_cell.toml").read_text("utf-8")
    slow = text.replace("rate_hz = 30.0", "rate_hz = 0.01", 1)
    assert "rate_hz is 0.01; allowed is 0.1 to 10000" in refused(slow, "rate_hz = 0.01")
    own = "[camera.video]\nkeyframe_s = 1e8\n"
    at = text.index("[camera.options]")
    assert "keyframe_s is 1e+08" in refused(f"{text[:at]}{own}{text[at:]}", "keyframe_s = 1e8")
