"""What a cell file says of its sensors is refused at its line, in one line, when it cannot be so."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import make_campaign
from support.runs.sensing import SENSOR_REASONS, scale

from labctl.config.cell_schema import parse_cell
from labctl.errors import InputError
from labctl.store.driver_options import check_cell_options

CELL = (Path(__file__).resolve().parents[3] / "hw_configs" / "sim_fr3.toml").read_text("utf-8")
LIMIT = '[[sensor.interlock]]\ncolumns = ["mass"]\nunit = "kg"\nabove = 5.0\nthen = "end"\n'
LINES = CELL.count("\n") + 1  # of the cell's own text; a sensor's table begins on the next one


def refused(text: str) -> str:
    with pytest.raises(InputError) as error:
        check_cell_options(parse_cell(f"{CELL}\n{text}", "cell.toml"))
    said = str(error.value)
    assert "\n" not in said
    return said


def test_a_sensor_that_is_right_is_taken_and_its_stream_bears_its_name() -> None:
    cell = parse_cell(f"{CELL}\n{scale()}{LIMIT}", "cell.toml")
    check_cell_options(cell)
    (sensor,) = cell.sensor
    assert (sensor.stream, sensor.node, sensor.required) == ("sensor/scale", "sensor:scale", True)
    assert sensor.interlock[0].text == "mass above 5 kg"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            scale() + LIMIT.replace('"kg"', '"g"'),
            "unit of mass is 'kg' as sim_scale records it, found 'g'; give it in kg",
        ),
        (
            scale() + LIMIT.replace('"mass"', '"mas"'),
            "unknown column 'mas'; did you mean 'mass'?; sim_scale records: mass, stable",
        ),
        (scale() + LIMIT.replace("above = 5.0\n", ""), "sensor 'scale': give above, below or both"),
        (scale() + LIMIT.replace("above = 5.0", "above = 1.0\nbelow = 2.0"), "every value would be outside"),
        (scale() + LIMIT.replace('"end"', '"stop"'), "it must be 'hold', 'end' or 'void'"),
        (scale() + scale(), "'scale' appears twice in 'sensor'"),
        (scale().replace("sim_scale", "sim_person"), "sim_person is no sensor"),
        (scale().replace("rate_hz", "rate"), "did you mean 'rate_hz'"),
        (scale(options='item_kg = "heavy"'), "sim_scale: item_kg must be a number"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(text: str, told: str) -> None:
    said = refused(text)
    assert told in said and said.startswith("cell.toml:"), said
    assert int(said.split(":")[1]) > LINES


def test_a_protocol_that_does_not_list_the_machines_reason_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"p.toml:\d+.*void_reasons lacks sensor_lost, for which sensor 'scale'"):
        make_campaign(tmp_path / "a", cell={"\n[video]": f"\n{scale()}\n[video]"})
    limited = {"\n[video]": f"\n{scale(required=False)}{LIMIT.replace('end', 'void')}\n[video]"}
    with pytest.raises(InputError, match="void_reasons lacks sensor_limit"):
        make_campaign(tmp_path / "b", cell=limited)
    make_campaign(tmp_path / "c", cell=limited, protocol=SENSOR_REASONS)


def test_a_witness_of_a_tote_that_the_fixture_has_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"c.toml:\d+: unknown tote 'lefd'; did you mean 'left'"):
        make_campaign(tmp_path, cell={"\n[video]": f"\n{scale(witness='lefd')}\n[video]"}, protocol=SENSOR_REASONS)
