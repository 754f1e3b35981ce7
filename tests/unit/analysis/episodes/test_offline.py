"""The static score by hand: distances, turns, the logarithm, and agreement with the robot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labctl.analysis.episodes.offline import agreement, apart, between, distances_m, score, summary, turns_rad


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
    assert found["tasks"] == 4
    assert found["pearson"] == pytest.approx(stats.pearsonr([10, 40, 50, 90], [0.2, 0.3, 0.9, 0.8]).statistic)
    assert agreement(static, real) == found, "the same tasks, the same band"


def test_few_or_flat_tasks_say_nothing():
    assert agreement({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 0.0})["pearson"] is None
    assert agreement(dict.fromkeys("abc", 5.0), {"a": 0.1, "b": 0.2, "c": 0.3})["pearson"] is None


def parts(*position_m: float, turn: float = 0.5, opening: float = 0.01) -> dict:
    n = len(position_m)
    return {"position_m": np.array(position_m), "orientation_rad": np.full(n, turn), "gripper_m": np.full(n, opening)}


def frame(thing: str, position_m: float, *, still: float = 0.01, turn: float = 0.5) -> dict:
    named = {"object": thing, "episode": "e", "policy": parts(position_m, turn=turn)}
    return named | {"still": parts(still, turn=0.1, opening=0.0), "random": parts(0.1, 1.0, turn=0.9, opening=0.04)}


def test_a_policy_is_the_mean_over_objects_of_its_keyframes():
    found = summary("p", [frame("x", 0.01), frame("x", 0.1), frame("y", 1.0)], None)
    assert [entry["score"] for entry in found["objects"]] == pytest.approx([50.0, 0.0])
    assert found["score"] == pytest.approx(25.0) and found["agreement"] is None
    assert found["objects"][0]["position_m"] == pytest.approx(0.055)


def test_both_floors_stand_beside_a_score_and_the_scale_runs_from_random_to_standing_still():
    found = summary("p", [frame("x", 0.1), frame("y", 0.1)], None)
    # by the formula: 0.01 m is 66.7, 0.1 m is 33.3, and of random answers at 0.1 m and 1 m the mean score is 16.7
    assert found["floors"]["still"]["score"] == pytest.approx(200 / 3)
    assert found["floors"]["random"]["score"] == pytest.approx(100 / 6)
    assert found["between"]["score"] == pytest.approx((100 / 3 - 100 / 6) / (200 / 3 - 100 / 6))
    assert found["floors"]["random"]["position_m"] == pytest.approx(0.55)
    assert found["between"]["orientation_rad"] == pytest.approx((0.9 - 0.5) / (0.9 - 0.1))
    assert found["between"]["gripper_m"] == pytest.approx((0.04 - 0.01) / 0.04)
    assert [entry["between"]["score"] for entry in found["objects"]] == pytest.approx([found["between"]["score"]] * 2)


def test_an_arm_that_stands_still_is_at_one_and_a_better_policy_above_it():
    assert summary("p", [frame("x", 0.01, turn=0.1)], None)["between"]["orientation_rad"] == pytest.approx(1.0)
    assert summary("p", [frame("x", 0.01)], None)["between"]["score"] == pytest.approx(1.0)
    assert summary("p", [frame("x", 0.002)], None)["between"]["score"] > 1.0


def test_where_standing_still_is_no_better_than_random_nothing_is_scaled():
    found = summary("p", [frame("x", 0.01, still=2.0)], None)
    assert found["between"]["score"] is None and found["between"]["gripper_m"] is not None
    assert between(5.0, 3.0, 3.0) is None


def test_what_lies_apart_is_told_by_part():
    half = np.sqrt(0.5)
    first = np.array([[0.3, 0.4, 0, 0, 0, half, half, 0.03], [0, 0, 0, 0, 0, 0, 1, 0.0]])
    found = apart(first, np.array([[0, 0, 0, 0, 0, 0, 1, 0.01]]))
    assert found["position_m"] == pytest.approx([0.5, 0.0])
    assert found["orientation_rad"] == pytest.approx([np.pi / 2, 0.0], abs=1e-7)
    assert found["gripper_m"] == pytest.approx([0.02, 0.01])
