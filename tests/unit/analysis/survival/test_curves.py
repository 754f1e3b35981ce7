"""Every reference case of R survival 3.5.3 (facts/statistics.md section 2), each beside the call that gives it."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.cohorts import NS, durations, kidney

from labctl.analysis.survival.curves import (
    NEVER_NS,
    Durations,
    curve,
    distinct,
    influence,
    quantile_ns,
    rmst_influence,
    rmst_with_error,
)
from labctl.analysis.survival.logrank import logrank, stratified

# Freireich et al. 1963, weeks in remission; + is censored
MERCAPTOPURINE = durations(
    [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35],
    [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0],
)
PLACEBO = durations([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23], [1] * 21)


def at(s: Durations, t: float) -> float:
    _, surviving = curve(s, round(t * NS))
    return float(surviving[-1]) if len(surviving) else 1.0


def test_c1a_freireich_survival() -> None:
    # fit <- survfit(Surv(t, e) ~ 1); summary(fit, times = c(6, 10, 23))$surv
    assert [at(MERCAPTOPURINE, t) for t in (6, 10, 23)] == pytest.approx(
        [0.8571428571, 0.7529411765, 0.4481792717], abs=1e-9
    )


def test_c1a_rmst_and_median() -> None:
    # summary(fit, rmean = 35)$table[c("rmean", "se(rmean)", "median")], and rmean = 20
    assert rmst_with_error(MERCAPTOPURINE, 35 * NS) == pytest.approx((23.2873949580, 2.8274676234), abs=1e-9)
    assert rmst_with_error(MERCAPTOPURINE, 20 * NS) == pytest.approx((16.1165266106, 1.2515601960), abs=1e-9)
    assert quantile_ns(MERCAPTOPURINE) == 23 * NS


def test_c1b_placebo() -> None:
    # summary(survfit(Surv(t, e) ~ 1), times = 8); rmean = 35 and 20
    assert at(PLACEBO, 8) == pytest.approx(0.3809523810, abs=1e-9)
    assert rmst_with_error(PLACEBO, 35 * NS)[0] == pytest.approx(8.6666666667, abs=1e-9)
    assert rmst_with_error(PLACEBO, 20 * NS)[0] == pytest.approx(8.4285714286, abs=1e-9)


def test_c1_the_two_arms() -> None:
    # survdiff(Surv(t, e) ~ arm)
    found = logrank(MERCAPTOPURINE, PLACEBO)
    assert (found.chi2, found.p) == pytest.approx((16.7929409892, 4.168809109e-05), abs=1e-9)
    gaps = {t: abs(at(MERCAPTOPURINE, t) - at(PLACEBO, t)) for t in range(36)}
    assert max(gaps.values()) == pytest.approx(0.5624649860, abs=1e-9) and max(gaps, key=gaps.get) == 12


def lung(where: str | None = None, value: int | None = None) -> Durations:
    """R's lung as lifelines ships it, status 0/1 (Loprinzi et al. 1994)."""
    frame = pytest.importorskip("lifelines.datasets").load_lung()
    frame = frame if where is None else frame[frame[where] == value]
    return durations(frame["time"].tolist(), frame["status"].tolist())


def test_c2_lung() -> None:
    # summary(survfit(Surv(time, status) ~ 1, lung), times = c(180, 365, 730)); rmean = 1000; quantile(fit)
    s = lung()
    assert [at(s, t) for t in (180, 365, 730)] == pytest.approx([0.7216706534, 0.4092416245, 0.1156930983], abs=1e-9)
    assert rmst_with_error(s, 1000 * NS) == pytest.approx((375.1671436503, 19.4388593733), abs=1e-9)
    assert [quantile_ns(s, q) // NS for q in (0.25, 0.5, 0.75)] == [170, 310, 550]


def test_c2_lung_by_sex() -> None:
    # survfit(Surv(time, status) ~ sex), rmean = 365.25; survdiff(... ~ sex); ... ~ sex + strata(ph.ecog)
    male, female = lung("sex", 1), lung("sex", 2)
    tau = round(365.25 * NS)
    assert rmst_with_error(male, tau) == pytest.approx((241.5791071507, 10.3659000174), abs=1e-9)
    assert rmst_with_error(female, tau) == pytest.approx((297.5970252896, 10.8013899740), abs=1e-9)
    found = logrank(male, female)
    assert (found.chi2, found.p) == pytest.approx((10.3267419549, 0.00131116452), abs=1e-9)
    frame = pytest.importorskip("lifelines.datasets").load_lung()
    frame = frame[frame["ph.ecog"].notna()]  # R drops the one row without
    by_ecog = []
    for level in sorted(frame["ph.ecog"].unique()):
        part = frame[frame["ph.ecog"] == level]
        sexes = [part[part["sex"] == sex] for sex in (1, 2)]
        if all(len(f) for f in sexes):
            by_ecog.append(tuple(durations(f["time"].tolist(), f["status"].tolist()) for f in sexes))
    assert stratified(by_ecog).chi2 == pytest.approx(10.7950596335, abs=1e-9)
    gaps = {t: abs(at(male, t) - at(female, t)) for t in np.unique(frame["time"])}
    assert max(gaps.values()) == pytest.approx(0.2683464533, abs=1e-9) and max(gaps, key=gaps.get) == 337


def test_c4_kidney_clustered() -> None:
    # summary(survfit(Surv(time, status) ~ 1, kidney, cluster = id), times = c(30, 132));
    # rowsum(residuals(fit, times = 240, type = "rmst"), id) for the clustered se of the RMST
    s = kidney()
    assert [at(s, t) for t in (30, 132)] == pytest.approx([0.6448711426, 0.3910702932], abs=1e-9)
    grids = [curve(s, t * NS)[0] for t in (30, 132)]
    by_episode = [influence(s, g, np.full(len(g), at(s, t))) for g, t in zip(grids, (30, 132), strict=True)]
    assert [(d**2).sum() ** 0.5 for d in by_episode] == pytest.approx([0.0612698515, 0.0680483869], abs=1e-9)
    assert rmst_with_error(s, 240 * NS) == pytest.approx((105.8103251410, 12.1615700482), abs=1e-9)
    alone = Durations(s.time_ns, s.event, np.arange(len(s.event)), len(s.event))
    assert rmst_with_error(alone, 240 * NS)[1] == pytest.approx(11.0039578113, abs=1e-9)


def test_c4_kidney_by_sex() -> None:
    # survdiff(Surv(time, status) ~ sex, kidney); coxph(Surv(time, status) ~ sex + cluster(id)), $rscore
    found = logrank(kidney("male"), kidney("female"))
    assert found.chi2 == pytest.approx(8.3083275947, abs=1e-9)
    assert found.chi2_cluster == pytest.approx(3.1996890395, abs=1e-9)


def test_c6_ties_count_together_and_censored_at_the_time_are_still_at_risk() -> None:
    # survfit(Surv(t, e) ~ 1), summary(rmean = 5)
    s = durations([1, 2, 2, 2, 3, 3, 4], [1, 1, 0, 1, 0, 1, 0])
    assert [at(s, t) for t in (1, 2, 3, 5)] == pytest.approx([6 / 7, 4 / 7, 8 / 21, 8 / 21], abs=1e-12)
    assert rmst_with_error(s, 5 * NS) == pytest.approx((3.1904761905, 0.5992833066), abs=1e-9)


def test_c7_all_censored_survives_to_tau_with_an_infinite_median() -> None:
    s = durations([3, 5, 7], [0, 0, 0])
    assert rmst_with_error(s, 10 * NS) == (10.0, 0.0)
    assert quantile_ns(s) == NEVER_NS
    assert at(s, 10) == 1.0


@pytest.mark.parametrize(("event", "expected"), [(1, 5.0), (0, 10.0)])
def test_c8_a_single_observation(event: int, expected: float) -> None:
    assert rmst_with_error(durations([5], [event]), 10 * NS)[0] == expected


def test_c10_events_at_time_zero_count() -> None:
    s = durations([0, 1, 2], [1, 1, 0])
    assert (at(s, 0), at(s, 1)) == pytest.approx((2 / 3, 1 / 3))
    assert rmst_with_error(s, 3 * NS)[0] == pytest.approx(4 / 3)


def test_c11_a_horizon_inside_the_data_cuts_the_integral() -> None:
    assert rmst_with_error(durations([10, 20, 30], [1, 0, 1]), 25 * NS)[0] == pytest.approx(20)


def test_ghosts_never_happen_and_never_leave() -> None:
    s = durations([1, np.inf], [1, 1])
    assert at(s, 1e6) == 0.5 and rmst_with_error(s, 240 * NS)[0] == pytest.approx(0.5 * 1 + 0.5 * 240)
    assert quantile_ns(durations([1, np.inf, np.inf], [1, 1, 1])) == NEVER_NS


def test_the_median_is_where_one_half_is_reached_in_spite_of_rounding() -> None:
    # S falls 3/4, 2/3 of it = .5; R would give the midpoint 2.5, lifelines 2 (facts §1 f)
    assert quantile_ns(durations([1, 2, 3, 3], [1, 1, 1, 1])) == 2 * NS


def test_the_influence_is_the_derivative_with_respect_to_an_episodes_weight() -> None:
    s = kidney()
    _, by_episode = rmst_influence(s, 240 * NS)
    assert len(by_episode) == 38 and abs(by_episode.sum()) < 1e-9  # weights all scaled alike change nothing


def test_curves_of_a_weighted_sample_end_where_their_rows_do() -> None:
    grid, surviving = curve(durations([1, 2, 3], [1, 0, 1]), 2 * NS)
    assert grid.tolist() == [NS] and surviving.tolist() == [pytest.approx(2 / 3)]


@pytest.mark.parametrize("values", [[], [3], [5, 1, 5, NEVER_NS, 1], list(range(40, 0, -1))])
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    given = np.array(values, dtype=np.int64)
    assert distinct(given).tolist() == np.unique(given).tolist()
