"""What every sensor does, whichever it is: the contract of `labctl.devices.Sensor` as tests.

May not: know a driver. A test class names its sensor by a fixture `rig` that gives a `SensorRig`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.config.cell_schema import Cell
from labctl.config.options import SensorOptions
from labctl.devices import Batch, Kind, Sensor, load, options_type
from labctl.errors import DeviceError, DeviceLost
from labctl.plain import Json
from labctl.testing.given import CELL, FIXTURE

CLOCK = MonotonicClock()
STEP_NS = 20 * MILLISECOND
PATIENCE_NS = 60 * SECOND

__all__ = ["LosableSensorConformance", "SensorConformance", "SensorRig"]


class SensorRig:
    """A sensor with its clock: the host's if it is `live`, else one that goes on by 20 ms at each look.

    seen: what the robot observes meanwhile, for a sensor that `observes`. `lose` makes it lost, `mend` undoes that;
    None where it cannot be lost.
    """

    def __init__(
        self,
        driver: str,
        options: Mapping[str, Json],
        *,
        rate_hz: float,
        live: bool,
        kind: Kind,
        seen: Mapping[str, np.ndarray] | None = None,
        cell: Cell = CELL,
    ) -> None:
        self.driver, self.given = driver, {**options, "rate_hz": rate_hz}
        self.sensor: Sensor = load(driver, self.given, cell=cell, fixture=FIXTURE)
        self.rate_hz, self.live, self.kind, self.seen = rate_hz, live, kind, dict(seen or {})
        self.lose: Callable[[], None] | None = None
        self.mend: Callable[[], None] = lambda: None
        self._now_ns = SECOND

    def now(self) -> int:
        """The time; a turned clock goes on with each look."""
        if self.live:
            CLOCK.sleep_until(CLOCK.now_ns() + STEP_NS // 4)
        self._now_ns += STEP_NS
        return CLOCK.now_ns() if self.live else self._now_ns

    def connect(self) -> None:
        self.sensor.connect(self.now())

    def drain(self) -> Batch:
        """One look. It returns soon, whatever the sensor does."""
        now_ns, began_ns = self.now(), CLOCK.now_ns()
        if self.sensor.observes:
            self.sensor.sense(now_ns, self.seen)
        try:
            return self.sensor.drain(now_ns)
        finally:
            assert CLOCK.now_ns() - began_ns < SECOND, "drain waited"

    def samples(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """At least so many: t_ns (n,), values (n, columns)."""
        found: list[Batch] = []
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while sum(len(batch.t_ns) for batch in found) < count:
            assert CLOCK.now_ns() < over_ns, f"only {sum(len(batch.t_ns) for batch in found)} values came"
            found.append(self.drain())
        return np.concatenate([one.t_ns for one in found]), np.concatenate([one.values for one in found])

    def until_lost(self) -> DeviceError:
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while CLOCK.now_ns() < over_ns:
            try:
                self.drain()
            except DeviceError as error:
                return error
        raise AssertionError("it was not lost")


class OfASensor:
    """The fixture of each class of tests on a sensor."""

    @pytest.fixture
    def rig(self) -> Iterator[SensorRig]:
        """A rig whose sensor is not connected yet, closed afterwards. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `rig` that yields a SensorRig")


class SensorConformance(OfASensor):
    """What every sensor does."""

    def test_it_is_a_sensor_and_says_what_kind(self, rig: SensorRig) -> None:
        assert isinstance(rig.sensor, Sensor)
        assert rig.sensor.kind == rig.kind and isinstance(rig.sensor.observes, bool)

    def test_it_records_what_its_options_declare_before_anything_is_connected(self, rig: SensorRig) -> None:
        table = options_type(rig.driver)
        declared = None if table is None else table.read(rig.given, rig.driver)
        assert isinstance(declared, SensorOptions), "its options have to be SensorOptions"
        assert rig.sensor.stream == declared.stream()
        assert rig.sensor.stream.rate_hz == rig.rate_hz

    def test_each_column_has_a_unit_and_is_either_public_or_private(self, rig: SensorRig) -> None:
        stream = rig.sensor.stream
        assert stream.columns and len(set(stream.columns)) == len(stream.columns)
        assert all(stream.units), f"{stream.unit!r} has to name one unit, or one for each of {stream.columns}"
        assert stream.unclear_columns() == ()

    def test_a_sensor_that_was_not_connected_is_a_mistake_of_the_callers_not_a_loss(self, rig: SensorRig) -> None:
        with pytest.raises(RuntimeError, match="not connected"):
            rig.sensor.drain(0)

    def test_values_are_rows_of_its_columns_and_belong_to_the_caller(self, rig: SensorRig) -> None:
        rig.connect()
        t_ns, values = rig.samples(5)
        assert t_ns.dtype == np.int64 and values.shape == (len(t_ns), len(rig.sensor.stream.columns))
        kept = values.copy()
        rig.samples(5)
        assert np.array_equal(values, kept, equal_nan=True)

    def test_times_rise_and_nothing_comes_from_the_future(self, rig: SensorRig) -> None:
        rig.connect()
        t_ns, _ = rig.samples(20)
        assert (np.diff(t_ns) > 0).all() and t_ns[-1] <= rig.now()

    def test_values_come_at_about_the_promised_rate(self, rig: SensorRig) -> None:
        rig.connect()
        t_ns, _ = rig.samples(30)
        rate_hz = (len(t_ns) - 1) / (t_ns[-1] - t_ns[0]) * SECOND
        most_hz = SECOND / np.median(np.diff(t_ns))  # its source shares this machine, which may stand still meanwhile
        assert rate_hz < 1.25 * rig.rate_hz and most_hz > 0.5 * rig.rate_hz, (rate_hz, most_hz)

    def test_connecting_and_closing_twice_is_harmless(self, rig: SensorRig) -> None:
        rig.connect()
        before, _ = rig.samples(2)
        rig.connect()
        assert rig.samples(1)[0][0] > before[-1]
        rig.sensor.close()
        rig.sensor.close()
        with pytest.raises(RuntimeError, match="not connected"):
            rig.sensor.drain(rig.now())

    def test_after_close_it_connects_again(self, rig: SensorRig) -> None:
        for _ in range(3):
            rig.connect()
            rig.samples(2)
            rig.sensor.close()

    def test_closing_what_was_never_connected_is_harmless(self, rig: SensorRig) -> None:
        rig.sensor.close()

    def test_it_bears_the_robots_observations(self, rig: SensorRig) -> None:
        rig.sensor.sense(0, {})
        rig.connect()
        rig.sensor.sense(rig.now(), rig.seen)
        assert len(rig.samples(1)[0])


class LosableSensorConformance(OfASensor):
    """What every sensor does that a test can have lost: its rig has `lose`, and `mend` to undo it."""

    def test_a_loss_is_a_DeviceLost_each_time_and_it_can_be_connected_again(self, rig: SensorRig) -> None:
        assert rig.lose is not None
        rig.connect()
        rig.samples(3)
        rig.lose()
        error = rig.until_lost()
        assert type(error) is DeviceLost and str(error) and "\n" not in str(error)
        for _ in range(3):
            with pytest.raises(DeviceLost):
                rig.drain()
        rig.mend()
        rig.connect()
        rig.samples(3)

    def test_a_lost_sensor_can_be_closed(self, rig: SensorRig) -> None:
        assert rig.lose is not None
        rig.connect()
        rig.lose()
        rig.until_lost()
        rig.sensor.close()
        rig.sensor.close()
        rig.mend()
        rig.connect()
        rig.samples(1)
