"""Unpaired and stratified rates against published cases, other tests they must equal, and exact enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labctl.analysis.binary.paired import mcnemar
from labctl.analysis.binary.tables_2x2 import boschloo_p, newcombe, score_p, stratified
from labctl.errors import QuestionError

# R example(mantelhaen.test): Rabbits (Agresti 1990, p. 231), (cured, all) of none and of 1.5 h delay, by penicillin.
RABBITS = [((0, 6), (0, 5)), ((3, 6), (0, 6)), ((6, 6), (2, 6)), ((5, 6), (6, 6)), ((2, 2), (5, 5))]

counts = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("first", "second", "interval"),
    [  # R. G. Newcombe, Statist. Med. 17 (1998) 873, table II, method 10
        ((56, 70), (48, 80), (0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.1705, 0.8090)),
        ((6, 7), (2, 7), (0.0582, 0.8062)),
        ((5, 56), (0, 29), (-0.0381, 0.1926)),
        ((0, 10), (0, 20), (-0.1611, 0.2775)),
        ((0, 10), (0, 10), (-0.2775, 0.2775)),
        ((10, 10), (0, 20), (0.6791, 1.0)),
        ((10, 10), (0, 10), (0.6075, 1.0)),
    ],
)
def test_newcombe_s_own_cases(first, second, interval):
    assert newcombe(first, second) == pytest.approx(interval, abs=5e-5)


def test_the_rabbits():
    # R: mantelhaen.test(Rabbits, exact = TRUE): p-value = 0.03994; with correct = FALSE statsmodels 0.15.0 has
    # StratifiedTable.test_null_odds(correction=False): 5.6571428571, p .01738442035
    found = stratified(RABBITS)
    assert found.p_exact == pytest.approx(0.03994, abs=5e-6)
    assert found.chi2 == pytest.approx(5.6571428571)
    assert found.p_chi2 == pytest.approx(0.01738442035)
    assert found.p_mid < found.p_exact


@settings(deadline=None)
@given(first=counts, second=counts)
def test_one_stratum_is_fisher_s_exact_test(first, second):
    (a, n), (b, m) = first, second
    found = stratified([(first, second)])
    assert found.p_exact == pytest.approx(stats.fisher_exact([[a, b], [n - a, m - b]]).pvalue, rel=1e-6)
    assert found.difference == pytest.approx(a / n - b / m)


@settings(deadline=None)
@given(b=st.integers(0, 12), c=st.integers(0, 12), agree=st.integers(0, 5))
def test_strata_of_single_pairs_are_mcnemar_s_test(b: int, c: int, agree: int):
    both, first, second = ((1, 1), (1, 1)), ((1, 1), (0, 1)), ((0, 1), (1, 1))
    strata = [first] * b + [second] * c + [both] * agree
    if not strata:
        return
    found, test = stratified(strata), mcnemar(b, c)
    assert found.p_exact == pytest.approx(test.p_exact)
    assert found.p_mid == pytest.approx(test.p_mid)
    assert found.difference == pytest.approx((b - c) / len(strata))


@settings(deadline=None)
@given(strata=st.lists(st.tuples(counts, counts), min_size=1, max_size=5))
def test_exchanging_the_arms_mirrors_everything(strata):
    one, other = stratified(strata), stratified([(b, a) for a, b in strata])
    assert one.p_exact == pytest.approx(other.p_exact) and one.p_mid == pytest.approx(other.p_mid)
    assert one.difference == pytest.approx(-other.difference, abs=1e-12)
    assert (one.interval is None) == (other.interval is None)
    if one.interval and other.interval:
        assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=1e-9)
    for a, b in strata:
        low, high = newcombe(a, b)
        assert newcombe(b, a) == pytest.approx((-high, -low), abs=1e-12)


@pytest.mark.thorough
def test_boschloo_is_exact_and_stronger_than_fisher_over_every_outcome():
    n, p_of = 8, {}
    for a, b in itertools.product(range(9), repeat=2):
        p_of[a, b] = boschloo_p((a, n), (b, n))
        assert p_of[a, b] <= 2 * min(1, stats.fisher_exact([[a, b], [n - a, n - b]]).pvalue) + 1e-9
    sizes = []
    for true_rate in np.linspace(0.05, 0.95, 19):
        distribution = stats.binom.pmf(np.arange(n + 1), n, true_rate)
        sizes.append(sum(distribution[a] * distribution[b] for (a, b), p in p_of.items() if p <= 0.05))
    assert max(sizes) <= 0.05


def test_boschloo_says_nothing_where_nothing_differs():
    assert boschloo_p((0, 20), (0, 10)) == boschloo_p((20, 20), (10, 10)) == 1.0
    assert score_p((0, 20), (0, 10)) == 1.0


@settings(deadline=None)
@given(first=counts, second=counts)
def test_the_score_test_is_pearson_s_chi_squared(first, second):
    (a, n), (b, m) = first, second
    if 0 < a + b < n + m:
        pearson = stats.chi2_contingency([[a, b], [n - a, m - b]], correction=False)
        assert score_p(first, second) == pytest.approx(pearson.pvalue)


@pytest.mark.thorough
def test_the_stratified_interval_covers_nearly_what_it_says_over_every_outcome():
    n, rates = 8, [(0.4, 0.2), (0.8, 0.6)]  # a common difference of .2 in two strata
    distribution = [[stats.binom.pmf(np.arange(n + 1), n, p) for p in pair] for pair in rates]
    covered = total = 0.0
    for a, b, c, d in itertools.product(range(n + 1), repeat=4):
        chance = distribution[0][0][a] * distribution[0][1][b] * distribution[1][0][c] * distribution[1][1][d]
        if chance < 1e-6:
            continue
        found = stratified([((a, n), (b, n)), ((c, n), (d, n))]).interval
        total += chance
        covered += chance * (found is not None and found[0] <= 0.2 <= found[1])
    assert 0.92 < covered / total < 0.97


def test_no_strata_and_no_counts_are_refused():
    with pytest.raises(QuestionError, match="no strata"):
        stratified([])
    with pytest.raises(QuestionError, match="allowed is k of n"):
        stratified([((3, 2), (0, 1))])
    with pytest.raises(QuestionError, match="allowed is k of n"):
        boschloo_p((1, 0), (0, 1))
