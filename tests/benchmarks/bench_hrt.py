"""HRT table with 1000 clustered replicates, against a loop over lifelines fits extrapolated from 40.

Prints CPU seconds and the ratio; the only thing it insists on is that both give the same RMST.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from labctl.analysis.hrt import hrt_replicates, rmst_replicates
from labctl.analysis.resample import multiplicities, stream_key
from labctl.analysis.survival import Spells

NS = 1_000_000_000
TAU_S = 240
BOOT = 1000
FITS = 40
ARMS = {"human": (99, 10.0), "m1": (37, 77.0), "m2": (37, 76.0), "m3": (37, 99.0), "m4": (37, 165.0)}


def cell(rng: np.random.Generator, episodes: int, scale: float) -> Spells:
    """Exponential operations with a frailty per episode (sd .55), one pool of 240 s, at most 8 items (facts §3)."""
    time_ns, event, episode = [], [], []
    for e in range(episodes):
        left, mean = float(TAU_S), scale * np.exp(0.55 * rng.standard_normal())
        for _ in range(8):
            t = rng.exponential(mean)
            time_ns.append(round(min(t, left) * NS))
            event.append(t <= left)
            episode.append(e)
            left -= t
            if left <= 0:
                break
    return Spells(np.array(time_ns), np.array(event), np.array(episode), episodes)


@pytest.mark.benchmark
def test_hrt_table_against_a_lifelines_loop() -> None:
    lifelines = pytest.importorskip("lifelines")
    utils = pytest.importorskip("lifelines.utils")
    rng = np.random.default_rng(0)
    cells = {(arm, o): cell(rng, *shape) for arm, shape in ARMS.items() for o in range(4)}
    keys = {k: stream_key(0, "boot", k[0], str(k[1])) for k in cells}

    start = time.process_time()
    means = {k: rmst_replicates(c, keys[k], BOOT, TAU_S * NS) for k, c in cells.items()}
    tables = {a: hrt_replicates([means["human", o] for o in range(4)], [means[a, o] for o in range(4)]) for a in ARMS}
    ours = time.process_time() - start

    each = []
    for i, (k, c) in enumerate(list(cells.items()) * (FITS // len(cells))):
        counts = multiplicities(keys[k], range(i, i + 1), c.episodes, c.episodes)[0]
        weights = counts[c.episode].astype(int)
        times, events = np.repeat(c.time_ns / NS, weights), np.repeat(c.event, weights)
        begin = time.process_time()
        fit = lifelines.KaplanMeierFitter().fit(times, events)
        value = utils.restricted_mean_survival_time(fit, t=TAU_S)
        each.append(time.process_time() - begin)
        assert means[k][i] == pytest.approx(value, abs=1e-9)
    theirs = float(np.mean(each)) * BOOT * len(cells)
    operations = sum(len(c.time_ns) for c in cells.values())
    print(f"\nHRT table, {operations} operations, {len(tables)} arms, {BOOT} clustered replicates, CPU time")
    print(f"  labctl.analysis (numpy)       {ours * 1e3:10.0f} ms")
    print(f"  lifelines, from {len(each)} fits      {theirs * 1e3:10.0f} ms")
    print(f"  ratio                         {theirs / ours:10.0f}")
