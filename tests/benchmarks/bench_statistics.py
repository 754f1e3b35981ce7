"""The statistics against named alternatives on one cohort: CPU time of one thread, code already compiled.

Prints seconds and ratios, and checks that all give the same numbers. The alternatives are what a lab would
write: a loop over lifelines' or scipy's Kaplan–Meier; their time is taken from a few replicates and multiplied.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from support.statistics.cohorts import OBJECTS, POLICIES, TAU_NS, cohort

from labctl.analysis.survival import kernel, kernel_reference
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import clusters
from labctl.analysis.survival.curves import NEVER_NS
from labctl.analysis.survival.ks import Pair, pair_of, pooled_draw
from labctl.analysis.survival.permutation import swap_of

pytestmark = pytest.mark.benchmark
REPLICATES = 1000
TAU = TAU_NS / 1e9
BEYOND = 1e9
"""Where the alternatives, which refuse infinite times, are told that a ghost was censored."""


def rmst_lifelines(times: np.ndarray, events: np.ndarray) -> float:
    lifelines = pytest.importorskip("lifelines")
    utils = pytest.importorskip("lifelines.utils")
    return utils.restricted_mean_survival_time(lifelines.KaplanMeierFitter().fit(times, events), t=TAU)


def rmst_scipy(times: np.ndarray, events: np.ndarray) -> float:
    found = stats.ecdf(stats.CensoredData.right_censored(times, ~events)).sf
    inside = found.quantiles < TAU
    grid = np.r_[0.0, found.quantiles[inside], TAU]
    return float((np.diff(grid) * np.r_[1.0, found.probabilities[inside]]).sum())


def curve_lifelines(times: np.ndarray, events: np.ndarray, at: np.ndarray) -> np.ndarray:
    lifelines = pytest.importorskip("lifelines")
    return lifelines.KaplanMeierFitter().fit(times, events).predict(at).to_numpy()


def curve_scipy(times: np.ndarray, events: np.ndarray, at: np.ndarray) -> np.ndarray:
    return stats.ecdf(stats.CensoredData.right_censored(times, ~events)).sf.evaluate(at)


def written_out(cell: Cell, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times in seconds and event flags of a resample, row by row."""
    weights = counts[cell.durations.episode].astype(int)
    ghost = cell.durations.time_ns == NEVER_NS
    times = np.where(ghost, BEYOND, cell.durations.time_ns / 1e9)
    return np.repeat(times, weights), np.repeat(cell.durations.event & ~ghost, weights)


def least(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def line(name: str, seconds: float, ours: float) -> None:
    print(f"  {name:44s} {seconds * 1e3:12.1f} ms {seconds / ours:10.0f} ×")


def test_the_hrt_table() -> None:
    cells = cohort(np.random.default_rng(0), 37)
    groups = clusters(cells, TAU_NS, 0)
    part = range(REPLICATES)

    def table() -> list[kernel.Moments]:
        return [kernel.moments(c.walk, c.draw, part, threads=1) for c in groups]

    start = time.process_time()
    found = table()
    first = time.process_time() - start
    print(
        f"\nHRT table: {sum(len(c.durations.time_ns) for c in cells.values())} operations, {len(cells)} cells, ", end=""
    )
    print(f"{REPLICATES} clustered replicates, each with its own standard error (first call {first:.1f} s)")
    ours = least(table, 9)
    line("labctl, compiled", ours, ours)
    line("labctl, numpy", least(lambda: [kernel_reference.moments(c.walk, c.draw, part) for c in groups], 2), ours)
    for name, rmst, rounds in (
        ("scipy.stats.ecdf", rmst_scipy, 20),
        ("lifelines KaplanMeierFitter", rmst_lifelines, 3),
    ):
        spent = 0.0
        for r in range(rounds):
            for c, values in zip(groups, found, strict=True):
                counts = kernel_reference.weights_of(c.walk, c.draw, range(r, r + 1))[0][0]
                start = time.process_time()
                value = rmst(*written_out(cells[c.keys[0]], counts))
                spent += time.process_time() - start
                assert values.rmst[r, 0] == pytest.approx(value, abs=1e-9)
        line(f"{name}, from {rounds * len(groups)} fits, no error", spent / rounds * REPLICATES, ours)


def test_six_pairs_by_macro_ks() -> None:
    cells = cohort(np.random.default_rng(0), 37)
    pairs = [
        pair_of([cells[a, o] for o in OBJECTS], [cells[b, o] for o in OBJECTS], TAU_NS)
        for a, b in itertools.combinations(POLICIES, 2)
    ]
    part = range(REPLICATES)
    print(f"\nmacro KS: {len(pairs)} pairs, {len(OBJECTS)} objects, {REPLICATES} replicates (48,000 curves)")

    def pooled(values: Callable) -> list:
        return [values(p.walk, pooled_draw(p, 0), part, p.request) for p in pairs]

    found = pooled(kernel.backend().pair_values)
    ours = least(lambda: pooled(kernel.backend().pair_values), 9)
    line("labctl, compiled (and three more statistics)", ours, ours)
    swaps = least(lambda: [kernel.backend().pair_values(p.walk, swap_of(p, 0), part, p.request) for p in pairs], 9)
    line("labctl, compiled, by permutation", swaps, ours)
    line("labctl, numpy", least(lambda: pooled(kernel_reference.pair_values), 1), ours)
    for name, curve, rounds in (
        ("scipy.stats.ecdf", curve_scipy, 4),
        ("lifelines KaplanMeierFitter", curve_lifelines, 1),
    ):
        spent = 0.0
        for r in range(rounds):
            for p, values in zip(pairs, found, strict=True):
                spent += one_replicate(p, cells, curve, r, float(values.sup[r].mean()))
        line(f"{name}, from {rounds * 48} fits", spent / rounds * REPLICATES, ours)


def one_replicate(pair: Pair, cells: dict, curve: Callable, r: int, expected: float) -> float:
    """CPU seconds of one macro KS from curves of a library."""
    weights = kernel_reference.weights_of(pair.walk, pooled_draw(pair, 0), range(r, r + 1))
    spent, sups, start = 0.0, [], 0
    for obj in OBJECTS:
        a, b = cells[pair.a, obj], cells[pair.b, obj]
        both = Cell(**{**a.__dict__, "durations": _joined(a, b)})
        part = slice(start, start + a.episodes + b.episodes)
        begin = time.process_time()
        sides = [written_out(both, w[0, part]) for w in weights]
        at = np.unique(np.concatenate([t[e & (t <= TAU)] for t, e in sides]))
        sups.append(float(np.abs(curve(*sides[0], at) - curve(*sides[1], at)).max()))
        spent += time.process_time() - begin
        start = part.stop
    assert expected == pytest.approx(np.mean(sups), abs=1e-9)
    return spent


def _joined(a: Cell, b: Cell):
    s, t = a.durations, b.durations
    return type(s)(
        np.concatenate((s.time_ns, t.time_ns)),
        np.concatenate((s.event, t.event)),
        np.concatenate((s.episode, t.episode + s.episodes)),
        s.episodes + t.episodes,
    )
