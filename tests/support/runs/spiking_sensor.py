"""A simulated force sensor of somebody else, found by its module: 50 N for 0.2 s when an item reached its tote."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.config.options import SensorOptions
from labctl.devices import Batch, Kind
from labctl.streams import StreamSpec

IN_TARGET = 5
# For `make_campaign(cell=…)`, with what such a spike does in place of THEN.
TABLE = """[[sensor]]
name = "touch"
driver = "support.runs.spiking_sensor:build"
rate_hz = 20.0
[[sensor.interlock]]
columns = ["force"]
unit = "N"
above = 40.0
then = "THEN"
"""


class SpikingOptions(SensorOptions):
    """A force sensor."""

    def stream(self) -> StreamSpec:
        return StreamSpec("force", ("force",), "N", self.rate_hz, private_columns=("force",))


class SpikingSensor:
    """See `labctl.devices.Sensor`."""

    kind: Kind = "sim"
    observes = True

    def __init__(self, options: SpikingOptions) -> None:
        self.stream, self._period_ns = options.stream(), round(SECOND / options.rate_hz)
        self._due_ns = self._items = self._until_ns = 0

    def connect(self, now_ns: int) -> None:
        self._due_ns = now_ns

    def sense(self, t_ns: int, observation: Mapping[str, np.ndarray]) -> None:
        items = int((observation["items"][:, IN_TARGET] > 0.5).sum())
        self._until_ns = t_ns + SECOND // 5 if items > self._items else self._until_ns
        self._items = items

    def drain(self, now_ns: int) -> Batch:
        t_ns = np.arange(self._due_ns, now_ns + 1, self._period_ns)
        self._due_ns += self._period_ns * len(t_ns)
        return Batch("force", t_ns, np.where(t_ns < self._until_ns, 50.0, 1.0)[:, None])

    def close(self) -> None: ...


def build(options: SpikingOptions, *, cell: Cell, fixture: Fixture) -> SpikingSensor:
    """A force sensor."""
    return SpikingSensor(options)
