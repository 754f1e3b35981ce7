"""The paper's experiments at reduced size."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.cohorts import DISTRIBUTIONS, OBJECTS, durations

from labctl.analysis.planning.distributions import simulate
from labctl.analysis.planning.experiments import ALPHAS, CAVEAT, METRICS, Experiment, Rejections, _of
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import joined


def cells(arm: str, seed: int, episodes: int = 37) -> list[Cell]:
    rng = np.random.default_rng(seed)
    return [simulate(DISTRIBUTIONS[arm], episodes, rng, arm=arm, obj=o) for o in OBJECTS]


def at(found: Rejections, alpha: float) -> list[float]:
    return [found.share[metric][ALPHAS.index(alpha)] for metric in METRICS]


def test_what_differs_is_detected_more_often_with_more_episodes() -> None:
    draws = Experiment(60, 100)
    few, many = (draws.detection(cells("m1", 1), cells("m4", 2), size) for size in (2, 20))
    assert set(few.share) == set(METRICS) and few.caveat == CAVEAT
    assert all(one < 1.0 == other for one, other in zip(at(few, 0.05), at(many, 0.05), strict=True))
    assert many.as_dict()["episodes"] == [[20, 20]] * 4 and "power" in str(many)


def test_a_rate_rises_with_alpha_and_says_its_own_error() -> None:
    found = Experiment(50, 60).detection(cells("m1", 1), cells("m3", 2), 6)
    for metric in METRICS:
        share = found.share[metric]
        assert list(share) == sorted(share)
        for rate, error in zip(share, found.error[metric], strict=True):
            assert error == pytest.approx((rate * (1 - rate) / 50) ** 0.5)  # of a share of 50


def test_near_the_size_of_the_cohort_only_drawing_again_leaves_anything_open() -> None:
    """The caveat: drawn once each, all subsamples are the cohort itself, and every p is the same but for its draws."""
    a, b = cells("m1", 5, 9), cells("m2", 6, 9)
    draws = Experiment(40, 100)
    once, again = draws.detection(a, b, 9), draws.detection(a, b, 9, repeated=True)
    assert all(share in (0.0, 1.0) for share in at(once, 0.05))
    assert any(0.0 < share < 1.0 for share in at(again, 0.05))
    assert (once.repeated, again.repeated) == (False, True)
    assert draws.detection(a, b, 12, repeated=True).episodes == ((12, 12),) * 4, "and a larger cohort can be drawn"


def test_an_episode_drawn_twice_is_there_twice_with_all_its_operations() -> None:
    whole = joined(durations([1, 2], [1, 0], [0, 0]), durations([3, 4, 5], [1, 1, 0], [0, 1, 1]))
    drawn = _of(whole, np.array([2, 0, 2]))
    assert (drawn.time_ns / 1e9).tolist() == [4, 5, 1, 2, 4, 5]
    assert drawn.event.tolist() == [True, False, True, False, True, False]
    assert drawn.episode.tolist() == [0, 0, 1, 1, 2, 2] and drawn.episodes == 3


def test_the_experiment_is_the_same_on_any_number_of_threads() -> None:
    sides = cells("m1", 1), cells("m3", 2)
    one, two = (Experiment(24, 40, threads=t).detection(*sides, 6) for t in (1, 2))
    assert one.as_dict() == two.as_dict()
    assert one.as_dict() != Experiment(24, 40, seed=1).detection(*sides, 6).as_dict()


def test_a_subsample_cannot_be_larger_than_the_cohort() -> None:
    with pytest.raises(ValueError, match="the smallest cell has 9 episodes; 10"):
        Experiment(2, 2).detection(cells("m1", 1, 9), cells("m3", 2), 10)
    with pytest.raises(ValueError, match="one episode has no halves"):
        Experiment(2, 2).itself(cells("m1", 1, 1))


def test_halves_of_one_arm_are_told_apart_about_as_often_as_asked() -> None:
    # facts §4.1: .067 for KS and .05 for the scalars at 500 × 500; here 200 × 100, 4 standard errors is .07
    found = Experiment(200, 100).itself(cells("m1", 3))
    assert all(0.0 < rate < 0.14 for rate in at(found, 0.05))
    assert found.episodes == ((18, 18),) * 4
    assert all(0.4 < p < 0.6 for p in found.mean_p.values())


def test_arms_that_exchange_labels_are_told_apart_about_as_often_as_asked_however_they_differ() -> None:
    found = Experiment(200, 100).pooled(cells("m1", 3, 20), cells("m4", 4, 12))
    assert all(0.0 < rate < 0.14 for rate in at(found, 0.05))
    assert found.episodes == ((20, 12),) * 4
