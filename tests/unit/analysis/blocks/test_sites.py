"""Random effects against published meta-analyses; sites of real blocks; what cannot be separated is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from support.statistics.real_blocks import real_blocks

from labctl.analysis.blocks.sites import site_effects
from labctl.analysis.survival.random_effects import q_profile, reml

# 13 trials of BCG against tuberculosis (Colditz et al. 1994), as R's metafor has them in dat.bcg: ill and not ill with
# the vaccine, ill and not ill without.
BCG = np.array(
    [
        *((4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761)),
        *((180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232)),
        *((17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825)),
    ],
    dtype=float,
)
# Konstantopoulos (2011), table 1: district, then effect and variance of each of its schools
SCHOOLS = {
    11: [(-0.18, 0.118), (-0.22, 0.118), (0.23, 0.144), (-0.30, 0.144)],
    12: [(0.13, 0.014), (-0.26, 0.014), (0.19, 0.015), (0.32, 0.024)],
    18: [(0.45, 0.023), (0.38, 0.043), (0.29, 0.012)],
    27: [(0.16, 0.020), (0.65, 0.004), (0.36, 0.004), (0.60, 0.007)],
    56: [(0.08, 0.019), (0.04, 0.007), (0.19, 0.005), (-0.06, 0.004)],
    58: [
        *((-0.18, 0.020), (0.00, 0.018), (0.00, 0.019), (-0.28, 0.022), (-0.04, 0.020), (-0.30, 0.021), (0.07, 0.006)),
        *((0.00, 0.007), (0.05, 0.007), (-0.08, 0.007), (-0.09, 0.007)),
    ],
    71: [(0.30, 0.015), (0.98, 0.011), (1.19, 0.010)],
    86: [(x, 0.001) for x in (-0.07, -0.05, -0.01, 0.02, -0.03, 0.00, 0.01, -0.10)],
    91: [(0.50, 0.010), (0.66, 0.011), (0.20, 0.010), (0.00, 0.009), (0.05, 0.013), (0.07, 0.013)],
    108: [(-0.52, 0.031), (0.70, 0.031), (-0.03, 0.030), (0.27, 0.030), (-0.34, 0.030)],
    644: [(0.12, 0.087), (0.61, 0.082), (0.04, 0.067), (-0.05, 0.067)],
}


def log_risk_ratios() -> tuple[np.ndarray, np.ndarray]:
    a, b, c, d = BCG.T
    return np.log(a / (a + b) / (c / (c + d))), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def test_the_bcg_trials_as_metafor_has_them() -> None:
    # rma(yi, vi) of metafor: tau^2 0.3132, I^2 92.22 %, Q 152.2330 on 12, estimate -0.7145, se 0.1798
    y, v = log_risk_ratios()
    found = reml(y, v, [np.arange(13)])
    assert found.tau2[0] == pytest.approx(0.313243, abs=2e-5) and found.i2[0] == pytest.approx(0.9222, abs=5e-5)
    assert (found.q, found.df) == (pytest.approx(152.2330, abs=5e-5), 12) and found.p < 1e-20
    assert (found.mean, found.se) == (pytest.approx(-0.7145, abs=5e-5), pytest.approx(0.1798, abs=5e-5))
    # leave1out(), first trial: estimate -0.707083788, tau2 0.336156745
    without = reml(y[1:], v[1:], [np.arange(12)])
    assert (without.mean, without.tau2[0]) == (pytest.approx(-0.7070838, abs=1e-5), pytest.approx(0.3361567, abs=5e-5))


def test_the_interval_of_tau2_as_metafor_has_it() -> None:
    # confint(rma(yi, vi)) in metafor's documentation: tau^2 0.3132, 0.1197 to 1.1115
    assert q_profile(*log_risk_ratios()) == pytest.approx((0.1197, 1.1115), abs=5e-5)
    assert q_profile(np.zeros(4), np.ones(4)) == (0.0, 0.0)


def test_schools_in_districts_as_metafor_has_them() -> None:
    # metafor's tests: rma.mv(yi, vi, random = ~ 1 | district/study) gives estimate 0.1847, se 0.0846, sigma^2 0.0651
    # and 0.0327; rma(yi, vi), which does not know of districts, 0.1279, se 0.0439, tau^2 0.0884
    y, v = (np.array([pair[k] for own in SCHOOLS.values() for pair in own]) for k in (0, 1))
    district = np.array([name for name, own in SCHOOLS.items() for _ in own])
    found = reml(y, v, [district, np.arange(len(y))])
    assert (found.mean, found.se) == (pytest.approx(0.1847, abs=5e-5), pytest.approx(0.0846, abs=5e-5))
    assert found.tau2 == pytest.approx((0.0651, 0.0327), abs=5e-5)
    assert found.i2[0] / sum(found.i2) == pytest.approx(0.6653, abs=2e-4)
    plain = reml(y, v, [np.arange(len(y))])
    assert (plain.mean, plain.se, plain.tau2[0]) == pytest.approx((0.1279, 0.0439, 0.0884), abs=5e-5)


def test_in_a_balanced_design_reml_is_the_analysis_of_variance() -> None:
    # tau2 = (MS between - MS within) / n, and F of the two on 5 and 54 is its test
    rng = np.random.default_rng(4)
    d = rng.normal(0, 0.3, (6, 10)) + rng.normal(0, 0.4, (6, 1))
    site = [f"s{i}" for i in range(6) for _ in range(10)]
    found = site_effects(d.ravel(), site)
    within, between = d.var(axis=1, ddof=1).mean(), 10 * d.mean(axis=1).var(ddof=1)
    assert found.site is not None and found.evaluator is None
    assert found.site.tau2 == pytest.approx((between - within) / 10, rel=1e-5)
    assert found.q_p == pytest.approx(stats.f.sf(between / within, 5, 54)) and found.mean == pytest.approx(d.mean())
    reach = 2.5705818 * math.sqrt(d.mean(axis=1).var(ddof=1) * 7 / 6)  # t on 5
    assert found.prediction == pytest.approx((d.mean() - reach, d.mean() + reach), rel=1e-6)
    one_out = found.sites[2]
    assert one_out.without == pytest.approx(np.delete(d, 2, axis=0).mean()) and one_out.mean == pytest.approx(
        d[2].mean()
    )


def test_sites_and_evaluators_of_the_real_blocks() -> None:
    real = real_blocks()
    found = site_effects(real.differences("pi0_fast", "pi0"), real.site, real.evaluator)
    assert found.site is not None and found.evaluator is not None and found.prediction is not None
    assert sum(one.blocks for one in found.sites) == 281
    assert found.words == (
        "site-4, site-6, site-7 have one evaluator only: the other sites alone tell evaluators from sites",
    )
    assert found.prediction[0] < found.mean < found.prediction[1]
    assert [one.site for one in found.sites] == [f"site-{i}" for i in range(1, 8)]


def test_what_cannot_be_separated_is_said() -> None:
    d = np.array([0.1, 0.3, -0.2, 0.4, 0.5, 0.2, np.nan])
    single = site_effects(d, list("aabbccc"), list("xxyyzzz"))
    assert "each site has one evaluator: what is called site is site and evaluator together" in single.words
    assert single.evaluator is None and single.prediction is None and [one.blocks for one in single.sites] == [2, 2, 2]
    assert any(words == "3 sites: an interval for a new one needs 5" for words in single.words)
    moved = site_effects(d, list("aabbccc"), list("xyxyxyx"))
    assert any(words.startswith("x worked at a, b, c: taken as one evaluator at each") for words in moved.words)


def test_one_site_and_blocks_without_spread_give_no_variance() -> None:
    one = site_effects(np.array([0.1, 0.3]), ["a", "a"])
    assert one.site is None and one.ci is None and one.mean == pytest.approx(0.2)
    assert one.words == ("one site: what holds there may not elsewhere",)
    same = site_effects(np.array([0.5, 0.5, 0.2, 0.2]), list("aabb"))
    assert same.site is None and any("do not vary" in words for words in same.words)
    none = site_effects(np.array([np.nan]), ["a"])
    assert none.mean is None and none.words == ("no block has both arms",)
    two = site_effects(np.array([0.5, 0.4, 0.2, 0.1]), list("aabb"))
    assert two.sites[0].without is None
