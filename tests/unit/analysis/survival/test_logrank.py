"""Logrank tests: ghosts, nothing to say, strata and permutation; the numbers of R are in `test_survival.py`."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.cohorts import NS, TAU_NS, random_durations

from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.curves import NEVER_NS, Durations
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.logrank import logrank, logrank_permutation, stratified


def test_a_ghost_counts_as_censored_beyond_every_time() -> None:
    rng = np.random.default_rng(3)
    time = (rng.exponential(20, 40) * NS).astype(np.int64)
    event = rng.random(40) < 0.8
    ghost = np.arange(40) % 9 == 0

    def group(part: slice, *, as_ghost: bool) -> Durations:
        t = np.where(ghost, NEVER_NS if as_ghost else time.max() + 1, time)[part]
        e = np.where(ghost, as_ghost, event)[part]
        return Durations(t, e, np.arange(len(t)), len(t))

    one = logrank(group(slice(20), as_ghost=True), group(slice(20, 40), as_ghost=True))
    two = logrank(group(slice(20), as_ghost=False), group(slice(20, 40), as_ghost=False))
    assert one == two and one.chi2 is not None


def test_without_an_event_there_is_nothing_to_say() -> None:
    s = Durations(np.array([NS]), np.array([False]), np.array([0]), 1)
    assert logrank(s, s).chi2 is None and logrank(s, s).p_cluster is None


def test_one_stratum_is_the_plain_test_and_two_add_up() -> None:
    rng = np.random.default_rng(5)
    a, b = random_durations(rng, 9), random_durations(rng, 8)
    assert stratified([(a, b)]) == logrank(a, b)
    twice = stratified([(a, b), (a, b)])  # twice the difference over twice the variance
    assert twice.chi2 == pytest.approx(2 * (logrank(a, b).chi2 or 0))


def test_by_permutation_the_logrank_agrees_with_its_robust_score_where_there_are_many() -> None:
    rng = np.random.default_rng(6)
    a, b = (simulate(Distribution(mean), 40, rng, arm=arm) for arm, mean in (("a", 60.0), ("b", 80.0)))
    pair = pair_of([a], [b], TAU_NS)
    robust = logrank(a.durations, b.durations).p_cluster
    assert robust is not None
    assert logrank_permutation(pair, 0, 9999) == pytest.approx(robust, abs=0.02)
