"""The test of the house: swap two arms' labels within block × object, one set of swaps for a family of statistics.

May not: compute an estimator: `ks.py` names the statistics, the kernel computes them under any relabelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.kernel import Given, Request, Swap, pair_values
from labctl.analysis.survival.ks import STATISTICS, TIE, TINY, Pair, log_ratios, statistics
from labctl.analysis.survival.resample import all_swaps, stream_key, swap_count
from labctl.analysis.survival.verdicts import holm


@dataclass(frozen=True)
class PairTest(Result):
    """A pair's observed statistics and two-sided p-values; None where a statistic is undefined.

    `family` is the min-P combination of all defined ones. `object_ratio` and `object_p` are log(RMST_a / RMST_b) and
    its p per object, Holm-adjusted over objects: whether it depends on the object who leads.
    """

    a: str
    b: str
    value: Mapping[str, float | None]
    p: Mapping[str, float | None]
    family: float
    relabellings: int
    enumerated: bool
    object_ratio: Mapping[str, float | None]
    object_p: Mapping[str, float | None]

    def opposed(self, alpha: float) -> bool:
        """Whether a leads at one object and b at another, each by a p at or below alpha."""
        signs = {
            np.sign(ratio)
            for o, ratio in self.object_ratio.items()
            if ratio and (p := self.object_p[o]) is not None and p <= alpha
        }
        return len(signs) > 1


def permutation_test(pair: Pair, seed: int, perm: int) -> PairTest:
    """(b + 1) / (B + 1) over `perm` random swaps, or b / B over all of them where there are no more.

    Values within 1e-9 relative count as ties. The same swaps serve every statistic, so that the family's p, the share
    of relabellings whose smallest p is as small, is one exact test (Westfall & Young 1993, single step).
    """
    found = _values(pair, seed, perm)
    shares = {k: _shares(v) for k, v in found.items() if np.isfinite(v[0])}
    family = [shares[k] for k in STATISTICS if k in shares]
    least = np.min(family, axis=0)
    ratios = {o: found[f"object:{i}"] for i, o in enumerate(pair.objects)}
    by_object = {o: _shares(np.abs(v)) for o, v in ratios.items() if np.isfinite(v[0])}
    adjusted = holm({o: float(v[0]) for o, v in by_object.items()})
    return PairTest(
        pair.a,
        pair.b,
        {k: _finite(found[f"signed:{k}"][0]) for k in STATISTICS},
        {k: float(shares[k][0]) if k in shares else None for k in STATISTICS},
        float((least <= least[0] * (1 + TIE)).mean()),
        len(least),
        _enumerable(pair, perm),
        {o: _finite(v[0]) for o, v in ratios.items()},
        {o: adjusted.get(o) for o in ratios},
    )


def permutation_p(pair: Pair, seed: int, perm: int) -> dict[str, float | None]:
    """The p-values of `permutation_test` alone, the family's among them."""
    found = permutation_test(pair, seed, perm)
    return {**found.p, "family": found.family}


def swap_of(pair: Pair, seed: int) -> Swap:
    """The random swaps of a pair: the same for every statistic that is linear in the labels and for the kernel's."""
    chosen = tuple(int(pair.is_a[s].sum()) for s in pair.strata)
    return Swap(stream_key(seed, "swap", pair.a, pair.b), pair.strata, chosen)


def relabelled(pair: Pair, worth: Floats, seed: int, perm: int) -> Floats:
    """Sum of `worth` [units] over the first arm for every relabelling, the observed one among them.

    The same swaps as `permutation_test` has, carried by the same walk.
    """
    if _enumerable(pair, perm):
        return all_swaps(pair.strata, pair.is_a) @ worth
    request = Request(0, (), worth[:, None])
    drawn = pair_values(pair.walk, swap_of(pair, seed), range(perm), request).sum_a
    return np.concatenate(([float(worth[pair.is_a].sum())], drawn[:, :, 0].sum(axis=1)))


def _enumerable(pair: Pair, perm: int) -> bool:
    return swap_count(pair.strata, pair.is_a) <= perm


def _values(pair: Pair, seed: int, perm: int) -> dict[str, Floats]:
    """Every statistic for every relabelling, the observed one first; signed ones also by their absolute value."""
    if _enumerable(pair, perm):
        labels = all_swaps(pair.strata, pair.is_a)
        given = labels[np.argsort((labels != pair.is_a).any(axis=1), kind="stable")].astype(float)
        walks = [pair_values(pair.walk, Given(given, 1.0 - given), range(len(given)), pair.request)]
    else:
        given = pair.is_a[None, :].astype(float)
        walks = [pair_values(pair.walk, Given(given, 1.0 - given), range(1), pair.request)]
        walks.append(pair_values(pair.walk, swap_of(pair, seed), range(perm), pair.request))
    found = [statistics(w) for w in walks]
    joined = {k: np.concatenate([f[k] for f in found]) for k in STATISTICS}
    ratios = np.concatenate([log_ratios(w) for w in walks])
    return {
        **{k: np.abs(v) for k, v in joined.items()},
        **{f"signed:{k}": v[:1] for k, v in joined.items()},
        **{f"object:{i}": ratios[:, i] for i in range(len(pair.objects))},
    }


def _shares(values: Floats) -> Floats:
    """For every replicate, the share of replicates at least as extreme (itself included; undefined ones count)."""
    comparable = np.where(np.isfinite(values), values, np.inf)
    ordered = np.sort(comparable)
    below = np.searchsorted(ordered, comparable * (1 - TIE) - TINY, side="left")
    return (len(values) - below) / len(values)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
