"""The doctor connects to each sensor in a process of its own, listens for a second, and says what is not there."""

from __future__ import annotations

import pytest
from support.robots.emulated_scale import EmulatedScale

from labctl.checks import probing
from labctl.checks.doctor import check_sensors
from labctl.config.cell_schema import Setup, parse_cell
from labctl.testing.given import FIXTURE

SCALE = '[[sensor]]\nname = "{name}"\ndriver = "scale_serial"\nrate_hz = 5.0\nrequired = {required}\n'
OPTIONS = '[sensor.options]\nport = "{port}"\n'


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes long to begin a process."""
    monkeypatch.setattr(probing, "PATIENCE_S", 240.0)


@pytest.mark.real_time
def test_a_sensor_that_answers_is_fine_and_one_that_is_not_there_fails_where_the_cell_needs_it() -> None:
    scale = EmulatedScale(10.0)
    try:
        tables = [
            ("there", "true", scale.port),
            ("gone", "true", "/dev/ttyNOWHERE"),
            ("spare", "false", "/dev/ttyNONE"),
        ]
        text = "".join(
            SCALE.format(name=name, required=required) + OPTIONS.format(port=port) for name, required, port in tables
        )
        own = parse_cell(f"{FRAME}\n{text}", "cell.toml")
        found = {check.name: check for check in check_sensors(Setup(cell=own, fixture=FIXTURE), AGAIN)}
    finally:
        scale.close()
    assert found["sensor gone"].level == "fail"
    assert found["sensor there"].level != "fail", "a busy machine may lose some of its values"
    assert "values in a second, 5 asked for" in found["sensor there"].text
    assert "/dev/ttyNOWHERE cannot be opened" in found["sensor gone"].text and "\n" not in found["sensor gone"].text


def test_a_sensor_with_a_wrong_option_is_to_be_corrected_where_sensors_are() -> None:
    """The remedy was always [teleop]."""
    table = SCALE.format(name="tray", required="true") + "[sensor.options]\nhaste = 1\n"
    (found,) = check_sensors(Setup(cell=parse_cell(f"{FRAME}\n{table}", "cell.toml"), fixture=FIXTURE), AGAIN)
    assert "haste" in found.text and found.remedy == f"correct [[sensor]] of the cell file; then: {AGAIN}"


AGAIN = "labctl doctor cells/any.toml"
FRAME = """
[cell]
name = "any"
kind = "emulated"
[robot]
driver = "sim_fr3"
state_hz = 100.0
control_hz = 100.0
observe_hz = 10.0
[robot.limits]
velocity_rad_s = [2.0, 2.0, 2.0, 2.0, 2.5, 2.5, 2.5]
acceleration_rad_s2 = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]
box_min_m = [0.15, -0.60, 0.00]
box_max_m = [0.80, 0.60, 0.80]
[lease]
duration_s = 0.3
stale_target_s = 0.5
"""
