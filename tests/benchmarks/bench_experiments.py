"""The paper's detection-rate experiment in full, cost up to a million operations, and the memory both take."""

from __future__ import annotations

import itertools
import resource
import time

import numpy as np
import pytest
from support.statistics.cohorts import DISTRIBUTIONS, OBJECTS, POLICIES, TAU_NS, cohort

from labctl.analysis.planning.distributions import simulate
from labctl.analysis.planning.experiments import METRICS, Experiment
from labctl.analysis.survival.event_order import event_order
from labctl.analysis.survival.kernel import Redraw, moments
from labctl.analysis.survival.resample import stream_key

pytestmark = [pytest.mark.benchmark, pytest.mark.limit(86_400)]
SIZES = (5, 10, 15, 20, 25, 30)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_the_whole_detection_rate_experiment() -> None:
    cells = cohort(np.random.default_rng(0), 37)
    sides = {arm: [cells[arm, o] for o in OBJECTS] for arm in POLICIES}
    Experiment(2, 20).detection(sides["m1"], sides["m2"], 5)
    wall, cpu = time.perf_counter(), time.process_time()
    for a, b in itertools.combinations(POLICIES, 2):
        found = [Experiment(300, 200).detection(sides[a], sides[b], size) for size in SIZES]
        print(f"\n{a} v {b}", {m: [round(one.share[m][1], 2) for one in found] for m in METRICS}, end="")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"\n300 x 200 x 6 pairs x 6 sizes, four metrics: {wall:.1f} s wall, {cpu:.1f} s CPU, peak {peak_mb():.0f} MB")


def test_cost_up_to_a_million_operations() -> None:
    print()
    for episodes in (2_000, 20_000, 200_000):
        durations = simulate(DISTRIBUTIONS["m1"], episodes, np.random.default_rng(1)).durations
        start = time.process_time()
        walk = event_order([durations], TAU_NS)
        laid = time.process_time() - start
        draw = Redraw((stream_key(0, "bench"),), (episodes,))
        moments(walk, draw, range(16), threads=1)
        start = time.process_time()
        moments(walk, draw, range(32), threads=1)
        spent = time.process_time() - start
        rows = len(durations.time_ns)
        print(
            f"  {rows:9d} operations: sorted once {laid * 1e3:8.1f} ms, {spent / 32 * 1e3:8.3f} ms per replicate, ",
            end="",
        )
        print(f"{spent / 32 / rows * 1e9:5.1f} ns per operation, peak {peak_mb():.0f} MB")
