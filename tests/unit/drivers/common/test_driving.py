"""Speeds of a base within their limits, the places that they lead to, and poses seen from there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.axes import Axis
from labctl.drivers.common.driving import SpeedLimiter, driven, from_floor, off_place, onto_floor

PERIOD_S = 0.01
AXES = (
    Axis("vx", "twist", "m/s", velocity=0.3, acceleration=0.6),
    Axis("wz", "twist", "rad/s", velocity=1.0, acceleration=4.0),
)
PLACES = st.tuples(st.floats(-2, 2), st.floats(-2, 2), st.floats(-4, 4))


@given(st.lists(st.tuples(st.floats(-5, 5) | st.just(math.nan), st.floats(-5, 5)), min_size=1, max_size=60))
def test_whatever_is_asked_for_speed_and_acceleration_are_kept_and_no_number_asks_for_none(
    asked: list[tuple[float, float]],
) -> None:
    limiter = SpeedLimiter(AXES, PERIOD_S)
    sent = limiter.follow(np.array(asked))
    assert (np.abs(sent) <= [0.3, 1.0]).all()
    assert (np.abs(np.diff(sent, axis=0, prepend=0.0)) / PERIOD_S <= [0.6, 4.0]).all()
    rest = limiter.brake(51)  # 0.3 m/s at 0.6 m/s2 is half a second, and one for what rounding leaves
    assert not rest[-1].any() and limiter.still


def test_it_names_the_speed_that_was_cut() -> None:
    limiter = SpeedLimiter(AXES, PERIOD_S)
    limiter.follow(np.array([[0.1, 2.0]]))
    assert limiter.clipped == "the speed of wz"
    limiter.follow(np.array([[0.1, 0.2]]))
    assert limiter.clipped == ""


def test_a_quarter_of_a_circle_ends_a_radius_ahead_and_a_radius_aside() -> None:
    """A base that goes ahead at v and turns at w drives a circle of radius v / w."""
    n, turn = 1000, math.pi / 2
    speeds = np.tile([0.2, 0.0, turn / (n * PERIOD_S)], (n, 1))
    radius = 0.2 / (turn / (n * PERIOD_S))
    assert driven(np.zeros(3), speeds, PERIOD_S)[-1] == pytest.approx([radius, radius, turn], abs=1e-4)


def test_sideways_is_along_the_bases_own_axis() -> None:
    facing_left = np.array([1.0, 2.0, math.pi / 2])
    assert driven(facing_left, np.array([[0.0, 0.5, 0.0]]), 1.0)[-1] == pytest.approx([0.5, 2.0, math.pi / 2])


@given(PLACES)
def test_a_pose_seen_from_a_base_and_back_is_the_same(place: tuple[float, float, float]) -> None:
    poses = np.array([[0.4, -0.2, 0.3, 1.0, 0.0, 0.0, 0.0], [0.1, 0.5, 0.2, 0.0, 0.6, 0.0, 0.8]])
    at = np.array(place)
    there = onto_floor(poses, at)
    assert from_floor(there, at) == pytest.approx(poses, abs=1e-9)
    assert np.linalg.norm(there[:, :2] - at[:2], axis=1) == pytest.approx(np.linalg.norm(poses[:, :2], axis=1))


def test_it_is_said_where_a_base_is_to_stand_and_how_far_off_it_is() -> None:
    assert off_place(np.array([0.01, -0.01, math.tau + 0.01]), 0.02, 0.03) == "", "a whole turn is none"
    assert off_place(np.array([0.30, -0.02, 0.5]), 0.02, 0.03) == (
        "put the base in its place (0, 0, 0°): by its odometry it is at x +0.30 m, y -0.02 m, +29°; "
        "within 0.02 m and 2° will do"
    )
