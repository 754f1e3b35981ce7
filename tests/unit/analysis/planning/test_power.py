"""Power by listing every outcome, against published sizes, simulation, and the tests whose power it claims to be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labctl.analysis.binary.paired import exact_decides, mcnemar
from labctl.analysis.binary.rates import wilson
from labctl.analysis.binary.tables_2x2 import boschloo_p
from labctl.analysis.planning.power import (
    LARGEST_PAIRS,
    boschloo_power,
    boschloo_rejects,
    connor_pairs,
    mcnemar_power,
    normal_trials,
    paired_resolvable,
    ratio_margin,
    ratio_resolvable,
    smallest_trials,
    wilson_half_width,
    wilson_trials,
)
from labctl.errors import QuestionError


def test_wilson_sizes_are_the_measured_ones():
    # facts: 5 points need 320 at p = .7 and 381 at p = .5; N = 25 at .7 gives 16.9 points
    assert (wilson_trials(0.05, 0.7), wilson_trials(0.05)) == (320, 381)
    assert wilson_half_width(25, 0.7) == pytest.approx(0.169, abs=5e-4)


@settings(deadline=None)
@given(trials=st.integers(1, 500), data=st.data())
def test_the_half_width_is_half_of_the_interval(trials: int, data: st.DataObject):
    k = data.draw(st.integers(0, trials))
    low, high = wilson(k, trials)
    if 0 < k < trials:
        assert wilson_half_width(trials, k / trials) == pytest.approx((high - low) / 2, abs=1e-9)
    assert wilson_half_width(trials, k / trials) <= wilson_half_width(trials) + 1e-12


@pytest.mark.parametrize(
    ("discordant", "at_80", "at_90"), [(0.10, 312, 417), (0.15, 469, 627), (0.20, 626, 837), (0.25, 783, 1047)]
)
def test_connor_s_pairs_for_five_points(discordant: float, at_80: int, at_90: int):
    # Connor (Biometrics 43 (1987) 207) with difference .05: the sizes of methodology 3.9
    assert connor_pairs(discordant, 0.05) == at_80
    assert connor_pairs(discordant, 0.05, 0.9) == at_90
    # simulated at those sizes (facts 4.8): mid-p .811 / .800 at the ends, exact .760 / .783
    assert mcnemar_power(at_80, discordant, 0.05) == pytest.approx(0.806, abs=0.01)
    assert mcnemar_power(at_80, discordant, 0.05, exact=True) < mcnemar_power(at_80, discordant, 0.05)


def test_mcnemar_s_power_is_the_sum_over_every_outcome():
    pairs, discordant, difference = 14, 0.4, 0.2
    chances = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    for exact in (False, True):
        total = 0.0
        for b in range(pairs + 1):
            for c in range(pairs + 1 - b):
                p = mcnemar(b, c)
                if (p.p_exact if exact or exact_decides(b + c, pairs) else p.p_mid) <= 0.05:
                    total += stats.multinomial.pmf([b, c, pairs - b - c], pairs, chances)
        assert mcnemar_power(pairs, discordant, difference, exact=exact) == pytest.approx(total, abs=1e-10)


def test_whatever_share_of_pairs_disagrees_the_size_stays_at_or_below_alpha():
    # The mid-p form alone reaches .0768 for 16 pairs of which all disagree.
    shares = np.arange(0.05, 1.01, 0.05)
    assert max(mcnemar_power(n, min(psi, 1.0), 0.0) for n in range(3, 31) for psi in shares) <= 0.05
    alone = 2 * stats.binom.cdf(4, 16, 0.5)
    assert alone == pytest.approx(0.0768, abs=1e-4) and mcnemar(4, 12).p_mid <= 0.05


@given(
    pairs=st.integers(1, 120),
    discordant=st.floats(0.05, 1.0),
    share=st.floats(0, 1),
    alpha=st.sampled_from([0.01, 0.05]),
)
@settings(deadline=None, max_examples=60)
def test_mcnemar_s_power_is_symmetric_and_its_size_stays_below_alpha(
    pairs: int, discordant: float, share: float, alpha: float
):
    forward = mcnemar_power(pairs, discordant, discordant * share, alpha)
    assert forward == pytest.approx(mcnemar_power(pairs, discordant, -discordant * share, alpha), abs=1e-9)
    size = mcnemar_power(pairs, discordant, 0.0, alpha)
    assert 0 <= size <= alpha * 1.005 and size <= forward + 1e-12
    assert mcnemar_power(pairs, discordant, 0.0, alpha, exact=True) <= alpha


@pytest.mark.parametrize(
    ("first", "second"), [(7, 10), *(pytest.param(*sizes, marks=pytest.mark.thorough) for sizes in ((9, 9), (12, 4)))]
)
def test_the_outcomes_rejected_are_those_of_scipy_s_test(first: int, second: int):
    rejected = boschloo_rejects(first, second)
    for a in range(first + 1):
        for b in range(second + 1):
            p = boschloo_p((a, first), (b, second))
            if abs(p - 0.05) > 1e-3:  # scipy maximises over rates by search, this over a grid
                assert rejected[a, b] == (p <= 0.05), (a, b, p)


@settings(deadline=None, max_examples=6)
@given(first=st.integers(2, 16), second=st.integers(2, 16), rate=st.floats(0.02, 0.98))
def test_boschloo_s_size_stays_at_or_below_alpha_and_its_power_is_symmetric(first: int, second: int, rate: float):
    assert boschloo_power(first, second, rate, rate) <= 0.05 + 1e-4
    assert boschloo_power(first, second, rate, 0.3) == pytest.approx(boschloo_power(second, first, 0.3, rate), abs=1e-9)
    assert (boschloo_rejects(first, second) == boschloo_rejects(second, first).T).all()


def test_boschloo_s_power_nears_the_normal_approximation():
    p, q = 0.85, 0.55
    n = normal_trials(p, q)  # Fleiss 1981, 3.14: (1.96 sqrt(.42) + .8416 sqrt(.375))^2 / .09 = 35.4
    assert n == 36
    assert boschloo_power(n, n, p, q) == pytest.approx(0.8, abs=0.03)
    assert abs(smallest_trials(lambda size: boschloo_power(size, size, p, q), 0.8, n, 400) - n) <= 3


def test_more_than_can_be_listed_is_refused():
    with pytest.raises(QuestionError, match="listed up to 400"):
        boschloo_rejects(401, 10)


@pytest.mark.parametrize(("discordant", "difference"), [(0.1, 0.2), (1.2, 0.1), (-0.1, 0.0)])
def test_differences_larger_than_the_discordance_are_refused(discordant: float, difference: float):
    with pytest.raises(QuestionError, match="at most the share of discordant pairs"):
        connor_pairs(discordant, difference)


def test_what_is_resolvable_is_found_with_the_power_asked_for_and_shrinks_with_more_pairs():
    assert paired_resolvable(12, 0.2) is None
    found = [paired_resolvable(n, 0.5) for n in (12, 20, 40, 100)]
    assert all(a > b for a, b in itertools.pairwise(found))
    assert mcnemar_power(40, 0.5, found[2]) == pytest.approx(0.8, abs=1e-3)


@pytest.mark.parametrize("discordant", [0.2, 0.3, 0.5])
def test_more_pairs_than_are_listed_resolve_what_the_formula_says(discordant: float):
    """At the last number that is listed both agree to a hundredth of a point."""
    listed, by_formula = (paired_resolvable(n, discordant) for n in (LARGEST_PAIRS, LARGEST_PAIRS + 1))
    assert listed is not None and by_formula == pytest.approx(listed, abs=2e-4)
    found = paired_resolvable(50_000, discordant)
    assert found is not None and connor_pairs(discordant, found) == pytest.approx(50_000, rel=1e-3)


def test_more_pairs_than_are_listed_may_resolve_nothing_or_need_no_difference():
    assert paired_resolvable(20_000, 1e-4) is None
    assert paired_resolvable(20_000, 0.3, 0.01, 0.05) == 0.0


@pytest.mark.parametrize(("power", "alpha"), [(0.03, 0.05), (0.8, 0.95), (0.8, 0.9)])
def test_where_a_test_rejects_so_often_without_any_difference_none_is_needed(power: float, alpha: float):
    assert mcnemar_power(40, 0.3, 0.0, alpha) >= power and paired_resolvable(40, 0.3, power, alpha) == 0.0


def test_the_resolvable_ratio_is_found_with_the_power_asked_for():
    episodes, spread = 30, 0.6
    ratio = ratio_resolvable(episodes, spread)
    rng = np.random.default_rng(3)
    gaps = rng.normal(math.log(ratio), spread * math.sqrt(2 / episodes), 100_000)
    assert (np.abs(gaps) / (spread * math.sqrt(2 / episodes)) > 1.959964).mean() == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("both", [True, False], ids=["equivalent", "non-inferior"])
def test_arms_that_are_alike_are_shown_to_be_within_the_margin_with_the_power_asked_for(both: bool):
    episodes, spread = 30, 0.6
    se = spread * math.sqrt(2 / episodes)
    reach = math.log(ratio_margin(episodes, spread, both_sides=both)) - 1.644854 * se  # the 90 % interval lies within
    gaps = np.random.default_rng(4).normal(0.0, se, 100_000)
    assert ((np.abs(gaps) if both else gaps) < reach).mean() == pytest.approx(0.8, abs=0.005)


def test_the_fewest_trials_are_searched_down_as_well_as_up():
    def step(n: int) -> float:
        return 1.0 if n >= 17 else 0.0

    assert [smallest_trials(step, 0.8, start, 100) for start in (1, 17, 60)] == [17, 17, 17]
    assert smallest_trials(step, 0.8, 3, 10) is None
