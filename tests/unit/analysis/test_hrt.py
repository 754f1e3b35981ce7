"""HRT and RMST intervals: the closed form by hand, its coverage, and the paper's percentile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from labctl.analysis.hrt import Mean, hrt_interval, log_t, percentile, rmst_interval, rmst_replicates
from labctl.analysis.resample import multiplicities, stream_key
from labctl.analysis.survival import Spells, rmst_with_error
from scipy import stats

NS = 1_000_000_000


def test_hrt_is_the_mean_over_objects_with_a_log_t_interval() -> None:
    human = [Mean(10.0, 0.1, 99), Mean(12.0, 0.2, 99)]
    arm = [Mean(80.0, 8.0, 10), Mean(60.0, 6.0, 10)]
    value, interval = hrt_interval(human, arm)
    a, b = 10 / 80, 12 / 60
    assert value == pytest.approx((a + b) / 2)
    variance = (a / 2) ** 2 * (0.01**2 + 0.1**2) + (b / 2) ** 2 * ((0.2 / 12) ** 2 + 0.1**2)
    reach = stats.t.ppf(0.975, 2 * 9) * math.sqrt(variance) / value
    assert interval == pytest.approx((value * math.exp(-reach), value * math.exp(reach)))


def test_a_fast_arm_with_no_time_has_no_ratio_and_no_spread_has_no_interval() -> None:
    assert hrt_interval([Mean(10.0, 1.0, 9)], [Mean(0.0, 0.0, 9)]) == (None, None)
    assert log_t(10.0, 0.0, 9) is None and log_t(10.0, 0.1, 0) is None
    assert percentile(np.full(99, 7.0)) is None


def test_an_rmst_interval_stays_below_tau() -> None:
    value, interval = rmst_interval([Mean(230.0, 30.0, 6)], 240.0)
    assert value == 230.0 and interval is not None and interval[0] < 230 and interval[1] == 240.0


def cell(rng: np.random.Generator, episodes: int) -> Spells:
    """Exponential operations of 60 s with a frailty shared within the episode, one pool of 240 s."""
    time, event, episode = [], [], []
    for e in range(episodes):
        left, scale = 240.0, 60 * math.exp(0.55 * rng.standard_normal())
        while left > 0:
            t = rng.exponential(scale)
            time.append(min(t, left))
            event.append(t <= left)
            episode.append(e)
            left -= t
    return Spells((np.array(time) * NS).astype(np.int64), np.array(event), np.array(episode), episodes)


def test_the_log_t_interval_covers_about_as_often_as_it_says() -> None:
    # facts §4.3: .952 at N = 10; here one cell, t(N - 1); 300 tries, 4 standard errors is .05
    rng = np.random.default_rng(11)
    truth = rmst_with_error(cell(rng, 20_000), 240 * NS)[0]
    hits = 0
    for _ in range(300):
        s = cell(rng, 10)
        interval = rmst_interval([Mean(*rmst_with_error(s, 240 * NS), 10)], 240.0)[1]
        hits += interval is not None and interval[0] <= truth <= interval[1]
    assert hits / 300 == pytest.approx(0.95, abs=0.05)


def test_the_bootstrap_redraws_whole_episodes() -> None:
    s = cell(np.random.default_rng(5), 8)
    key = stream_key(0, "boot", "a", "cup")
    found = rmst_replicates(s, key, 700, 240 * NS)
    for r in (0, 499, 500, 699):
        counts = multiplicities(key, range(r, r + 1), 8, 8)[0].astype(int)
        drawn = np.concatenate([np.flatnonzero(s.episode == e) for e in range(8) for _ in range(counts[e])])
        alone = Spells(s.time_ns[drawn], s.event[drawn], np.arange(len(drawn)), len(drawn))
        assert found[r] == pytest.approx(rmst_with_error(alone, 240 * NS)[0], abs=1e-9)


def test_bootstrap_and_infinitesimal_jackknife_agree_where_there_are_many_episodes() -> None:
    s = cell(np.random.default_rng(5), 80)
    found = rmst_replicates(s, stream_key(0, "boot", "a", "cup"), 2000, 240 * NS)
    assert found.std() == pytest.approx(rmst_with_error(s, 240 * NS)[1], rel=0.1)
