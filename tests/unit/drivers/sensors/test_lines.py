"""A light barrier, a thermometer, a tactile array speak in lines of text: what of a line counts is said in the cell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.robots.speaking_line import SpeakingLine

from labctl.clock import SECOND, ManualClock, MonotonicClock
from labctl.devices import Sensor, load
from labctl.drivers.sensors.line_options import LinesOptions
from labctl.drivers.sensors.lines import LineSensor, reader
from labctl.errors import DeviceLost, OptionError
from labctl.testing.given import CELL, FIXTURE

CLOCK = MonotonicClock()


def options(**given: Any) -> LinesOptions:
    return LinesOptions.read({"port": "/dev/null", "rate_hz": 20.0, **given}, "lines")


@pytest.mark.parametrize(
    ("given", "line", "values"),
    [
        ({"columns": ["temperature"], "units": ["degC"]}, "T=23.5", [23.5]),
        ({"columns": ["a", "b"], "units": ["N"], "factors": [9.81]}, "1.0, -2e-1", [9.81, -1.962]),
        (
            {"columns": ["broken"], "units": ["1"], "pattern": "^beam (\\w+)$", "words": {"CUT": 1.0, "FREE": 0.0}},
            "beam CUT",
            [1.0],
        ),
        ({"columns": ["taxel*4"], "units": ["kPa"]}, "0 12 7.5 0", [0.0, 12.0, 7.5, 0.0]),
        (
            {"columns": ["mass"], "units": ["kg"], "pattern": "S ([- 0-9.]+) g", "factors": [1e-3]},
            "S - 12.5 g",
            [-0.0125],
        ),
        ({"columns": ["taxel*4"], "units": ["kPa"]}, "0 12 7.5", None),
        ({"columns": ["broken"], "units": ["1"], "pattern": "^beam (\\w+)$"}, "beam CUT", None),
        ({"columns": ["x"], "units": ["m"]}, "# ready", None),
    ],
)
def test_a_line_is_read_by_its_pattern_and_one_that_does_not_fit_is_none(
    given: dict[str, Any], line: str, values: list[float] | None
) -> None:
    found = reader(options(**given))(line)
    assert found == (values if values is None else pytest.approx(values))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"columns": ["x"], "units": ["m"], "pattern": "(a)(b)"},
            "pattern has 2 groups; give one in brackets for each",
        ),
        ({"columns": ["x"], "units": ["m"], "pattern": "(a"}, "pattern is no regular expression"),
        ({"columns": ["x*3"], "units": ["m", "m"]}, "units are 2; give one for all, or one for each of 3 columns"),
        ({"columns": ["x", "x"], "units": ["m"]}, "each by a name of its own"),
        ({"columns": ["x"], "units": ["m"], "open": ["y"]}, "open names 'y', which is no column"),
        ({"columns": ["x"], "units": ["m m"]}, "a unit has no space in it"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(given: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told.replace("(", r"\(")):
        options(**given)


def test_what_a_blind_role_may_see_is_said_column_by_column_and_nothing_without() -> None:
    stream = options(columns=["barrier", "force*2"], units=["1", "N", "N"], open=["barrier"]).stream()
    assert stream.columns == ("barrier", "force1", "force2") and stream.units == ("1", "N", "N")
    assert stream.open_columns() == (0,) and not stream.unclear_columns()


@pytest.fixture(params=["serial", "tcp", "asked"])
def line(request: pytest.FixtureRequest) -> Iterator[SpeakingLine]:
    made = SpeakingLine(
        lambda: "t 21.5", asked="READ" if request.param == "asked" else None, tcp=request.param == "tcp"
    )
    yield made
    made.close()


def sensor(line: SpeakingLine, **more: Any) -> Sensor:
    given = {"port": line.port, "rate_hz": 20.0, "columns": ["t"], "units": ["degC"], "silence_s": 0.3, **more}
    asked = {"ask": "READ"} if line._asked else {}
    return load("lines", {**given, **asked}, cell=CELL, fixture=FIXTURE)


@pytest.mark.real_time
def test_it_gives_what_was_said_no_oftener_than_the_cell_asks_and_is_lost_in_words(line: SpeakingLine) -> None:
    made: Any = sensor(line, silence_s=60.0)
    try:
        made.connect(CLOCK.now_ns())
        times: list[int] = []
        while len(times) < 8:
            found = made.drain(CLOCK.now_ns())
            assert (found.values == 21.5).all()
            times += found.t_ns.tolist()
            CLOCK.sleep_until(CLOCK.now_ns() + 10_000_000)
        assert np.diff(times).min() >= 0.045 * 1e9, "20 a second of what says more"
        line.says = lambda: "error 7 7"
        with pytest.raises(DeviceLost, match=r"no line of .* fits for 60 s; the last was 'error 7 7'"):
            while True:
                if made._last == "error 7 7":
                    made._silence_ns = 0  # the minute is over
                made.drain(CLOCK.now_ns())
                CLOCK.sleep_until(CLOCK.now_ns() + 10_000_000)
        line.says, made._silence_ns = (lambda: "t 22"), 60 * SECOND
        made.connect(CLOCK.now_ns())
    finally:
        made.close()


@pytest.mark.real_time
def test_a_serial_line_that_one_sensor_reads_is_not_read_by_another() -> None:
    """Each would have half of what it says."""
    line = SpeakingLine(lambda: "t 21.5")
    first, second = sensor(line, silence_s=60.0), sensor(line, silence_s=60.0)
    try:
        first.connect(CLOCK.now_ns())
        with pytest.raises(DeviceLost, match=r"cannot be opened .* who has it open"):
            second.connect(CLOCK.now_ns())
        first.close()
        second.connect(CLOCK.now_ns())
    finally:
        first.close()
        second.close()
        line.close()


@pytest.mark.real_time
def test_a_line_that_is_not_there_and_one_that_says_nothing_are_one_line() -> None:
    made = SpeakingLine(lambda: "", hz=20)
    made.silent = True
    with pytest.raises(DeviceLost, match=r"nothing comes from /dev/.* for 0.3 s"):
        sensor(made).connect(0)
    made.close()
    with pytest.raises(DeviceLost, match="cannot be opened"):
        sensor(made, port="/dev/ttyNOBODY").connect(0)


class Chatter:
    """A line that says what fits no pattern, ten times a second by a clock of its own, and ends after a minute."""

    in_waiting = 1

    def __init__(self) -> None:
        self.clock = ManualClock()

    def read(self, count: int) -> bytes:
        if self.clock.now_ns() > 60 * SECOND:
            raise OSError("the minute is over")
        self.clock.sleep_until(self.clock.now_ns() + SECOND // 10)
        return b"# ready\r\n"


def test_a_sensor_of_which_no_line_fits_is_lost_however_much_it_says() -> None:
    sensor, line = LineSensor(options(columns=["x"], units=["m"], silence_s=2.0)), Chatter()
    sensor._clock = line.clock  # pyright: ignore[reportAttributeAccessIssue]
    sensor._serve(line)  # pyright: ignore[reportArgumentType]
    assert "no line of /dev/null fits for 2 s" in sensor._lost


class Says:
    """A line, or a socket as pyserial opens one, that has said so much by now."""

    in_waiting = 1
    timeout: float | None = 0.1

    def __init__(self, *parts: bytes) -> None:
        self.parts, self.reads = list(parts), 0

    def read(self, count: int) -> bytes:
        self.reads += 1
        if not self.parts:
            return b""
        part, rest = self.parts[0][:count], self.parts[0][count:]
        self.parts[:1] = [rest] if rest else []
        return part


def said(line: Says, sensor: LineSensor) -> list[str]:
    found: list[str] = []
    while line.parts:
        found += sensor._lines(line)  # pyright: ignore[reportArgumentType]
    return found


def test_the_tail_of_a_line_that_was_under_way_when_it_was_opened_is_no_value() -> None:
    sensor = LineSensor(options(columns=["mass"], units=["kg"]))
    assert said(Says(b"5.20 kg\r\n125.20 kg\r\n125.2"), sensor) == ["125.20 kg"]
    asked = LineSensor(options(columns=["mass"], units=["kg"], ask="S"))
    asked._begun = True
    assert said(Says(b"125.20 kg\r\n"), asked) == ["125.20 kg"], "what was asked is answered whole"


def test_what_waits_at_a_socket_is_read_at_once() -> None:
    sensor = LineSensor(options(port="socket://127.0.0.1:9", columns=["x*512"], units=["1"]))
    line = Says(b"\n" + b" ".join([b"123.4"] * 512) + b"\r\n")
    assert len(said(line, sensor)) == 1
    assert line.reads == 2 and line.timeout == 0.1
