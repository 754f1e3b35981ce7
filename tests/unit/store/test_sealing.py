"""What is sealed of an episode beside its chunks: footage, and the clocks of devices that have one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND
from labctl.core.recorded.skew import campaign_clock, clock_line, clock_warnings, missing_samples
from labctl.nodes.video_recorder import index_spec
from labctl.store.chunks import Chunk
from labctl.store.database_backend import sqlite_url
from labctl.store.sealing import episode_clocks, look_over
from labctl.store.traces import TraceStore
from labctl.streams import StreamSpec

ARM = StreamSpec("arm/state", ("q", "device_s"), "rad s", 1000.0)
PLAIN = StreamSpec("tracker", ("x",), "m", 10.0)
OWN = StreamSpec("arm/device", ("control_command_success_rate",), "1", 1000.0)


@pytest.fixture
def store(tmp_path: Path):
    made = TraceStore.create(sqlite_url(tmp_path / "traces.db"), "c")
    made.declare("e-1", [ARM, PLAIN, index_spec("wrist", 30.0), index_spec("front", 30.0)])
    yield made
    made.close()


def camera_rows(host_ns: np.ndarray, ppm: float, domain=0) -> np.ndarray:
    n = np.arange(len(host_ns))
    device_us = ((host_ns - 50 * SECOND) * (1 + ppm / 1e6) / 1e3).astype(np.int64)
    return np.stack([n, device_us, host_ns, n * 33_333, n * 0 + domain, n * 0 - 1], axis=1)


def write(store: TraceStore, stream: str, t_ns: np.ndarray, values: np.ndarray, per_chunk: int) -> None:
    cuts = range(0, len(t_ns), per_chunk)
    store.write(
        "e-1", [Chunk(stream, i, t_ns[c : c + per_chunk], values[c : c + per_chunk]) for i, c in enumerate(cuts)]
    )


def test_every_device_with_a_clock_is_fitted_and_no_other_stream(store):
    host_ns = 100 * SECOND + np.arange(3000) * SECOND // 30
    write(store, "camera/wrist", host_ns, camera_rows(host_ns, 35.0), 30)
    blind = camera_rows(host_ns, 0.0)
    blind[:, 1] = -1
    write(store, "camera/front", host_ns, blind, 30)
    t_ns = 100 * SECOND + np.arange(100_000) * SECOND // 1000
    device_s = 7.0 + np.arange(100_000) / 1000 * (1 - 12e-6)
    write(store, "arm/state", t_ns, np.stack([device_s * 0, device_s], axis=1), 1000)
    write(store, "tracker", t_ns[:100], np.zeros((100, 1)), 100)
    found = episode_clocks(store, "e-1")
    assert {name: fit["drift_ppm"] for name, fit in found.items()} == {"arm/state": -12.0, "camera/wrist": 35.0}
    assert found["arm/state"]["rate_hz"] == 1000.0 and found["arm/state"]["n"] == 100_000, "of all, not of those read"
    assert found["arm/state"]["missing"] == 0
    assert found["arm/state"]["span_s"] > 95, "a part of the samples, spread over the whole episode"


def test_the_share_of_commands_that_a_robot_received_is_of_its_time_under_control(store):
    t_ns = 100 * SECOND + np.arange(4000) * MILLISECOND
    write(store, "arm/state", t_ns, np.stack([t_ns * 0.0, t_ns / 1e9], axis=1), 1000)
    assert "received" not in episode_clocks(store, "e-1")["arm/state"], "a robot that does not say"
    store.declare("e-1", [OWN])
    rates = np.repeat([0.0, 1.0, 0.9, 0.0], 1000)  # libfranka: zero while no control loop runs
    write(store, "arm/device", t_ns, rates[:, None], 1000)
    assert episode_clocks(store, "e-1")["arm/state"]["received"] == 0.95


@pytest.mark.parametrize("n", [20_000, 100_000], ids=["all samples are read", "every other chunk is read"])
def test_states_that_never_came_are_counted_by_the_robots_clock(store, n):
    came = np.delete(np.arange(n), [*range(500, 544), 7000, *range(n - 1200, n - 1000)])
    t_ns = 100 * SECOND + came * SECOND // 1000
    write(store, "arm/state", t_ns, np.stack([came * 0.0, 7.0 + came / 1000], axis=1), 1000)
    found = episode_clocks(store, "e-1")["arm/state"]
    assert (found["missing"], found["n"]) == (245, n - 245)
    words = clock_warnings("arm/state", found)
    assert words == ([] if n == 100_000 else [f"245 of {n:,} samples of arm/state never came, by its own clock"])
    assert clock_line("arm/state", found).endswith(f" over {n / 1000:.0f} s, 245 of {n:,} samples missing")
    assert campaign_clock([found, found]).endswith(f", 490 of {2 * n:,} samples missing")


def test_states_of_a_clock_that_waits_for_the_host_are_counted_too():
    """An emulated controller in lock-step stands still with its client; none of its states is missing."""
    n = np.arange(5000)
    host_ns = n * MILLISECOND + np.where(n > 3000, 200 * MILLISECOND, 0)
    assert missing_samples(n * MILLISECOND, host_ns, 5000) == 0
    late = n * MILLISECOND + np.where(n == 0, 120 * MILLISECOND, 0)
    assert missing_samples(n * MILLISECOND, late, 5000) == 0, "the first was heard late"


@pytest.mark.parametrize("kind", ["uneven", "set back", "set forward", "too few"])
def test_of_a_clock_that_does_not_step_evenly_nothing_missing_is_told(kind):
    host_ns = np.arange(300) * 33_333_333
    times_ns = host_ns.copy()
    if kind == "uneven":  # as a camera's, that stamps what its exposure and its transport make of it
        times_ns += np.random.default_rng(0).integers(-4_000_000, 4_000_000, 300)
    elif kind.startswith("set"):
        times_ns[200:] += (30 * 33_333_333) * (1 if kind == "set forward" else -1)
    else:
        times_ns = times_ns[:10]
    assert missing_samples(times_ns, host_ns[: len(times_ns)], len(times_ns)) is None


@given(st.sets(st.integers(1, 998), max_size=600), st.integers(0, 10**9))
def test_what_is_missing_between_the_first_and_the_last_sample_is_counted(lost, start_s):
    """At 500 Hz in seconds of floating point, as a UR's controller gives its time."""
    came = np.array([n for n in range(1000) if n not in lost])
    times_ns = np.round((start_s + came / 500.0) * SECOND).astype(np.int64)
    together = np.diff(came).min() == 1
    assert missing_samples(times_ns, times_ns, len(came)) == len(lost) or not together


def test_a_camera_whose_clock_was_exchanged_has_a_reset(store):
    host_ns = 100 * SECOND + np.arange(900) * SECOND // 30
    write(store, "camera/wrist", host_ns, camera_rows(host_ns, 35.0, np.arange(900) // 600), 30)
    assert episode_clocks(store, "e-1")["camera/wrist"]["resets"] == 1


def test_an_episode_without_samples_has_no_clocks(store, tmp_path):
    found = look_over(tmp_path, sqlite_url(tmp_path / "traces.db"), "c", "e-1", ["wrist"])
    assert found.clocks == {} and found.footage.videos == {} and found.footage.notes == []


@pytest.mark.parametrize("early_ms", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [60, 1480])
def test_a_stamp_that_came_early_does_not_make_missing_samples_of_all_the_others(n: int, early_ms: int) -> None:
    """Of 8 ms a step: one stamp close after the one before it was taken for the length of a step."""
    times_ns = 8 * MILLISECOND * np.arange(n, dtype=np.int64)
    times_ns[n // 2] = times_ns[n // 2 - 1] + early_ms * MILLISECOND
    assert missing_samples(times_ns, times_ns, n) == 0
    gone = np.delete(times_ns, [n // 4, n // 4 + 1])
    assert missing_samples(gone, gone, n - 2) == 2
    camera_ns = np.arange(n) * 33_333_333
    camera_ns[n // 3] -= 22_000_000  # 235 pictures of a camera that kept its period but once "lacked" 490 more
    assert missing_samples(camera_ns, camera_ns, n) == 0
