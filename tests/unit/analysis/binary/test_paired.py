"""Paired rates: McNemar's tests and Tango's interval against published cases, and their size counted exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labctl.analysis.binary.paired import mcnemar, tango
from labctl.errors import QuestionError


def test_the_published_case_of_airway_responsiveness():
    # Bentur et al. 2009, as analysed by Fagerland, Lydersen & Laake: BMC Med. Res. Methodol. 13 (2013) 91 give exact
    # .070 and mid-p .039 for 1 and 7 discordant of 21; Statist. Med. 33 (2014) 2850 gives Tango -.517 to -.026.
    test = mcnemar(1, 7)
    assert (round(test.p_exact, 3), round(test.p_mid, 3)) == (0.070, 0.039)
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_pairs_that_all_agree_tell_nothing_and_bound_the_difference():
    # Tango (Statist. Med. 17 (1998) 891): without discordant pairs the limits are -+ z^2 / (n + z^2)
    z2 = stats.norm.ppf(0.975) ** 2
    assert mcnemar(0, 0).p_mid == mcnemar(0, 0).p_exact == 1.0
    assert tango(0, 0, 44) == pytest.approx((-z2 / (44 + z2), z2 / (44 + z2)), abs=1e-9)


def test_pairs_that_all_disagree_one_way_reach_the_edge():
    assert tango(50, 0, 50)[1] == 1.0
    assert tango(0, 50, 50)[0] == -1.0


@settings(deadline=None)
@given(b=st.integers(0, 60), c=st.integers(0, 60), agree=st.integers(0, 60))
def test_exchanging_the_arms_mirrors_everything(b: int, c: int, agree: int):
    pairs = max(1, b + c + agree)
    low, high = tango(b, c, pairs)
    assert tango(c, b, pairs) == pytest.approx((-high, -low), abs=1e-10)
    assert low - 1e-12 <= (b - c) / pairs <= high + 1e-12 and -1 <= low <= high <= 1
    assert mcnemar(b, c).p_mid == pytest.approx(mcnemar(c, b).p_mid)
    assert 0 < mcnemar(b, c).p_mid <= mcnemar(b, c).p_exact <= 1


@settings(deadline=None)
@given(b=st.integers(0, 40), c=st.integers(0, 40), agree=st.integers(1, 40))
def test_a_higher_level_widens_and_more_agreement_narrows(b: int, c: int, agree: int):
    pairs = b + c + agree
    low, high = tango(b, c, pairs)
    wide = tango(b, c, pairs, 0.99)
    assert wide[0] <= low and high <= wide[1]
    more = tango(b, c, 4 * pairs)
    assert more[1] - more[0] < high - low


@pytest.mark.thorough
@pytest.mark.parametrize("pairs", [10, 25])
def test_the_size_counted_over_every_outcome_stays_at_or_below_the_level(pairs: int):
    # With psi the share of discordant pairs, b + c ~ Binomial(pairs, psi) and b ~ Binomial(b + c, 1/2) when alike.
    sizes = {"p_exact": [], "p_mid": []}
    for psi in (0.1, 0.3, 0.5, 0.6):
        for name, found in sizes.items():
            size = 0.0
            for discordant in range(pairs + 1):
                rejects = [getattr(mcnemar(b, discordant - b), name) <= 0.05 for b in range(discordant + 1)]
                distribution = stats.binom.pmf(np.arange(discordant + 1), discordant, 0.5)
                size += stats.binom.pmf(discordant, pairs, psi) * distribution[rejects].sum()
            found.append(size)
    assert max(sizes["p_exact"]) <= max(sizes["p_mid"]) <= 0.05
    assert max(sizes["p_mid"]) > 0.03


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.3, 0.1), (0.25, 0.05), (0.4, 0.4)])
def test_tango_covers_nearly_what_it_says_over_every_outcome(rates: tuple[float, float]):
    pairs, (only_first, only_second) = 25, rates
    covered = 0.0
    for b in range(pairs + 1):
        for c in range(pairs + 1 - b):
            low, high = tango(b, c, pairs)
            if low <= only_first - only_second <= high:
                chances = [only_first, only_second, 1 - only_first - only_second]
                covered += stats.multinomial.pmf([b, c, pairs - b - c], pairs, chances)
    assert 0.93 < covered < 0.98


@pytest.mark.parametrize(("b", "c", "pairs"), [(-1, 0, 5), (3, 3, 5), (0, 0, 0)])
def test_what_are_no_pairs_is_refused(b: int, c: int, pairs: int):
    with pytest.raises(QuestionError, match="discordant among"):
        tango(b, c, pairs)
