"""Of a robot on a rail the roughness of its targets is that of its joints, in rad: metres and radians have no norm."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.analysis.episodes.stress import episode_stress
from labctl.clock import SECOND
from labctl.reporting.measures import traces_of
from labctl.streams import StreamSpec

STATE = StreamSpec("arm/state", ("q.rail", "q.a", "dq.rail", "dq.a"), "m rad m/s rad/s", 100.0)
ACTION = StreamSpec("arm/action", ("sent.rail", "sent.a"), "m rad", 100.0)
RECORD: Any = SimpleNamespace(unblinding=object(), arms={"t": "p"})
TRIAL: Any = SimpleNamespace(id="t", condition="cube")
EPISODE: Any = SimpleNamespace(id="e", go_ns=SECOND, end_ns=3 * SECOND, taken_over=False)


class Store:
    """An episode whose rail jumps by `rail` m and whose joint by `joint` rad every 0.1 s; no joint where it is None."""

    def __init__(self, rail: float, joint: float | None) -> None:
        self.jumps = np.array([rail] if joint is None else [rail, joint])
        self.specs = [STATE, ACTION] if joint is not None else [_first(STATE, 2), _first(ACTION, 1)]

    def streams(self, episode: str) -> list[StreamSpec]:
        return self.specs

    def read(self, episode: str, name: str) -> tuple[np.ndarray, np.ndarray]:
        assert name == "arm/action"
        t_ns = SECOND + np.arange(21, dtype=np.int64) * (SECOND // 10)
        return t_ns, np.arange(21)[:, np.newaxis] * self.jumps


def _first(spec: StreamSpec, every: int) -> StreamSpec:
    return StreamSpec(spec.name, spec.columns[::every][:1], "m", spec.rate_hz)


@pytest.mark.parametrize("rail", [0.0, 0.4])
def test_what_a_rail_does_is_in_no_roughness_in_radians(rail: float) -> None:
    """0.3 rad from tick to tick; with a rail's 0.4 m in the norm it would be 0.5."""
    store: Any = Store(rail, 0.3)
    traces = traces_of(store, RECORD, TRIAL, EPISODE)
    assert traces is not None and episode_stress(traces)["roughness_rad"] == pytest.approx(0.3)


def test_a_robot_without_joints_has_no_roughness_rather_than_the_best() -> None:
    store: Any = Store(0.4, None)
    traces = traces_of(store, RECORD, TRIAL, EPISODE)
    assert traces is not None and episode_stress(traces)["stability"] is None
