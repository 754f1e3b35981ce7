"""The test of the house: swap two arms' labels within block × object, one set of swaps for a family of statistics.

Knows no estimator: `ks.signed` gives the statistics of any relabelling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from labctl.analysis.ks import CHUNK, STATISTICS, Pair, signed
from labctl.analysis.resample import all_swaps, random_swaps, stream_key, swap_count
from labctl.analysis.survival import Floats


def permutation_p(pair: Pair, seed: int, perm: int) -> dict[str, float | None]:
    """p of every statistic and of their min-P combination ("family"), two-sided.

    (b + 1) / (B + 1) over `perm` random swaps, or b / B over all of them where there are no more; values within 1e-9
    relative count as ties. An undefined statistic (no clock for uph) is None and left out of the family.
    """
    if swap_count(pair.strata, pair.is_a) <= perm:
        labels = all_swaps(pair.strata, pair.is_a)
        first = int(np.flatnonzero((labels == pair.is_a).all(axis=1))[0])
        found = _values(pair, labels)
        found = {k: np.concatenate((v[first : first + 1], np.delete(v, first))) for k, v in found.items()}
    else:
        key = stream_key(seed, "swap", pair.a, pair.b)
        parts = [_values(pair, pair.is_a[None, :])]
        for start in range(0, perm, CHUNK):
            part = range(start, min(start + CHUNK, perm))
            parts.append(_values(pair, random_swaps(key, part, pair.strata, pair.is_a)))
        found = {k: np.concatenate([p[k] for p in parts]) for k in STATISTICS}
    shares = {k: _shares(v) for k, v in found.items() if np.isfinite(v[0])}
    out: dict[str, float | None] = {k: float(shares[k][0]) if k in shares else None for k in STATISTICS}
    least = np.min(list(shares.values()), axis=0)
    return {**out, "family": float((least <= least[0] * (1 + 1e-9)).mean())}


def holm(p: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Holm's step-down adjusted p-values."""
    order = sorted(p, key=lambda pair: (p[pair], pair))
    out, running = {}, 0.0
    for rank, pair in enumerate(order):
        running = max(running, min(1.0, (len(order) - rank) * p[pair]))
        out[pair] = running
    return out


def holm_by_family(p: Mapping[tuple[str, str], float], reference: str | None) -> dict[tuple[str, str], float]:
    """Holm among the pairs of policies and, as a family of their own, among the pairs with the reference."""
    families: Sequence[dict[tuple[str, str], float]] = (
        {pair: value for pair, value in p.items() if reference in pair},
        {pair: value for pair, value in p.items() if reference not in pair},
    )
    return {pair: value for family in families for pair, value in holm(family).items()}


def _values(pair: Pair, labels: np.ndarray) -> dict[str, Floats]:
    found: dict[str, list[Floats]] = {k: [] for k in STATISTICS}
    for start in range(0, len(labels), CHUNK):
        part = labels[start : start + CHUNK].astype(float)
        for name, value in signed(pair, part, 1.0 - part).items():
            found[name].append(np.abs(value))
    return {k: np.concatenate(v) for k, v in found.items()}


def _shares(values: Floats) -> Floats:
    """For every replicate, the share of replicates at least as extreme (itself included; undefined ones count)."""
    comparable = np.where(np.isfinite(values), values, np.inf)
    ordered = np.sort(comparable)
    below = np.searchsorted(ordered, comparable * (1 - 1e-9), side="left")
    return (len(values) - below) / len(values)
