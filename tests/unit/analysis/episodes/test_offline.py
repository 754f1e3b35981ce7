"""The static score by hand: distances, turns, the logarithm, and agreement with the robot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labctl.analysis.episodes.offline import agreement, distances_m, score, summary, turns_rad
from scipy import stats


def test_the_score_is_the_logarithm_of_the_distance_between_a_millimetre_and_a_metre():
    # methodology section 5: 100 · clip(-log10(d)/3, 0, 1); 1 mm or less is 100, 1 m or more is 0
    found = score(np.array([0.0, 0.0005, 0.001, 0.01, 0.1, 1.0, 3.0]))
    assert found == pytest.approx([100, 100, 100, 200 / 3, 100 / 3, 0, 0])


@given(st.floats(0, 10), st.floats(0, 10))
def test_nearer_never_scores_less(a, b):
    near, far = sorted((a, b))
    assert score(np.array([near]))[0] >= score(np.array([far]))[0]


def test_distances_and_turns():
    assert distances_m(np.array([[0.3, 0.4, 0, 9.0]]), np.zeros((1, 4)))[0] == pytest.approx(0.5)
    half = np.sqrt(0.5)
    quarter = np.array([[0, 0, half, half]])  # 90 degrees about z
    still = np.array([[0, 0, 0, 1.0]])
    assert turns_rad(quarter, still)[0] == pytest.approx(np.pi / 2)
    assert turns_rad(quarter, -quarter)[0] == pytest.approx(0.0, abs=1e-7), "a quaternion and its negative are one turn"


def test_agreement_is_pearsons_over_the_tasks_that_both_know():
    static = {"a": 10.0, "b": 40.0, "c": 50.0, "d": 90.0, "only": 1.0}
    real = {"a": 0.2, "b": 0.3, "c": 0.9, "d": 0.8}
    found = agreement(static, real)
    assert found.tasks == 4
    assert found.pearson == pytest.approx(stats.pearsonr([10, 40, 50, 90], [0.2, 0.3, 0.9, 0.8]).statistic)
    assert agreement(static, real) == found, "the same tasks, the same band"


def test_few_or_flat_tasks_say_nothing():
    assert agreement({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 0.0}).pearson is None
    assert agreement(dict.fromkeys("abc", 5.0), {"a": 0.1, "b": 0.2, "c": 0.3}).pearson is None


def test_a_policy_is_the_mean_over_objects_of_its_keyframes():
    def frame(thing: str, position_m: float) -> dict:
        return {"object": thing, "episode": "e", "position_m": position_m, "orientation_rad": 0.5, "gripper_m": 0.01}

    found = summary("p", [frame("x", 0.01), frame("x", 0.1), frame("y", 1.0)], None)
    assert [entry["score"] for entry in found["objects"]] == pytest.approx([50.0, 0.0])
    assert found["score"] == pytest.approx(25.0) and found["agreement"] is None
    assert found["objects"][0]["position_m"] == pytest.approx(0.055)
