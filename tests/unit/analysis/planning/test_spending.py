"""Boundaries of planned looks against published tables, closed forms and simulation; levels that spend just alpha."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.statistics.interim_looks import stopped_by_the_test

from labctl.analysis.planning import spending
from labctl.analysis.planning.spending import boundaries, looks, spent, standing
from labctl.errors import QuestionError


def crossing(fractions: list[float], bounds: list[float]) -> tuple[float, ...]:
    """Probability of stopping at each look, either side, where nothing differs."""
    out, density = [], None
    for at, before, z in zip(fractions, (0.0, *fractions), bounds, strict=False):
        out.append(spending._crossed(density, at - before, z * math.sqrt(at)))
        density = spending._carried(density, at - before, z * math.sqrt(at))
    return tuple(out)


def equal(count: int) -> list[float]:
    return [i / count for i in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "published"),
    [  # O'Brien-Fleming-type spending (Lan & DeMets), two-sided .05: gsDesign sfLDOF at one-sided .025, R ldbounds
        (2, [2.9626, 1.9686]),
        (3, [3.7103, 2.5114, 1.9930]),
        (4, [4.3326, 2.9631, 2.3590, 2.0141]),
        (5, [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
    ],
)
def test_boundaries_are_those_of_gsdesign_and_ldbounds(count: int, published: list[float]):
    assert boundaries(equal(count), 0.05) == pytest.approx(published, abs=2e-4)


@pytest.mark.parametrize(
    ("count", "constant"), [(2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040)]
)  # C_B(K, .05), Jennison & Turnbull (2000), table 2.3
def test_o_brien_and_fleming_s_own_boundaries_cross_five_times_in_a_hundred(count: int, constant: float):
    bounds = [constant / math.sqrt(t) for t in equal(count)]
    assert sum(crossing(equal(count), bounds)) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize(
    ("count", "constant"), [(2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413)]
)  # C_P(K, .05), Jennison & Turnbull (2000), table 2.1
def test_pocock_s_boundaries_cross_five_times_in_a_hundred(count: int, constant: float):
    assert sum(crossing(equal(count), [constant] * count)) == pytest.approx(0.05, abs=1e-4)


def test_a_single_look_is_the_fixed_design():
    assert boundaries([1.0], 0.05) == pytest.approx((stats.norm.isf(0.025),))
    assert [look.level for look in looks([20], 0.05)] == pytest.approx([0.05])


rising = st.lists(st.integers(10, 99), min_size=2, max_size=4, unique=True).map(
    lambda shares: [*(s / 100 for s in sorted(shares)), 1.0]
)


@settings(deadline=None, max_examples=25)
@given(fractions=rising, alpha=st.sampled_from([0.01, 0.05, 0.1]))
def test_any_looks_spend_exactly_alpha_and_no_level_exceeds_what_is_spent(fractions: list[float], alpha: float):
    bounds = boundaries(fractions, alpha)
    crossed = np.cumsum(crossing(fractions, bounds))
    assert crossed == pytest.approx([spent(t, alpha) for t in fractions], rel=1e-6)
    assert crossed[-1] == pytest.approx(alpha, rel=1e-9)
    levels = [look.level for look in looks([round(100 * t) for t in fractions], alpha)]
    assert levels[0] == pytest.approx(spent(fractions[0], alpha))
    assert all(0 < level <= spent(t, alpha) * (1 + 1e-9) for level, t in zip(levels, fractions, strict=True))


def test_stopping_is_what_simulation_finds():
    fractions, runs = [0.5, 0.75, 1.0], 200_000
    bounds = boundaries(fractions, 0.05)
    rng = np.random.default_rng(7)
    steps = np.diff([0.0, *fractions])
    score = np.cumsum(rng.normal(0.0, np.sqrt(steps), (runs, 3)), axis=1)
    beyond = np.abs(score / np.sqrt(fractions)) >= bounds
    first = np.where(beyond.any(axis=1), beyond.argmax(axis=1), 3)
    found = np.bincount(first, minlength=4)[:3] / runs
    assert crossing(fractions, bounds) == pytest.approx(found, abs=4 * math.sqrt(0.05 / runs))


@pytest.mark.parametrize("wrong", [[], [0.5, 0.5, 1.0], [0.5, 0.4, 1.0], [0.5, 0.9], [0.0, 1.0], [0.5, 1.5]])
def test_fractions_that_do_not_rise_to_one_are_refused(wrong: list[float]):
    with pytest.raises(QuestionError, match="rising fractions above 0 that end with 1"):
        boundaries(wrong, 0.05)


def test_a_look_is_taken_after_whole_blocks_and_judged_by_their_share():
    planned = looks([7, 10, 13], 0.05)
    assert [look.information for look in planned] == pytest.approx([7 / 13, 10 / 13, 1.0])
    bounds = boundaries([7 / 13, 10 / 13, 1.0], 0.05)
    assert [look.level for look in planned] == pytest.approx(2 * stats.norm.sf(bounds))
    assert planned[-1].spent == pytest.approx(0.05)


def test_only_the_planned_counts_of_blocks_are_looks():
    planned = looks([20, 30, 40], 0.05)
    looked = [n for n in range(41) if standing(planned, n)[1].startswith("look ")]
    assert looked == [20, 30, 40]
    level, said = standing(planned, 30)
    assert level == planned[1].level and said.startswith("look 2 of 3, after 30 of 40 blocks")
    level, said = standing(planned, 31)
    assert level == planned[0].level
    assert said.startswith("not a planned look: 31 of 40 blocks are complete, looks were planned after 20, 30, 40")


def test_permutation_p_held_to_the_levels_of_the_looks_rejects_one_true_hypothesis_in_twenty():
    # 40 paired differences without any effect; p by sign flips at 20, 30 and 40 pairs. Beside it, peeking at .05 each
    # time: .107 for three equally spaced looks (Armitage, McPherson & Rowe, J. R. Stat. Soc. A 132 (1969) 235).
    planned, runs, flips = looks([20, 30, 40], 0.05), 2000, 399
    rng = np.random.default_rng(11)
    held = peeked = 0
    for _ in range(runs):
        gap = rng.standard_normal(40)
        p = []
        for look in planned:
            seen = gap[: look.blocks]
            sums = np.abs(rng.choice([-1.0, 1.0], (flips, look.blocks)) @ seen)
            p.append((1 + (sums >= abs(seen.sum()) * (1 - 1e-9)).sum()) / (flips + 1))
        held += any(value <= look.level for value, look in zip(p, planned, strict=True))
        peeked += any(value <= 0.05 for value in p)
    reach = 3.3 * math.sqrt(0.05 * 0.95 / runs)
    assert abs(held / runs - 0.05) < reach
    assert 0.08 < peeked / runs < 0.13


@pytest.mark.thorough
def test_a_look_by_the_reports_own_test_stops_one_campaign_of_like_arms_in_twenty_and_finds_a_slow_one():
    # of 300 like campaigns .05 gives 15 ± 3.8; docs/statistics-calibration.md has 10,000
    assert 5 <= 300 * stopped_by_the_test((20, 30, 40), range(300)) <= 27
    assert stopped_by_the_test((20, 30, 40), range(20), slower=1.8) == 1.0
