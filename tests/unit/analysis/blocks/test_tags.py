"""Tags permuted over tasks against scipy's permutation; retention against the t tests that its interval inverts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from labctl.analysis.blocks.retention import retention
from labctl.analysis.blocks.tags import tag_contrasts

RNG = np.random.default_rng(1)
SCORES = np.round(RNG.uniform(0, 1, 9), 2)
PRECISE = np.array([1, 0, 0, 1, 0, 1, 0, 0, 1], dtype=bool)


def test_a_tag_over_nine_tasks_is_permuted_in_every_way() -> None:
    (found,) = tag_contrasts({"p": SCORES}, {"precise": PRECISE})
    own = stats.permutation_test(
        (SCORES[PRECISE], SCORES[~PRECISE]),
        lambda x, y: abs(x.mean() - y.mean()),
        n_resamples=np.inf,
        alternative="greater",
    )
    assert (found.tasks_with, found.tasks_without, found.within, found.words) == (4, 5, None, "")
    assert found.effect == pytest.approx(SCORES[PRECISE].mean() - SCORES[~PRECISE].mean())
    assert found.p == pytest.approx(own.pvalue) and found.error == 0.0
    assert found.smallest_p == pytest.approx(1 / 126)  # 9 over 4 ways, and none is the mirror of another
    by_t = stats.ttest_ind(SCORES[PRECISE], SCORES[~PRECISE]).confidence_interval()
    assert found.ci == pytest.approx((by_t.low, by_t.high))


def test_halves_of_the_tasks_have_a_mirror_and_twice_the_smallest_p() -> None:
    (found,) = tag_contrasts({"p": np.array([1.0, 1, 1, 0, 0, 0])}, {"t": [True, True, True, False, False, False]})
    assert found.p == found.smallest_p == 2 / 20


def test_a_tag_that_goes_with_another_is_compared_within_it() -> None:
    # the score follows `long` alone; `bimanual` goes with it and has no effect within
    long = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    bimanual = np.array([1, 1, 1, 1, 0, 1, 0, 0, 0, 0], dtype=bool)
    score = np.where(long, 0.2, 0.8) + np.array([0.01, -0.01, 0.02, -0.02, 0, 0, 0.01, -0.01, 0.02, -0.02])
    (found,) = [
        one for one in tag_contrasts({"p": score}, {"bimanual": bimanual, "long": long}) if one.tag == "bimanual"
    ]
    assert found.within == "long" and found.effect == pytest.approx(0.0, abs=1e-9) and found.p == 1.0
    assert found.with_tag is not None and found.without_tag is not None
    assert found.with_tag - found.without_tag == pytest.approx(-0.36)
    assert found.smallest_p == 1 / 25  # five ways to place the odd task within either half


def test_a_stratum_on_one_side_is_left_alone() -> None:
    a = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    b = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=bool)
    found = {one.tag: one for one in tag_contrasts({"p": SCORES}, {"a": a, "b": b})}
    assert found["b"].within == "a" and found["b"].effect == pytest.approx(SCORES[:3].mean() - SCORES[3])
    assert found["b"].smallest_p == 1 / 4


def test_what_cannot_be_told_apart_and_what_every_task_has_are_said() -> None:
    both = np.array([1, 1, 0, 0, 1, 0, 0, 0, 0], dtype=bool)
    found = tag_contrasts({"p": SCORES}, {"a": both, "b": ~both, "all": np.ones(9, bool)})
    assert found[0].words == "always with or without b: cannot be told apart"
    assert found[2].effect is None and found[2].words == "every task is on one side of the tag"
    missing = np.where(both, np.nan, SCORES)
    assert tag_contrasts({"p": missing}, {"a": both})[0].tasks_with == 0


def test_many_tasks_are_shuffled_and_the_error_is_said() -> None:
    score, tag = RNG.uniform(0, 1, 40), np.arange(40) < 20
    (found,) = tag_contrasts({"p": score}, {"t": tag}, shuffles=2000)
    own = stats.ttest_ind(score[tag], score[~tag]).pvalue
    assert found.error is not None and found.error > 0 and found.p == pytest.approx(own, abs=0.05)
    assert found.smallest_p == pytest.approx(1 / 2000)
    assert tag_contrasts({"p": score}, {"t": tag}, shuffles=2000) == [found]


def test_retention_in_pairs_inverts_the_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    train = rng.beta(6, 2, 12)
    test = train * 0.7 + rng.normal(0, 0.1, 12)
    sets = list(range(12))
    found = retention(train, test, sets, sets)
    assert found.ci is not None and found.retention == pytest.approx(test.mean() / train.mean())
    for end in found.ci:
        assert stats.ttest_1samp(test - end * train, 0).pvalue == pytest.approx(0.05, abs=1e-9)


def test_retention_of_independent_blocks_and_of_nothing() -> None:
    rng = np.random.default_rng(1)
    train, test = rng.random(30) < 0.8, rng.random(25) < 0.5
    found = retention(train * 1.0, np.r_[test * 1.0, np.nan])
    assert found.ci is not None
    variance = found.ci[0] ** 2 * train.var(ddof=1) / 30 + test.var(ddof=1) / 25
    t = (test.mean() - found.ci[0] * train.mean()) / np.sqrt(variance)
    assert t == pytest.approx(stats.t.ppf(0.975, 24))
    # all alike: the ends of two exact intervals of 6 of 6 at .975, .0125 ** (1 / 6) = .48175 and 1
    alike = retention(np.ones(6), np.ones(6))
    assert alike.retention == 1 and alike.ci == pytest.approx((0.48175, 1 / 0.48175), abs=1e-4)
    none_left = retention(np.ones(6), np.zeros(6))
    assert none_left.retention == 0 and none_left.ci == pytest.approx((0, (1 - 0.48175) / 0.48175), abs=1e-4)
    assert retention(np.zeros(5), np.ones(5)).retention is None
    assert retention(np.array([]), np.ones(5)).train is None
    unsure = retention(np.array([1.0, 0, 0, 0]), np.array([1.0, 0, 1, 0]))
    assert unsure.retention == 2.0 and unsure.ci is None
