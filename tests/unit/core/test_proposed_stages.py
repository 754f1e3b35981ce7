"""What the traces propose of stages: grasped, lifted and placed, in order, and nothing beyond what a hold shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.core.recorded.detector import Layout, detect
from labctl.core.task import proposed
from labctl.messages.body_parts import StageEntry

HZ = 100
TOTES = {"left": ((0.48, 0.24, 0.0), (0.34, 0.30, 0.12)), "right": ((0.48, -0.24, 0.0), (0.34, 0.30, 0.12))}
LAYOUT = Layout(TOTES, "left", 0.025)


def held(*parts: tuple[float, float, float, float]) -> list[Any]:
    """What the detector finds of (seconds, opening m, y, z) in turn, each reached at once; x is the totes' middle."""
    rows = [(opening, 0.48, y, z) for seconds, opening, y, z in parts for _ in range(round(seconds * HZ))]
    values = np.array(rows)
    t_ns = np.arange(len(values)) * SECOND // HZ
    return detect(t_ns, values[:, 0], values[:, 1:], LAYOUT)


def stages(*sensed: str | None) -> list[StageEntry]:
    return [{"name": f"{i}", "points": 1.0, "definition": "-", "sensed": one} for i, one in enumerate(sensed)]


WHOLE = held(
    (1, 0.08, -0.24, 0.2), (1, 0.025, -0.24, 0.02), (1, 0.025, -0.24, 0.2), (1, 0.025, 0.24, 0.1), (1, 0.08, 0.24, 0.1)
)


def times(*sensed: str | None, of: list[Any] = WHOLE, go_s: float = 0, end_s: float = 10) -> list[float]:
    return [t_ns / SECOND for t_ns in proposed(stages(*sensed), of, round(go_s * SECOND), round(end_s * SECOND))]


def test_a_carry_from_tote_to_tote_is_grasped_lifted_and_placed_at_its_times():
    assert times("grasped", "lifted", "placed") == pytest.approx([1.0, 2.0, 4.0])


def test_what_no_trace_can_tell_ends_the_proposal():
    assert times("opened", "placed") == []
    assert times("grasped", None, "placed") == pytest.approx([1.0])
    assert times("grasped", "closed") == pytest.approx([1.0])


def test_a_stage_is_not_before_the_one_before_it_and_within_the_episode():
    assert times("placed", "grasped") == pytest.approx([4.0]), "no second hold"
    assert times("grasped", "lifted", "placed", end_s=3) == pytest.approx([1.0, 2.0])
    assert times("grasped", go_s=1.5) == []


def test_what_is_pushed_about_is_not_lifted_and_what_is_put_back_not_placed():
    pushed = held((1, 0.08, -0.24, 0.2), (1, 0.025, -0.24, 0.02), (1, 0.025, -0.2, 0.03), (1, 0.08, -0.2, 0.03))
    assert times("grasped", "lifted", of=pushed) == pytest.approx([1.0])
    assert times("grasped", "placed", of=pushed) == pytest.approx([1.0])
