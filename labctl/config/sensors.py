"""What a cell file may say of its sensors: [[sensor]], what holds or ends an episode by one, what one is a witness of.

May not: open files, or know a driver. What a sensor records is declared by its driver's options
(`labctl.config.options.SensorOptions`), so a column or unit that it lacks is found before anything is connected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from labctl.config.toml_text import Document, Location, Table, suggestion
from labctl.config.values import FileName, Lax, PlainName, Positive, Text, Texts
from labctl.streams import StreamSpec

Then = Literal["hold", "end", "void"]


class SensorLimit(Table):
    """[[sensor.interlock]]: a column, or the length of the vector of several, that is not to be above or below a value
    (in `unit`, the stream's own) for longer than `for_s`. then: nothing new begins ("hold"), or the episode that runs
    has ended besides ("end", it is scored as it is; "void", for the machine's reason sensor_limit).
    """

    columns: Annotated[Texts, Field(min_length=1)]
    unit: Text
    above: float | None = None
    below: float | None = None
    for_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    then: Then

    @property
    def text(self) -> str:
        """The limit in words, without a measured value: how far it was exceeded may be private."""
        what = self.columns[0] if len(self.columns) == 1 else f"|{' '.join(self.columns)}|"
        sides = ((word, value) for word, value in (("above", self.above), ("below", self.below)) if value is not None)
        return f"{what} {' or '.join(f'{word} {value:g}' for word, value in sides)} {self.unit}"


class SensorWitness(Table):
    """[sensor.witness]: a change of a column by at least `step` (in `unit`, the stream's own) between two times at
    which it stands is a candidate for an item that came to, or went from, the tote that the sensor belongs to.
    """

    column: Text
    unit: Text
    step: Positive
    tote: PlainName


class SensorTable(Table):
    """[[sensor]]. The name becomes that of its stream, sensor/NAME. required: without it nothing begins, and its loss
    ends an episode as sensor_lost; else its loss is a gap in the recording. `options` are the driver's.
    """

    name: FileName
    driver: Text
    rate_hz: Annotated[float, Field(gt=0, le=2000)]
    required: bool = True
    interlock: Annotated[tuple[SensorLimit, ...], Lax] = ()
    witness: SensorWitness | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def given(self) -> dict[str, JsonValue]:
        """What its driver is built with: its options, and the rate of its table."""
        return {**self.options, "rate_hz": self.rate_hz}

    @property
    def stream(self) -> str:
        """The name of its recorded stream."""
        return f"sensor/{self.name}"

    @property
    def node(self) -> str:
        """The name of its process."""
        return f"sensor:{self.name}"


def check_sensors(document: Document, sensors: Sequence[SensorTable]) -> None:
    """Refuse, at its line, what one sensor's table alone can break. Raises InputError."""
    for index, sensor in enumerate(sensors):
        for number, limit in enumerate(sensor.interlock):
            at = ("sensor", index, "interlock", number)
            if limit.above is None and limit.below is None:
                raise document.refusal((*at, "then"), f"sensor {sensor.name!r}: give above, below or both")
            if limit.above is not None and limit.below is not None and limit.below >= limit.above:
                text = f"below {limit.below:g} is not less than above {limit.above:g}: every value would be outside"
                raise document.refusal((*at, "below"), f"sensor {sensor.name!r}: {text}")
            if limit.below is not None and len(limit.columns) > 1 and limit.below <= 0:
                text = "the length of a vector is never below 0; take out below, or name one column"
                raise document.refusal((*at, "below"), f"sensor {sensor.name!r}: {text}")


def check_columns(document: Document, index: int, sensor: SensorTable, spec: StreamSpec) -> None:
    """Refuse, at its line, a column or a unit that the sensor's stream does not have. Raises InputError."""
    units = spec.units
    named: list[tuple[Location, Sequence[str], str]] = [
        (("sensor", index, "interlock", i), limit.columns, limit.unit) for i, limit in enumerate(sensor.interlock)
    ]
    if sensor.witness is not None:
        named.append((("sensor", index, "witness"), (sensor.witness.column,), sensor.witness.unit))
    for at, columns, unit in named:
        for column in columns:
            if column not in spec.columns:
                there = f"{sensor.driver} records: {', '.join(spec.columns)}"
                key = "columns" if at[-1] != "witness" else "column"
                message = f"unknown column {column!r}{suggestion(column, spec.columns)}; {there}"
                raise document.refusal((*at, key), message)
            own = units[spec.columns.index(column)]
            if unit != own:
                message = f"unit of {column} is {own!r} as {sensor.driver} records it, found {unit!r}; give it in {own}"
                raise document.refusal((*at, "unit"), message)
