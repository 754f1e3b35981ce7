"""The paper's two experiments on a cohort: detection rate against N, and rejections under no difference.

May not: stand for a simulation or be called power. Subsampling a finite cohort without replacement goes to 0 or 1 near
its size whatever the truth (facts §4.2); `CAVEAT` states it and is printed with every curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.event_order import thinned
from labctl.analysis.survival.kernel import Given, PairValues, Pool, Request, backend, spread
from labctl.analysis.survival.ks import TIE, TINY, Pair, pair_of
from labctl.analysis.survival.resample import random_swaps, stream_key
from labctl.analysis.table import NS

METRICS = ("F(30)", "F(60)", "RMST", "KS")
CAVEAT = (
    "subsamples of one finite cohort: near its size a curve goes to 0 or 1 whatever the truth, so this is not power"
)
AT_ONCE = 8


@dataclass(frozen=True)
class Detection(Result):
    """Share of subsamples in which a metric's p is at or below alpha: `rate[metric]` [sizes], for one pair of arms."""

    a: str
    b: str
    sizes: tuple[int, ...]
    rate: Mapping[str, Floats]
    outer: int
    inner: int
    caveat: str = CAVEAT


def detection_rate(
    a: Sequence[Cell],
    b: Sequence[Cell],
    sizes: Sequence[int],
    *,
    outer: int = 300,
    inner: int = 200,
    tau_s: float = 120.0,
    alpha: float = 0.05,
    seed: int = 0,
    threads: int | None = None,
) -> Detection:
    """How often two arms are told apart by each metric if only N episodes per arm and object had been run.

    `outer` subsamples without replacement, `inner` pooled resamples each, p = b / B as in the paper, macro means over
    objects, tau = 120 s. Raises ValueError for a size larger than the smallest cell.
    """
    pair = pair_of(a, b, round(tau_s * NS), observed=True)
    small = int(min(pair.of_a.min(), pair.of_b.min()))
    if max(sizes) > small:
        raise ValueError(f"the smallest cell has {small} episodes; {max(sizes)} cannot be taken from it")
    rate = {m: np.empty(len(sizes)) for m in METRICS}
    for i, size in enumerate(sizes):
        halves = [np.full(len(a), size)] * 2
        found = _rejections(pair, halves, f"detect {size}", outer, inner, alpha, seed, threads)
        for j, m in enumerate(METRICS):
            rate[m][i] = found[:, j].mean()
    return Detection(pair.a, pair.b, tuple(sizes), rate, outer, inner)


def null_rate(
    cells: Sequence[Cell],
    *,
    outer: int = 500,
    inner: int = 500,
    tau_s: float = 120.0,
    alpha: float = 0.05,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, float]:
    """How often the paper's tests tell two random disjoint halves of one arm apart; nominally alpha.

    The paper saw .060 on average for KS and .078 at most; .067 and .088 on simulated cohorts (facts §4.1).
    """
    halves = [c.episodes // 2 for c in cells]
    pair = pair_of(cells, cells, round(tau_s * NS), observed=True)
    found = _rejections(pair, [np.array(halves)] * 2, "halves", outer, inner, alpha, seed, threads, halved=True)
    return {m: float(found[:, j].mean()) for j, m in enumerate(METRICS)}


def _rejections(
    pair: Pair,
    sizes: Sequence[np.ndarray],
    name: str,
    outer: int,
    inner: int,
    alpha: float,
    seed: int,
    threads: int | None,
    *,
    halved: bool = False,
) -> np.ndarray:
    """Whether each metric rejects in each subsample [outer, metrics].

    With `halved` both arms are the same cells: what is not taken for the first half makes the second, and the pair's
    second copy of the episodes is left out.
    """
    first, strata_a, strata_b = 0, [], []
    for n, m in zip(pair.of_a, pair.of_b, strict=True):
        strata_a.append(np.arange(first, first + n))
        strata_b.append(np.arange(first + n, first + n + m))
        first += int(n + m)
    units, key = pair.walk.units, stream_key(seed, name, pair.a, pair.b)
    every = range(outer)
    in_a = random_swaps(key, every, strata_a, [int(n) for n in sizes[0]], units)
    if halved:
        counts = [2 * int(n) for n in sizes[0]]
        both = random_swaps(key, every, strata_a, counts, units)  # the same first draws, then as many more
        in_b = both & ~in_a
    else:
        in_b = random_swaps(stream_key(seed, name, pair.b, pair.a), every, strata_b, [int(n) for n in sizes[1]], units)

    def some(part: range) -> np.ndarray:
        return np.array([_one(pair, in_a[i], in_b[i], sizes, f"{name} {i}", inner, alpha, seed) for i in part])

    parts = [range(s, min(s + AT_ONCE, outer)) for s in range(0, outer, AT_ONCE)]
    return np.concatenate(spread(some, parts, threads))


def _one(
    pair: Pair,
    in_a: np.ndarray,
    in_b: np.ndarray,
    sizes: Sequence[np.ndarray],
    name: str,
    inner: int,
    alpha: float,
    seed: int,
) -> list[bool]:
    kept = in_a | in_b
    walk = thinned(pair.walk, kept)
    request = Request(walk.steps_until(pair.horizon_ns), (walk.steps_until(30 * NS), walk.steps_until(60 * NS)))
    labels = in_a[kept][None, :].astype(float)
    one, other = (stream_key(seed, name, pair.a, pair.b, side) for side in "ab")
    kernel = backend()
    found = _metrics(kernel.pair_values(walk, Given(labels, 1.0 - labels), range(1), request))
    drawn = _metrics(kernel.pair_values(walk, Pool(one, other, *sizes), range(inner), request))
    p = (drawn >= found * (1 - TIE) - TINY).mean(axis=0)
    return (p <= alpha).tolist()


def _metrics(found: PairValues) -> Floats:
    """The paper's four metrics [R, 4], macro means over objects, unsigned."""
    reads = np.abs((found.read_a - found.read_b).mean(axis=1))
    rmst = np.abs((found.rmst_a - found.rmst_b).mean(axis=1))
    return np.column_stack((reads, rmst, found.sup.mean(axis=1)))
