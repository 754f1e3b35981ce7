"""The paper's experiments at reduced size."""

from __future__ import annotations

import numpy as np
import pytest
from labctl.analysis.planning.distributions import simulate
from labctl.analysis.planning.experiments import (
    CAVEAT,
    METRICS,
    detection_rate,
    null_rate,
)
from support.statistics.cohorts import DISTRIBUTIONS, OBJECTS


def cells(arm: str, seed: int, episodes: int = 37) -> list:
    rng = np.random.default_rng(seed)
    return [simulate(DISTRIBUTIONS[arm], episodes, rng, arm=arm, obj=o) for o in OBJECTS]


def test_what_differs_is_detected_more_often_with_more_episodes() -> None:
    found = detection_rate(cells("m1", 1), cells("m4", 2), (4, 20), outer=60, inner=100)
    assert set(found.rate) == set(METRICS) and found.caveat == CAVEAT
    for metric, rate in found.rate.items():
        assert rate[0] < 1.0 == rate[1], metric
    assert found.as_dict()["sizes"] == [4, 20] and "power" in str(found)


def test_the_experiment_is_the_same_on_any_number_of_threads() -> None:
    sides = cells("m1", 1), cells("m3", 2)
    one, two = (detection_rate(*sides, (6,), outer=24, inner=40, threads=t) for t in (1, 2))
    assert one.as_dict() == two.as_dict()


def test_a_subsample_cannot_be_larger_than_the_cohort() -> None:
    with pytest.raises(ValueError, match="the smallest cell has 9 episodes; 10"):
        detection_rate(cells("m1", 1, 9), cells("m3", 2), (10,))


def test_halves_of_one_arm_are_told_apart_about_as_often_as_asked() -> None:
    # facts §4.1: .067 for KS and .05 for the scalars at 500 × 500; here 200 × 100, 4 standard errors is .07
    found = null_rate(cells("m1", 3), outer=200, inner=100)
    assert all(0.0 < rate < 0.14 for rate in found.values())
