"""A projection is exact on samples, true between them, and refuses what was not measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from labctl.clock import MILLISECOND, SECOND
from labctl.core.recorded.projection import capture_ns, previous_index, project, surrounding

T = np.array([0, 10, 20, 50, 60], dtype=np.int64) * MILLISECOND
Y = np.array([0.0, 1.0, 4.0, 7.0, 7.0])
GAP = 10 * MILLISECOND


def ms(*values: float) -> np.ndarray:
    return np.array([round(value * MILLISECOND) for value in values], dtype=np.int64)


def test_between_two_samples_the_value_lies_on_the_line_between_them():
    found = project(T, Y, ms(5, 12.5, 55), max_gap_ns=GAP)
    assert found.valid.all()
    assert found.values[:, 0].tolist() == [0.5, 1.75, 7.0]


def test_on_a_sample_it_is_the_sample_even_beside_a_gap():
    found = project(T, Y, ms(60, 0, 20, 50), max_gap_ns=GAP)
    assert found.valid.all() and found.values[:, 0].tolist() == [7.0, 0.0, 4.0, 7.0]


def test_across_a_gap_and_beyond_the_ends_it_refuses():
    found = project(T, Y, ms(-0.1, 35, 60.1), max_gap_ns=GAP)
    assert not found.valid.any() and np.isnan(found.values).all()
    assert project(T, Y, ms(35), max_gap_ns=30 * MILLISECOND).values[0, 0] == 5.5


def test_what_changes_in_steps_keeps_its_last_value_for_no_longer_than_stated():
    found = project(T, Y, ms(-1, 0, 9.9, 29.9, 30, 30.1, 65, 71), max_gap_ns=GAP, method="previous")
    assert found.valid.tolist() == [False, True, True, True, True, False, True, False]
    assert found.values[found.valid, 0].tolist() == [0.0, 0.0, 4.0, 4.0, 7.0]
    assert previous_index(T, ms(15, 45), max_gap_ns=GAP).tolist() == [1, -1]


def test_no_samples_no_values():
    nothing = np.empty(0, np.int64)
    for method in ("linear", "previous"):
        found = project(nothing, np.empty((0, 3)), ms(1, 2), max_gap_ns=SECOND, method=method)
        assert found.values.shape == (2, 3) and not found.valid.any()
    assert project(T, Y, nothing, max_gap_ns=GAP).values.shape == (0, 1)


def test_rotations_turn_along_the_shorter_arc_as_scipy_has_it():
    turns = Rotation.from_euler("xyz", [[0, 0, 0], [40, 10, -5], [170, 60, 80]], degrees=True)
    quaternions = turns.as_quat()
    quaternions[1] *= -1.0  # the same rotation, written the other way
    t_ns = ms(0, 10, 20)
    at_ns = ms(0, 3, 10, 17.5)
    poses = np.hstack([np.array([[0.0], [1.0], [3.0]]), quaternions])
    found = project(t_ns, poses, at_ns, max_gap_ns=GAP, quaternions=(1,))
    expected = Slerp(t_ns / 1e6, turns)(at_ns / 1e6)
    assert (Rotation.from_quat(found.values[:, 1:]) * expected.inv()).magnitude().max() < 1e-9
    assert found.values[:, 0] == pytest.approx([0.0, 0.3, 1.0, 2.5])


def test_capture_is_receipt_less_latency():
    assert capture_ns(ms(100, 133), 0.045).tolist() == ms(55, 88).tolist()


@pytest.mark.parametrize(
    ("t_ns", "values", "message"),
    [(T[::-1], Y, "must ascend"), (T, Y[:3], "5 times for values"), (T[None], Y[None], "one dimension")],
)
def test_what_is_no_stream_is_refused(t_ns, values, message):
    with pytest.raises(ValueError, match=message):
        project(t_ns, values, ms(1), max_gap_ns=GAP)


@given(
    steps=st.lists(st.integers(0, 40), min_size=1, max_size=30),
    at=st.lists(st.integers(-20, 700), max_size=30),
    gap=st.integers(0, 50),
)
def test_a_straight_line_is_reproduced_wherever_it_is_not_refused(steps, at, gap):
    t_ns = np.cumsum(np.array(steps, dtype=np.int64))
    at_ns = np.array(at, dtype=np.int64)
    left, right, share = surrounding(t_ns, at_ns, max_gap_ns=gap)
    found = project(t_ns, 3.0 * t_ns - 7.0, at_ns, max_gap_ns=gap)
    for i, instant in enumerate(at_ns):
        before, after = t_ns[t_ns <= instant], t_ns[t_ns >= instant]
        near = len(before) > 0 and len(after) > 0 and after[0] - before[-1] <= gap
        assert found.valid[i] == near == (left[i] >= 0) == (right[i] >= 0)
        if near:
            assert found.values[i, 0] == pytest.approx(3.0 * instant - 7.0)
            assert 0.0 <= share[i] <= 1.0 and t_ns[left[i]] <= instant <= t_ns[right[i]]
