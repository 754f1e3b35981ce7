"""The serial scale takes an answer of MT-SICS for what it is, says what is none, and is lost when none comes."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.robots.emulated_scale import ABOUT, EmulatedScale

from labctl.devices import StreamSpec
from labctl.drivers.sensors.scale import parsed
from labctl.drivers.sensors.serial_rows import SerialRows
from labctl.errors import DeviceLost
from labctl.testing.sensor import SensorRig


@pytest.fixture
def scale() -> Iterator[EmulatedScale]:
    made = EmulatedScale(120.0)
    yield made
    made.close()


@pytest.fixture
def rig(scale: EmulatedScale) -> Iterator[SensorRig]:
    made = SensorRig("scale_serial", {"port": scale.port}, rate_hz=50.0, live=True, kind="real")
    yield made
    made.sensor.close()


@pytest.mark.parametrize(
    ("line", "kg", "stands"),
    [("S S     100.00 g", 0.1, 1.0), ("S D      12.34 g", 0.01234, 0.0), ("S S  -   0.5 kg", -0.5, 1.0)],
)
def test_a_weight_is_kilograms_and_whether_it_stands(line: str, kg: float, stands: float) -> None:
    assert parsed(line) == (pytest.approx(kg), stands)


def test_beyond_its_range_a_scale_gives_no_number_and_busy_it_gives_nothing() -> None:
    over = parsed("S +")
    assert over is not None and math.isnan(over[0]) and parsed("S I") is None


@pytest.mark.parametrize(("line", "told"), [("S S 12 PCS", "weighs in 'PCS'"), ("ES", "answers 'ES' to SI")])
def test_what_is_no_weight_is_said(line: str, told: str) -> None:
    with pytest.raises(DeviceLost, match=told):
        parsed(line)


@pytest.mark.real_time
def test_it_records_what_lies_on_it(rig: SensorRig, scale: EmulatedScale) -> None:
    rig.connect()
    rig.samples(3)
    scale.grams = 250.0
    rig.drain()  # what was weighed before, as far as it has come
    _, values = rig.samples(10)
    assert values[-1].tolist() == pytest.approx([0.25, 1.0])
    scale.fault = "overload"
    rig.drain()
    _, values = rig.samples(10)
    assert np.isnan(values[-1, 0])


@pytest.mark.real_time
def test_a_port_that_is_not_there_and_a_scale_that_says_nothing_are_lost(scale: EmulatedScale) -> None:
    gone = SensorRig("scale_serial", {"port": "/dev/ttyNOWHERE"}, rate_hz=5.0, live=True, kind="real")
    with pytest.raises(DeviceLost, match="/dev/ttyNOWHERE cannot be opened"):
        gone.connect()
    scale.fault = "silent"
    mute = SensorRig("scale_serial", {"port": scale.port}, rate_hz=5.0, live=True, kind="real")
    with pytest.raises(DeviceLost, match="no scale answers on"):
        mute.connect()


@pytest.mark.real_time
def test_a_scale_that_one_sensor_reads_is_not_read_by_another(rig: SensorRig, scale: EmulatedScale) -> None:
    rig.connect()
    second = SensorRig("scale_serial", {"port": scale.port}, rate_hz=5.0, live=True, kind="real")
    with pytest.raises(DeviceLost, match=r"cannot be opened .* who has it open"):
        second.connect()


def test_the_emulator_says_that_it_is_one(scale: EmulatedScale) -> None:
    assert ABOUT in scale.answer("I2")


def test_the_last_row_before_a_sensor_is_lost_is_told() -> None:
    sensor = SerialRows(StreamSpec("scale", ("mass_kg",), 50.0, "kg"), 1.0)
    sensor._thread = threading.current_thread()

    class Rows(deque[Any]):
        """While it is looked at how many there are, the last one comes and the sensor is lost."""

        def __len__(self) -> int:
            found = super().__len__()
            if not sensor._lost:
                self.append((7, (0.1,)))
                sensor._lost = "the scale is gone"
            return found

    sensor._rows = Rows()
    assert not len(sensor.drain(0).t_ns)
    assert sensor.drain(0).t_ns.tolist() == [7]
    with pytest.raises(DeviceLost, match="the scale is gone"):
        sensor.drain(0)
