"""A simulated FR3 with a sensor of its own: one column that could tell policies apart, one that could not, one of which
nobody says it, and a stream that could as a whole. What it declares of them is all that anybody is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Batch, StreamSpec
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.robot import SimRobot

TELLING, PLAIN, STREAM = "grip_force.telling", "motor_temperature.plain", "thoughts.telling"
UNSAID = "suction.unsaid"


class TellingRobot(SimRobot):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        state, *others = self.streams
        wider = replace(
            state,
            columns=(*state.columns, TELLING, PLAIN, UNSAID),
            private_columns=(*state.private_columns, TELLING),
            public_columns=(*state.public_columns, PLAIN),
        )
        thoughts = StreamSpec(STREAM, ("thought",), "1", 1.0, arm_dependent=True)
        self.streams = (wider, *others, thoughts)

    def drain(self, now_ns: int) -> list[Batch]:
        found = [self._wider(batch) if batch.stream == "arm/state" else batch for batch in super().drain(now_ns)]
        return [*found, Batch(STREAM, np.array([now_ns]), np.array([[1.0]]))]

    def observe(self) -> dict[str, np.ndarray]:
        return {**super().observe(), TELLING: np.array([12.5]), UNSAID: np.array([0.7])}

    def _wider(self, batch: Batch) -> Batch:
        more = np.tile([12.5, 41.0, 0.7], (len(batch.t_ns), 1))
        return Batch(batch.stream, batch.t_ns, np.hstack([batch.values, more]))


def build(options: Mapping[str, Any], *, cell: Cell, fixture: Fixture) -> TellingRobot:
    return TellingRobot(FR3, cell, fixture)
