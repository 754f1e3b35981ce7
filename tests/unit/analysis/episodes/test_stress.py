"""Stress measures by hand: frequency, latency, stability, and intervals over episodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labctl.analysis.episodes.stress import Traces, arm_stress, episode_stress, inference_hz, latencies_s, roughness_rad

S = 1_000_000_000


def ns(*seconds: float) -> np.ndarray:
    return np.array([round(s * S) for s in seconds], dtype=np.int64)


def test_frequency_is_intervals_over_the_time_they_took():
    assert inference_hz(ns(0.0, 0.5, 1.0, 2.0)) == pytest.approx(3 / 2)  # three intervals in two seconds
    assert inference_hz(ns(1.0)) is None and inference_hz(ns()) is None


def test_latency_is_from_capture_to_the_first_action_of_answers_that_were_used():
    found = latencies_s(ns(0.0, 1.0, 2.0), np.array([round(0.2 * S), -1, round(2.4 * S)]))
    assert found == pytest.approx([0.2, 0.4])


def test_stability_reads_the_standing_target_at_ten_hertz():
    # targets: (0, 0) from go, (0.3, 0.4) from 0.25 s; ticks at 0, .1, .2, .3, .4, .5: one step of 0.5 rad in five
    sent_ns, sent = ns(0.0, 0.25), np.array([[0.0, 0.0], [0.3, 0.4]])
    found = roughness_rad(sent_ns, sent, 0, S // 2)
    assert found == pytest.approx(0.5 / 5)
    traces = Traces("e", "a", "o", 0, S // 2, sent_ns=sent_ns, sent=sent)
    assert episode_stress(traces)["stability"] == pytest.approx(math.exp(-0.1))


def test_the_rate_of_the_record_does_not_change_stability():
    """The same motion, sent at 500 Hz and at 50 Hz: 0.2 rad/s in one joint is 0.02 rad from tick to tick."""
    found = []
    for rate in (500, 50):
        at = np.arange(0, 2 * rate + 1) / rate
        found.append(roughness_rad(ns(*at), 0.2 * at[:, None], 0, 2 * S))
    assert found == pytest.approx([0.02, 0.02])


def test_what_was_sent_before_go_and_after_the_end_is_not_compared():
    sent_ns, sent = ns(-3.0, -1.0, 5.0), np.array([[9.0], [0.0], [9.0]])
    assert roughness_rad(sent_ns, sent, 0, S) == 0.0


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=30), st.floats(-10, 10))
def test_stability_does_not_depend_on_where_the_arm_stands(values, shift):
    at = ns(*(0.1 * i for i in range(len(values))))
    plain, end = np.array(values)[:, None], int(at[-1])
    first, second = roughness_rad(at, plain, 0, end), roughness_rad(at, plain + shift, 0, end)
    assert first == pytest.approx(second, abs=1e-9)


def test_an_episode_without_traces_says_nothing():
    found = episode_stress(Traces("e", "a", "o", 0, S))
    names = ("inference_hz", "latency_s", "latency_p95_s", "roughness_rad", "stability")
    assert [found[name] for name in names] == [None] * 5


def entry(arm: str, hz: float | None, late: float | None, rough: float | None) -> dict:
    return {"arm": arm, "inference_hz": hz, "latency_s": late, "latency_p95_s": late, "roughness_rad": rough}


def test_an_arm_is_the_mean_of_its_episodes_with_a_t_interval():
    found = arm_stress([entry("a", 2.0, 0.1, 0.02), entry("a", 4.0, None, 0.04), entry("b", 1.0, 0.2, 0.0)], ["a", "b"])
    (a, b) = found
    assert (a["episodes"], a["inference_hz"]["value"], a["inference_hz"]["episodes"]) == (2, 3.0, 2)
    # se = sqrt(2)/sqrt(2) = 1; on the log scale the slope is 1/3; t(.975, 1 df) = 12.706
    reach = stats.t.ppf(0.975, 1) / 3
    assert a["inference_hz"]["ci"] == pytest.approx([3 * math.exp(-reach), 3 * math.exp(reach)])
    assert a["latency_s"] == {"value": 0.1, "ci": None, "episodes": 1}, "one episode has no spread"
    assert a["stability"]["value"] == pytest.approx(math.exp(-0.03))
    low, high = a["stability"]["ci"]
    assert low == pytest.approx(math.exp(-(0.03 + stats.t.ppf(0.975, 1) * 0.01))) and high == 1.0
    assert b["stability"] == {"value": 1.0, "ci": None, "episodes": 1}
    assert a["latency_worst_p95_s"] == 0.1


def test_more_episodes_narrow_the_interval():
    rng = np.random.default_rng(5)
    many = [entry("a", float(x), 0.1, 0.1) for x in rng.normal(5, 1, 40)]
    wide, narrow = (arm_stress(many[:n], ["a"])[0]["inference_hz"]["ci"] for n in (5, 40))
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
