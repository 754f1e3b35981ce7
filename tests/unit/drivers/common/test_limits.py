"""Whatever is asked of the limiter, what it lets through keeps every limit, and it can always stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.config.cell_schema import Limits as CellLimits
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import Limiter, limits_of
from labctl.drivers.common.robot_tables import FR3, UR5, UR5E, RobotModel
from labctl.errors import InputError

PERIOD_S = 0.01
ARMS = st.sampled_from([FR3, UR5, UR5E])


def _wanted(arm: RobotModel, tool_speed: float | None = 0.5, **changed: Any) -> CellLimits:
    rows = {
        "velocity_rad_s": [2.0] * arm.dof,
        "acceleration_rad_s2": [8.0] * arm.dof,
        "box_min_m": [0.15, -0.6, 0.0],
        "box_max_m": [0.8, 0.6, 0.8],
        "tool_speed_m_s": tool_speed,
    }
    return CellLimits(**{**rows, **changed})


def _limiter(arm: RobotModel, tool_speed: float | None = 0.5) -> Limiter:
    return Limiter(arm, limits_of(arm, _wanted(arm, tool_speed), arm.home), PERIOD_S)


def _breaks(arm: RobotModel, q: np.ndarray) -> list[str]:
    """Names of the limits that setpoints q (n, dof), the first two at rest, break: no tolerance at all."""
    limits = limits_of(arm, _wanted(arm), arm.home)
    speed = np.diff(q, axis=0) / PERIOD_S
    kick = np.diff(speed, axis=0) / PERIOD_S
    at = kinematics.positions(arm.chain, q).T
    checks = {
        "position": ((q < limits.lower) | (q > limits.upper)).any(),
        "velocity": (np.abs(speed) > limits.velocity).any(),
        "acceleration": (np.abs(kick) > limits.acceleration).any(),
        "tool speed": (np.linalg.norm(np.diff(at, axis=0), axis=1) / PERIOD_S > limits.tool_speed).any(),
        "box": ((at < limits.box_min) | (at > limits.box_max)).any(),
    }
    return [name for name, broken in checks.items() if broken]


def _driven(arm: RobotModel, seed: int, size: float, ticks: int) -> tuple[Limiter, np.ndarray]:
    """A limiter fed with jumps of up to `size` rad, tick by tick, and all it let through."""
    rng = np.random.default_rng(seed)
    limiter = _limiter(arm)
    sent = [np.repeat(arm.home[None, :], 2, axis=0)]
    for _ in range(ticks):
        knot = arm.home + rng.uniform(-size, size, arm.dof)
        straight = limiter.q + np.linspace(0.1, 1.0, 10)[:, None] * (knot - limiter.q)
        sent.append(limiter.follow(straight if rng.random() < 0.5 else np.repeat(knot[None, :], 10, axis=0)).q)
    return limiter, np.concatenate(sent)


@settings(max_examples=40, deadline=None)
@given(arm=ARMS, seed=st.integers(0, 10**6), size=st.sampled_from([0.02, 0.3, 4.0]))
def test_no_demand_makes_a_setpoint_break_a_limit(arm, seed, size):
    _, sent = _driven(arm, seed, size, ticks=12)
    assert _breaks(arm, sent) == []


@settings(max_examples=25, deadline=None)
@given(arm=ARMS, seed=st.integers(0, 10**6), size=st.sampled_from([0.3, 4.0]))
def test_from_wherever_it_is_the_arm_stops_within_its_limits(arm, seed, size):
    limiter, sent = _driven(arm, seed, size, ticks=6)
    stop = limiter.brake(60).q
    assert _breaks(arm, np.concatenate([sent, stop])) == []
    assert (stop[-1] == stop[-2]).all() and limiter.still


@settings(max_examples=25, deadline=None)
@given(arm=ARMS, seed=st.integers(0, 10**6), size=st.sampled_from([0.3, 4.0]), cut=st.integers(1, 8))
def test_the_stop_kept_ready_keeps_every_limit_and_may_be_cut_short_and_left_again(arm, seed, size, cut):
    limiter, sent = _driven(arm, seed, size, ticks=6)
    before = limiter.q.copy()
    tail = limiter.brake_tail()
    assert (limiter.q == before).all()
    path = np.concatenate([sent, tail])
    assert _breaks(arm, path) == []
    path = np.concatenate([sent, tail[:cut]])
    limiter.resume(path[-1], path[-1] - path[-2])
    again = [limiter.follow(np.repeat(arm.home[None, :], 10, axis=0)).q for _ in range(4)]
    assert _breaks(arm, np.concatenate([path, *again])) == []


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (FR3.home, ""),
        (FR3.home + 0.005 * np.eye(7)[3], ""),
        (FR3.home + 3.0 * np.eye(7)[3], "joint 4 speed"),
        (FR3.home + 0.15 * np.eye(7)[3], "joint 4 acceleration"),
        (FR3.inverse(np.array([[0.42, 0.0, -0.03, 1.0, 0.0, 0.0, 0.0]]), FR3.home)[0], "workspace box z"),
    ],
)
def test_what_was_clipped_is_named(target, says):
    limiter = _limiter(FR3)
    path = limiter.q + np.linspace(0.0, 1.0, 200)[:, None] * (target - limiter.q) if "box" in says else target[None, :]
    seen = {_clip(limiter, row) for row in np.array_split(path, len(path))}
    assert says in seen


def _clip(limiter: Limiter, row: np.ndarray) -> str:
    limiter.follow(row)
    return limiter.clipped


def test_a_gentle_path_is_followed_exactly_but_for_the_average():
    limiter = _limiter(FR3)
    t = np.arange(1, 201)[:, None] * PERIOD_S
    path = FR3.home + 0.2 * (1 - np.cos(t)) * np.ones(7)
    sent = np.concatenate([limiter.follow(path[i : i + 10]).q for i in range(0, 200, 10)])
    average = np.array(
        [
            np.concatenate([np.repeat(FR3.home[None, :], 10, axis=0), path])[i + 1 : i + 11].mean(axis=0)
            for i in range(200)
        ]
    )
    assert np.abs(sent - average).max() < 1e-12


def test_a_held_target_is_reached_and_the_arm_comes_to_rest():
    limiter = _limiter(FR3)
    target = FR3.home + 0.3
    for _ in range(20):
        sent = limiter.follow(np.repeat(target[None, :], 10, axis=0)).q
    assert limiter.still
    assert np.abs(sent[-1] - target).max() < 1e-9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_read_as_the_row_before(bad):
    clean, dirty = _limiter(FR3), _limiter(FR3)
    rows = FR3.home + np.linspace(0.001, 0.01, 10)[:, None]
    broken = rows.copy()
    broken[4, 2] = bad
    rows[4] = rows[3]
    assert np.abs(clean.follow(rows).q - dirty.follow(broken).q).max() < 1e-9


def test_splitting_a_tick_changes_nothing():
    whole, parts = _limiter(FR3, None), _limiter(FR3, None)
    rows = FR3.home + 0.1 * np.sin(np.arange(40) / 20)[:, None] * np.ones(7)
    one = np.concatenate([whole.follow(rows[i : i + 10]).q for i in range(0, 40, 10)])
    two = np.concatenate([parts.follow(rows[i : i + 5]).q for i in range(0, 40, 5)])
    assert np.abs(one - two).max() < 1e-12


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("velocity_rad_s", [2.0] * 6, "list of 7 numbers"),
        ("velocity_rad_s", [9.0] * 7, "at most what the fr3 allows: 2.62"),
        ("box_min_m", [0.6, -0.6, 0.0], "must hold the home"),
    ],
)
def test_limits_the_arm_does_not_have_are_refused(key, value, says):
    with pytest.raises(InputError, match=says):
        limits_of(FR3, _wanted(FR3, **{key: value}), FR3.home)
