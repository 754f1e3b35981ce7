"""Sensors for the cells of test campaigns, as text of their tables."""

from __future__ import annotations

from collections.abc import Mapping

# For `make_campaign(protocol=…)`: the machine's reasons that a cell with sensors may give.
SENSOR_REASONS: Mapping[str, str] = {
    "camera_lost =": 'void_reasons = ["arm_lost", "camera_lost", "controller_lost", "recorder_lost", "process_lost", '
    '"sensor_lost", "sensor_limit"]\ncamera_lost ='
}


def scale(
    *, required: bool = True, witness: str = "", options: str = "", limit: str = "", driver: str = "sim_scale"
) -> str:
    """The table of a scale; limit: "ABOVE THEN", in kg; witness: the tote under which it stands; options: as TOML."""
    text = f'[[sensor]]\nname = "scale"\ndriver = "{driver}"\nrate_hz = 20.0\nrequired = {str(required).lower()}\n'
    if options:
        text += f"[sensor.options]\n{options}\n"
    if witness:
        text += f'[sensor.witness]\ncolumn = "mass"\nunit = "kg"\nstep = 0.025\ntote = "{witness}"\n'
    if limit:
        above, then = limit.split()
        text += f'[[sensor.interlock]]\ncolumns = ["mass"]\nunit = "kg"\nabove = {above}\nthen = "{then}"\n'
    return text


def with_scale(text: str) -> dict[str, str]:
    """For `make_campaign(cell=…)`: the shipped cell with these tables."""
    return {"\n[video]": f"\n{text}\n[video]"}
