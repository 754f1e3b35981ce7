"""Steps that a sensor saw: found at their time, matched with the detector's candidates, else candidates themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from labctl.clock import SECOND
from labctl.core.recorded.weighing import Weighed, steps, witnessed
from labctl.messages.body_parts import DOWN, UP

PERIOD = SECOND // 20


def signal(*levels: tuple[float, float], noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A scale at 20 Hz that shows each level (kg) for so many seconds."""
    values = np.concatenate([np.full(round(20 * lasts), level) for level, lasts in levels])
    values = values + noise * np.random.Generator(np.random.PCG64(0)).standard_normal(len(values))
    return PERIOD * np.arange(len(values)), values


def detected(t_ns: int, zone: str = "left", result: str = "success") -> Any:
    return {"t_ns": t_ns, "edge": "release", "zone": zone, "result": result, "held_s": 2.0, "moved_m": 0.4}


def test_each_item_is_a_step_at_the_time_of_its_edge() -> None:
    t_ns, values = signal((0.0, 2.0), (0.05, 2.0), (0.10, 2.0), (0.05, 2.0), noise=0.001)
    found = steps(t_ns, values, 0.025)
    assert [round(one.t_ns / SECOND, 1) for one in found] == [2.0, 4.0, 6.0]
    assert [round(one.change, 2) for one in found] == [0.05, 0.05, -0.05]


def test_a_slow_drift_a_short_knock_and_what_is_no_number_are_no_steps() -> None:
    t_ns, values = signal((0.0, 10.0))
    assert steps(t_ns, values + np.linspace(0, 0.02, len(values)), 0.025) == []
    knocked = values.copy()
    knocked[50:54] = 0.3
    assert steps(t_ns, knocked, 0.025) == []
    knocked[100:140] = np.nan
    assert steps(t_ns, knocked, 0.025) == []


def test_a_drift_that_adds_up_to_a_step_is_one() -> None:
    t_ns, values = signal((0.0, 1.0), (0.012, 1.0), (0.024, 1.0), (0.036, 1.0))
    assert len(steps(t_ns, values, 0.025)) == 1


def test_a_release_over_the_tote_is_confirmed_by_the_step_that_follows_it() -> None:
    found = witnessed([detected(5 * SECOND)], [Weighed(6 * SECOND, 0.05)], by="scale", tote="left", target="left")
    assert [(one["edge"], list(one.get("witnesses", ()))) for one in found] == [("release", ["scale"])]


def test_a_step_that_no_release_explains_is_a_candidate_by_itself() -> None:
    seen = [Weighed(6 * SECOND, 0.05), Weighed(12 * SECOND, 0.05), Weighed(20 * SECOND, -0.05)]
    found = witnessed([detected(5 * SECOND)], seen, by="scale", tote="left", target="left")
    told = [(one["edge"], one["zone"], one["result"]) for one in found]
    assert told == [("release", "left", "success"), (UP, "left", "success"), (DOWN, "left", "unknown")]


def test_a_release_elsewhere_or_long_before_explains_nothing_and_another_tote_is_no_target() -> None:
    before = [detected(5 * SECOND, zone="right"), detected(2 * SECOND)]
    found = witnessed(before, [Weighed(6 * SECOND, 0.05)], by="scale", tote="left", target="right")
    assert [(one["edge"], one["result"]) for one in found] == [
        ("release", "success"),
        ("release", "success"),
        (UP, "neutral"),
    ]
