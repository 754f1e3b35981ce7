"""The anytime-valid test: its capital and sequence against the integral, its error, and where it stops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize
from support.statistics.real_blocks import real_blocks
from support.statistics.stopping import closed_e_values, e_values, family_monitor, stopping_times, swap_error

from labctl.analysis.blocks.anytime import paired_monitor
from labctl.errors import QuestionError

WEAK = "paligemma_binning"


def mixture(d: np.ndarray, m: float) -> float:
    """The capital against mean m by numerical integration over shares: the universal portfolio itself."""
    x, mu = (1 + d) / 2, (1 + m) / 2
    above = integrate.quad(lambda s: np.prod(1 - s + s * x / mu), 0, 1, epsabs=0, epsrel=1e-10)[0]
    below = integrate.quad(lambda s: np.prod(1 - s + s * (1 - x) / (1 - mu)), 0, 1, epsabs=0, epsrel=1e-10)[0]
    return (above + below) / 2


def ends_of(d: np.ndarray) -> tuple[float, float]:
    def over(m: float) -> float:
        return math.log(mixture(d, m) / 20)

    middle = float(np.clip(d.mean(), -0.99, 0.99))
    low = optimize.brentq(over, -1 + 1e-6, middle) if over(-1 + 1e-6) > 0 else -1.0
    high = optimize.brentq(over, middle, 1 - 1e-6) if over(1 - 1e-6) > 0 else 1.0
    return low, high


def test_wins_alone_make_two_to_the_n_over_n_plus_one() -> None:
    # integral of ((1 + s)^n + (1 - s)^n) / 2 over s in (0, 1) is 2^n / (n + 1): 16 after 7 blocks, 28.4 after 8
    n = np.arange(1, 11)
    assert e_values(np.ones(10)) == pytest.approx(2.0**n / (n + 1), rel=0.02)
    won = paired_monitor(np.ones(10))
    assert (won.stop_block, won.low[-1] > 0) == (8, True)
    assert (paired_monitor(-np.ones(10)).stop_block, paired_monitor(-np.ones(10)).high[-1] < 0) == (8, True)


def test_capital_and_sequence_are_those_of_the_integral() -> None:
    rng = np.random.default_rng(3)
    for d in (rng.beta(3, 2, 40) - rng.beta(2, 3, 40), rng.choice([-1.0, 0.0, 1.0], 40, p=[0.1, 0.4, 0.5])):
        found = paired_monitor(d)
        ends = []
        for n in range(1, 41):
            assert found.e_value[n - 1] == pytest.approx(mixture(d[:n], 0.0), rel=0.02)
            ends.append(ends_of(d[:n]))
        low, high = np.maximum.accumulate([e[0] for e in ends]), np.minimum.accumulate([e[1] for e in ends])
        assert found.low == pytest.approx(low, abs=0.011) and found.high == pytest.approx(high, abs=0.011)
        assert found.low[-1] == pytest.approx(low[-1], abs=1e-3)


def test_nothing_is_in_the_sequence_once_the_test_has_stopped_for_it() -> None:
    found = paired_monitor(np.random.default_rng(0).choice([0.0, 1.0, -1.0], 80, p=[0.3, 0.6, 0.1]))
    assert found.stop_block is not None and found.low[found.stop_block - 1] > 0
    assert (found.low[: found.stop_block - 1] <= 0).all() and (np.diff(found.low) >= 0).all()
    assert (np.diff(found.high) <= 0).all()


def test_a_block_that_misses_an_arm_changes_nothing_and_counts() -> None:
    d = np.array([1.0, np.nan, 1, 1, 1, np.nan, 1, 1, 1, 1])
    found = paired_monitor(d)
    assert found.stop_block == 10 and found.e_value[1] == found.e_value[0] and found.low[1] == found.low[0]
    assert paired_monitor(np.array([])).stop_block is None


def test_a_mean_that_turns_round_leaves_no_mean() -> None:
    found = paired_monitor(np.concatenate([np.ones(60), -np.ones(300)]))
    assert found.stop_block == 8 and np.isnan(found.low[-1]) and np.isnan(found.high[-1])


def test_a_sequence_narrower_than_the_means_tried_is_still_there() -> None:
    d = 0.104 + 0.02 * np.random.default_rng(1).uniform(-1, 1, 4000)
    found = paired_monitor(d)
    assert 0.08 < found.low[-1] < 0.104 < found.high[-1] < 0.13


def test_the_order_of_the_blocks_before_makes_no_difference() -> None:
    d = np.random.default_rng(4).uniform(-1, 1, 50)
    assert e_values(d)[-1] == pytest.approx(e_values(d[::-1])[-1])


def test_five_thousand_wins_are_a_number_or_infinity_and_no_warning() -> None:
    found = paired_monitor(np.ones(5000))
    assert found.e_value[-1] == math.inf and found.low[-1] > 0.95 and found.high[-1] == 1.0


def test_on_the_real_blocks_it_stops_for_the_weak_arm_within_forty_and_for_three_other_pairs() -> None:
    real = real_blocks()
    stops = {pair: paired_monitor(real.differences(*pair)).stop_block for pair in real.pairs}
    weak = [stop for pair, stop in stops.items() if WEAK in pair]
    assert len(weak) == 6 and all(stop is not None and stop <= 40 for stop in weak)
    assert sum(stop is not None for pair, stop in stops.items() if WEAK not in pair) >= 3


def test_its_error_within_the_real_blocks_is_kept() -> None:
    real = real_blocks()
    d = np.stack([real.differences(*pair) for pair in real.pairs[:3]], axis=1)
    found = swap_error(d, relabellings=400, seed=1)
    assert (found.share <= 0.05 + 3 * found.error).all() and found.share.max() > 0


@pytest.mark.parametrize(
    ("values", "probabilities"),
    [([-1, 1], [0.5, 0.5]), ([-1, 0, 1], [0.1, 0.8, 0.1]), ([-0.75, -0.25, 0, 0.5], [0.2, 0.2, 0.2, 0.4])],
)
def test_without_a_difference_it_stops_as_often_as_it_may(values: list[float], probabilities: list[float]) -> None:
    assert np.dot(values, probabilities) == pytest.approx(0)
    found = stopping_times(np.array(values), np.array(probabilities), most=200, runs=1000, seed=2)
    assert found.stopped[-1] <= 0.05 + 3 * found.errors[-1]


def test_the_sequence_covers_a_mean_of_scores_at_all_blocks_at_once() -> None:
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(120):
        found = paired_monitor(rng.beta(2.4, 1.6, 60) - rng.beta(2, 2, 60))
        missed += not ((found.low <= 0.1) & (found.high >= 0.1)).all()
    assert missed / 120 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 120)


def test_stopping_times_are_those_of_the_monitor_itself() -> None:
    values, probabilities = np.array([-1.0, 0, 1]), np.array([0.1, 0.4, 0.5])
    found = stopping_times(values, probabilities, most=60, runs=1500, seed=0)
    rng = np.random.default_rng(5)
    e = e_values(rng.choice(values, size=(60, 1500), p=probabilities))
    stopped = (np.maximum.accumulate(e, axis=0) >= 20).mean(axis=1)
    assert found.stopped == pytest.approx(stopped, abs=4 * math.sqrt(2) * 0.0129)
    assert found.blocks == pytest.approx(60 - stopped[:-1].sum(), abs=4 * found.blocks_error * math.sqrt(2))
    assert found.median == int(np.searchsorted(found.stopped, 0.5)) + 1 and found.wrong <= 0.05
    assert stopping_times(np.zeros(1), np.ones(1), most=5, runs=10).median is None


def test_adjusted_e_values_are_the_least_mean_of_any_set() -> None:
    # Vovk & Wang (2021), algorithm 1, against all sets written out
    rng = np.random.default_rng(1)
    for _ in range(20):
        e = rng.exponential(2, 5) ** 2
        sets = [[k for k in range(5) if s >> k & 1] for s in range(1, 32)]
        by_hand = [min(e[s].mean() for s in sets if k in s) for k in range(5)]
        assert closed_e_values(e) == pytest.approx(by_hand)
        assert (closed_e_values(e) >= e / 5).all()


def test_a_family_without_differences_is_rarely_stopped_for() -> None:
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(200):
        score = rng.choice([0, 0.5, 1], size=(100, 4)) * 1.0
        d = np.stack([score[:, a] - score[:, b] for a in range(4) for b in range(a)], axis=1)
        wrong += any(stop is not None for stop in family_monitor(e_values(d)).stop_blocks)
    assert wrong / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_a_family_stops_for_a_clear_pair_later_than_the_pair_alone() -> None:
    score = np.random.default_rng(3).choice([0.0, 1.0], size=(80, 3))
    score[:, 0] = 0.0
    d = np.stack([score[:, 1] - score[:, 0], score[:, 2] - score[:, 1]], axis=1)
    alone, family = paired_monitor(d[:, 0]).stop_block, family_monitor(e_values(d)).stop_blocks
    assert alone is not None and family[0] is not None and family[0] >= alone and family[1] is None


def test_what_is_no_difference_of_scores_is_refused() -> None:
    with pytest.raises(QuestionError, match=r"a difference is 1\.5; allowed is -1 to 1"):
        paired_monitor(np.array([0.5, 1.5]))
    with pytest.raises(QuestionError, match="alpha is 0;"):
        paired_monitor(np.zeros(3), 0.0)
    with pytest.raises(QuestionError, match="add up to 1"):
        stopping_times(np.array([0.0, 1.0]), np.array([0.5, 0.4]))
    with pytest.raises(QuestionError, match="2 dimensions"):
        paired_monitor(np.zeros((3, 2)))
