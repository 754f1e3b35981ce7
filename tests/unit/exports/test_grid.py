"""A grid is uniform, stays inside the episode, and measures exactly how far it moves what it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.exports.grid import default_bound_ns, first_frame, grid, held, offset, overlapping

times = st.lists(st.integers(0, 10 * SECOND), min_size=1, max_size=60).map(lambda t: np.array(sorted(t), np.int64))


@given(st.integers(0, 10**15), st.integers(0, 200 * SECOND), st.integers(1, 120))
def test_frames_are_a_frame_apart_and_the_last_action_is_due_before_the_end(start: int, length: int, fps: int) -> None:
    t_ns = grid(start, start + length, fps)
    frames = max(len(t_ns) - 1, 0)
    assert frames == length * fps // SECOND
    if frames:
        exact = [start + k * SECOND / fps for k in range(frames + 1)]
        assert max(abs(float(t - start) - (e - start)) for t, e in zip(t_ns, exact, strict=True)) <= 1.0
        assert t_ns[0] == start and t_ns[-1] <= start + length + 1


@given(times, times)
def test_the_nearest_sample_is_nearest_and_never_goes_back(t_ns: np.ndarray, at_ns: np.ndarray) -> None:
    found = offset("s", t_ns, at_ns, 0)
    assert (found.error_ns == np.abs(t_ns[None, :] - at_ns[:, None]).min(axis=1)).all()
    assert (np.abs(t_ns[found.nearest] - at_ns) == found.error_ns).all()
    assert (np.diff(found.nearest) >= 0).all(), "a video can be coded in one pass"
    assert found.worst_ns == found.error_ns.max() and found.too_far == (found.worst_ns > 0)


def test_a_stream_without_samples_is_too_far_from_any_grid() -> None:
    assert offset("s", np.empty(0, np.int64), np.arange(3), 10**15).too_far


@given(times, times)
def test_a_setpoint_holds_until_the_next(t_ns: np.ndarray, at_ns: np.ndarray) -> None:
    for when, index in zip(at_ns, held(t_ns, at_ns), strict=True):
        assert index == max((i for i, t in enumerate(t_ns) if t <= when), default=-1)


def test_a_grid_begins_at_the_first_picture_of_the_fastest_camera_after_go() -> None:
    pictures = {"slow": np.array([900, 1100]) * MILLISECOND, "fast": np.array([990, 1020, 1053]) * MILLISECOND}
    rates = {"slow": 5.0, "fast": 30.0}
    assert first_frame(pictures, rates, SECOND, 30) == 1020 * MILLISECOND
    assert first_frame({"fast": pictures["fast"] + SECOND}, rates, SECOND, 30) == SECOND, "it came a second too late"
    assert first_frame({}, {}, SECOND, 30) == SECOND


def test_without_a_bound_given_a_stream_may_be_off_by_its_own_period_and_a_quarter() -> None:
    """Frames as far apart as the samples: with one or two lost, each frame has a sample a period away; with three the
    middle one has none.
    """
    rate_hz, fps = 10.0, 10
    at_ns = np.array([i * SECOND // 10 for i in range(20)], np.int64)
    for lost, too_far in ((0, False), (1, False), (2, False), (3, True)):
        t_ns = np.delete(at_ns, range(5, 5 + lost))
        assert offset("s", t_ns, at_ns, default_bound_ns(rate_hz, fps)).too_far == too_far, lost
    assert default_bound_ns(1000.0, 30) == round(1.25 * SECOND / 60), "half a frame, for what is sampled faster"


@pytest.mark.parametrize(
    ("gap", "missing"),
    [
        ({"stream": "s", "from_ns": 20, "to_ns": 50}, 30),
        ({"stream": "s", "from_ns": None, "to_ns": 50}, 40),
        ({"stream": "s", "from_ns": 90, "to_ns": None}, 10),
        ({"stream": "s", "from_ns": 0, "to_ns": 5}, 0),
        ({"stream": "other", "from_ns": 20, "to_ns": 50}, 0),
    ],
)
def test_what_the_journal_says_is_missing_counts_where_the_grid_is(gap: dict, missing: int) -> None:
    assert overlapping([gap], "s", 10, 100) == missing
