"""The kernel agrees with R survival 3.5.3 and with the definition, replicate by replicate."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labctl.analysis.survival import (
    NEVER_NS,
    Spells,
    curve,
    incidence_rmst,
    median_ns,
    rmst,
    rmst_influence,
    rmst_with_error,
    survival,
    walk,
)

NS = 1_000_000_000
DATA = Path(__file__).parent / "data"


def spells(times: list[float], events: list[int], episode: list[int] | None = None) -> Spells:
    time = np.array([NEVER_NS if np.isinf(t) else round(t * NS) for t in times])
    cluster = np.arange(len(times)) if episode is None else np.array(episode)
    return Spells(time, np.array(events, dtype=bool), cluster, int(cluster.max()) + 1)


def at(s: Spells, t: float) -> float:
    grid, surviving = curve(s, NEVER_NS)
    place = np.searchsorted(grid, round(t * NS), side="right") - 1
    return float(surviving[place]) if place >= 0 else 1.0


def kidney() -> Spells:
    """R's `kidney`: 38 patients, two catheters each (McGilchrist & Aisbett 1991)."""
    with (DATA / "kidney.csv").open() as f:
        rows = list(csv.DictReader(f))
    return spells(
        [float(r["time"]) for r in rows], [int(r["status"]) for r in rows], [int(r["patient"]) - 1 for r in rows]
    )


def test_ties_count_together_and_censored_at_the_time_are_still_at_risk() -> None:
    # facts §2 C6, R survival 3.5.3: survfit(Surv(t, e) ~ 1), summary(rmean = 5)
    s = spells([1, 2, 2, 2, 3, 3, 4], [1, 1, 0, 1, 0, 1, 0])
    assert [at(s, t) for t in (1, 2, 3, 5)] == pytest.approx([6 / 7, 4 / 7, 8 / 21, 8 / 21], abs=1e-12)
    assert rmst_with_error(s, 5 * NS) == pytest.approx((3.1904761905, 0.5992833066), abs=1e-9)


def test_all_censored_survives_to_tau_with_an_infinite_median() -> None:
    s = spells([3, 5, 7], [0, 0, 0])  # facts §2 C7
    assert rmst_with_error(s, 10 * NS) == (10.0, 0.0)
    assert median_ns(s) == NEVER_NS


@pytest.mark.parametrize(("event", "expected"), [(1, 5.0), (0, 10.0)])
def test_a_single_observation(event: int, expected: float) -> None:
    assert rmst_with_error(spells([5], [event]), 10 * NS)[0] == expected  # facts §2 C8


def test_events_at_time_zero_count() -> None:
    s = spells([0, 1, 2], [1, 1, 0])  # facts §2 C10
    assert (at(s, 0), at(s, 1)) == pytest.approx((2 / 3, 1 / 3))
    assert rmst_with_error(s, 3 * NS)[0] == pytest.approx(4 / 3)


def test_a_horizon_inside_the_data_cuts_the_integral() -> None:
    assert rmst_with_error(spells([10, 20, 30], [1, 0, 1]), 25 * NS)[0] == pytest.approx(20)  # facts §2 C11


def test_ghosts_never_happen_and_never_leave() -> None:
    s = spells([1, np.inf], [1, 1])
    assert at(s, 1e6) == 0.5 and rmst_with_error(s, 240 * NS)[0] == pytest.approx(0.5 * 1 + 0.5 * 240)
    assert median_ns(spells([1, np.inf, np.inf], [1, 1, 1])) == NEVER_NS


def test_the_median_is_where_one_half_is_reached_in_spite_of_rounding() -> None:
    # S falls 3/4, 2/3 of it = .5; R would give the midpoint 2.5, lifelines 2 (facts §1 f)
    assert median_ns(spells([1, 2, 3, 3], [1, 1, 1, 1])) == 2 * NS


def test_the_clustered_error_agrees_with_r_on_kidney() -> None:
    # facts §2 C4: residuals(survfit, type = "rmst") and rowsum by patient; naive one observation per cluster
    s = kidney()
    assert (at(s, 30), at(s, 132)) == pytest.approx((0.6448711426, 0.3910702932), abs=1e-9)
    assert rmst_with_error(s, 240 * NS) == pytest.approx((105.8103251410, 12.1615700482), abs=1e-9)
    alone = Spells(s.time_ns, s.event, np.arange(len(s.event)), len(s.event))
    assert rmst_with_error(alone, 240 * NS)[1] == pytest.approx(11.0039578113, abs=1e-9)


def test_the_influence_is_the_derivative_with_respect_to_an_episodes_weight() -> None:
    s = kidney()
    _, influence = rmst_influence(s, 240 * NS)
    grid = s.event_times(240 * NS)
    steps, h = walk(s, grid), 1e-5
    nudged = np.concatenate((np.eye(s.episodes) * h + 1, 1 - np.eye(s.episodes) * h))
    values = rmst(survival(steps, nudged), grid, 240 * NS)
    numeric = (values[: s.episodes] - values[s.episodes :]) / (2 * h)
    assert influence == pytest.approx(numeric, abs=1e-6)


cohorts = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 3, 5, 8, np.inf]), st.booleans(), st.integers(0, 3)), min_size=1, max_size=14
)


@settings(deadline=None, max_examples=60)
@given(cohorts, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_weighted_walk_is_the_same_as_writing_the_episodes_out(
    rows: list[tuple[float, bool, int]], counts: list[int]
) -> None:
    rows = [(t, e or np.isinf(t), k) for t, e, k in rows]
    written = [(t, e) for t, e, k in rows for _ in range(counts[k])]
    s = spells([t for t, _, _ in rows], [int(e) for _, e, _ in rows], [k for _, _, k in rows])
    s = Spells(s.time_ns, s.event, s.episode, 4)
    grid = s.event_times(6 * NS)
    found = rmst(survival(walk(s, grid), np.array([counts], dtype=float)), grid, 6 * NS)[0]
    assert found == pytest.approx(_by_hand(written, 6.0), abs=1e-12)


def _by_hand(observations: list[tuple[float, bool]], tau: float) -> float:
    area, survivors, before = 0.0, 1.0, 0.0
    for t in sorted({t for t, e in observations if e and t <= tau}):
        area += survivors * (t - before)
        deaths = sum(e and u == t for u, e in observations)
        survivors *= 1 - deaths / sum(u >= t for u, _ in observations)
        before = t
    return area + survivors * (tau - before)


def test_without_censoring_a_lost_item_costs_the_same_by_aalen_johansen_as_at_infinity() -> None:
    time = np.array([1, 2, 3, 4]) * NS
    lost = np.array([False, True, False, False])
    ghost = spells([1, np.inf, 3, 4], [1, 1, 1, 1])
    assert incidence_rmst(time, ~lost, lost, 10 * NS) == pytest.approx(rmst_with_error(ghost, 10 * NS)[0], abs=1e-12)


def test_under_censoring_a_lost_item_no_longer_gains_weight() -> None:
    # by hand: t = 1 success (3 at risk), 2 lost, 3 censored: F(1) = 1/3 and stays; tau - ∫F = 10 - 9/3
    time = np.array([1, 2, 3]) * NS
    success, lost = np.array([True, False, False]), np.array([False, True, False])
    assert incidence_rmst(time, success, lost, 10 * NS) == pytest.approx(7.0)
