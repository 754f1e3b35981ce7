"""Sensor "sim_scale": a simulated scale under the target tote of the simulated scene.

May not: know the scene beyond what the simulated tracker sees; randomness comes from a fixed seed. Proves nothing about
scales: it shows what lies in the tote with a lag and some noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Batch, Kind
from labctl.drivers.common.scale import scale_stream
from labctl.drivers.sim.options import SimScaleOptions
from labctl.drivers.sim.tracker import HELD, IN_TARGET

SETTLES_S = 0.15  # time constant of its answer to a step
SHARE_STANDS = 0.02  # within so much of an item of what lies there, it says that it stands


class SimScale:
    """See `labctl.devices.Sensor`."""

    kind: Kind = "sim"
    observes = True

    def __init__(self, options: SimScaleOptions) -> None:
        self.stream = scale_stream(options.rate_hz)
        self._options = options
        self._period_ns = round(SECOND / options.rate_hz)
        self._decay = math.exp(-1.0 / (options.rate_hz * SETTLES_S))
        self._due_ns: int | None = None  # None: not connected
        self._load = self._shown = 0.0
        self._rng = np.random.Generator(np.random.PCG64(0))

    def connect(self, now_ns: int) -> None:
        if self._due_ns is None:
            self._due_ns = now_ns + self._period_ns

    def sense(self, t_ns: int, observation: Mapping[str, np.ndarray]) -> None:
        """Take what lies in the target tote, of items (n, 8)."""
        items = observation.get("items")
        if items is not None:
            lying = (items[:, IN_TARGET] > 0.5) & (items[:, HELD] < 0.5)
            self._load = self._options.item_kg * float(lying.sum())

    def drain(self, now_ns: int) -> Batch:
        """What it showed since the last call, one value a period."""
        if self._due_ns is None:
            raise RuntimeError("the sensor is not connected")
        t_ns = np.arange(self._due_ns, now_ns + 1, self._period_ns, dtype=np.int64)
        values = np.empty((len(t_ns), 2))
        for i in range(len(t_ns)):
            self._shown = self._load + (self._shown - self._load) * self._decay
            stands = abs(self._shown - self._load) < SHARE_STANDS * self._options.item_kg
            values[i] = self._shown + self._options.noise_kg * self._rng.standard_normal(), stands
        if len(t_ns):
            self._due_ns = int(t_ns[-1]) + self._period_ns
        return Batch(self.stream.name, t_ns, values)

    def close(self) -> None:
        self._due_ns = None


def build(options: SimScaleOptions, *, cell: Cell, fixture: Fixture) -> SimScale:
    """A simulated scale."""
    return SimScale(options)
