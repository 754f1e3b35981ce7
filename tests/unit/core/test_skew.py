"""The fit finds the clock that made the times, through late samples, and says where another one took over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.core.recorded.skew import ClockFit, campaign_clock, clock_line, clock_warnings, fit_clock

START = 123_456 * SECOND


def times(n: int, rate_hz: float, *, ppm: float = 20.0, offset_s: float = -77.0, delay_ms: float = 2.0, seed: int = 0):
    """Device and host times of n samples: the host hears of each after an exponential delay of that mean."""
    t = np.arange(n) / rate_hz
    delay = np.random.default_rng(seed).exponential(delay_ms / 1e3, n)
    host_ns = START + np.round((t + delay) * SECOND).astype(np.int64)
    device_ns = START + np.round((offset_s + t * (1 + ppm / 1e6)) * SECOND).astype(np.int64)
    return device_ns, host_ns


def fitted(device_ns, host_ns, clock=None) -> ClockFit:
    found = fit_clock(device_ns, host_ns, clock)
    assert found is not None
    return found


@pytest.mark.parametrize("ppm", [-300.0, 0.0, 20.0, 95.0])
def test_drift_offset_and_jitter_of_a_clean_clock(ppm):
    found = fitted(*times(5400, 30.0, ppm=ppm))
    assert found.drift_ppm == pytest.approx(ppm, abs=max(0.5, 3 * found.drift_se_ppm))
    assert found.drift_se_ppm < 0.5
    assert found.offset_s == pytest.approx(-77.0 + ppm / 1e6 * 90, abs=0.003), "less the usual delay, at the middle"
    # of an exponential with mean 2 ms and its median subtracted, 95 % lie within about 3 ms of the line
    assert 2.0 < found.jitter_ms < 6.0
    assert (found.resets, found.n) == (0, 5400) and found.span_s == pytest.approx(180, abs=0.1)


def test_a_tenth_of_the_samples_may_come_very_late():
    device_ns, host_ns = times(3000, 30.0, ppm=20.0)
    late = np.random.default_rng(1).choice(3000, 300, replace=False)
    host_ns[late] += np.random.default_rng(2).integers(20, 400, 300) * MILLISECOND
    assert fitted(device_ns, host_ns).drift_ppm == pytest.approx(20.0, abs=2.0)


def test_a_stall_of_the_host_is_no_reset():
    """For half a second nothing is heard, then ten samples come at once: they are late, the clock is not."""
    device_ns, host_ns = times(900, 30.0)
    host_ns[400:410] = host_ns[410]
    assert fitted(device_ns, host_ns).resets == 0


@pytest.mark.parametrize("step_s", [-50.0, -0.2, 0.2, 1e6])
def test_a_clock_that_jumps_is_a_reset_and_the_longer_stretch_is_fitted(step_s):
    device_ns, host_ns = times(3000, 30.0, ppm=20.0)
    device_ns[1000:] += round(step_s * SECOND)
    found = fitted(device_ns, host_ns)
    assert found.resets == 1
    assert found.drift_ppm == pytest.approx(20.0, abs=1.0)
    assert found.span_s == pytest.approx(2000 / 30, abs=0.1)


def test_another_clock_is_a_reset_even_where_both_agree():
    device_ns, host_ns = times(1000, 30.0)
    clock = np.repeat([0, 1], [400, 600])
    assert fitted(device_ns, host_ns, clock).resets == 1
    assert fitted(device_ns, host_ns).resets == 0


def test_a_clock_of_whole_milliseconds_is_good_enough():
    device_ns, host_ns = times(5400, 30.0, ppm=50.0)
    device_ns = device_ns // MILLISECOND * MILLISECOND
    assert fitted(device_ns, host_ns).drift_ppm == pytest.approx(50.0, abs=1.0)


def test_what_says_nothing_is_not_fitted():
    device_ns, host_ns = times(3000, 30.0)
    assert fit_clock(np.full(3000, 7), host_ns) is None, "a device without a clock"
    assert fit_clock(device_ns[:10], host_ns[:10]) is None, "too few"
    assert fit_clock(*times(30, 1000.0)) is None, "too short"
    assert fit_clock(np.empty(0, np.int64), np.empty(0, np.int64)) is None


def test_a_host_clock_given_as_the_devices_has_no_drift_and_no_jitter():
    _, host_ns = times(1000, 30.0)
    found = fitted(host_ns // 1000 * 1000, host_ns)
    assert abs(found.drift_ppm) < 0.01 and found.jitter_ms < 0.01 and found.offset_s == pytest.approx(0, abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(ppm=st.floats(-500, 500), offset=st.floats(-1e6, 1e6), rate=st.sampled_from([10.0, 30.0, 200.0]))
def test_any_steady_clock_is_found(ppm, offset, rate):
    found = fitted(*times(round(60 * rate), rate, ppm=ppm, offset_s=offset, delay_ms=1.0))
    assert found.drift_ppm == pytest.approx(ppm, abs=6 * found.drift_se_ppm + 1.0)
    assert found.resets == 0


def test_warnings_at_their_limits():
    good = fitted(*times(5400, 30.0)).body(30.0)
    assert clock_warnings("camera/wrist", good) == []
    assert "+300 ppm" in clock_warnings("camera/wrist", {**good, "drift_ppm": 300.0})[0]
    assert clock_warnings("camera/wrist", {**good, "drift_ppm": 300.0, "drift_se_ppm": 50.0}) == []
    assert "jitter" in clock_warnings("camera/wrist", {**good, "jitter_ms": 33.5})[0]
    assert clock_warnings("camera/wrist", {**good, "jitter_ms": 33.0}) == []
    assert clock_warnings("arm/state", {**good, "jitter_ms": 4.9, "rate_hz": 1000.0}) == []
    assert "reset 2 time" in clock_warnings("camera/wrist", {**good, "resets": 2})[0]


def test_a_campaign_in_one_line():
    fits = [{"drift_ppm": ppm, "jitter_ms": ms, "resets": 0} for ppm, ms in ((21.0, 1.0), (19.5, 3.25))]
    assert campaign_clock(fits) == "drift +19.5 to +21.0 ppm, jitter up to 3.25 ms, 0 resets"
    assert campaign_clock(fits[:1]) == "drift +21.0 ppm, jitter up to 1.00 ms, 0 resets"


def test_a_fit_in_one_line():
    found = ClockFit(900, 30.04, 12.5, 20.04, 0.33, 1.234, 0).body(30.0)
    assert clock_line("camera/wrist", found) == "camera/wrist: drift +20.0 ± 0.3 ppm, jitter 1.23 ms (p95) over 30 s"
