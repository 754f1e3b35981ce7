"""Statistics of a pair of arms under any relabelling or resampling of its episodes, and the paper's bootstrap p.

Draws no permutation (`permutation.py` does) and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.cells import Cell
from labctl.analysis.hrt import CHUNK
from labctl.analysis.resample import multiplicities, stream_key
from labctl.analysis.survival import Floats, Ints, Spells, Walk, rmst, survival, walk
from labctl.analysis.table import UNKNOWN

STATISTICS = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph")


@dataclass(frozen=True)
class _Object:
    """Both arms' episodes at one object, those of a first; `place` are its grid times within the pair's grid."""

    steps: Walk
    of_a: int
    of_b: int
    columns: slice
    place: Ints


@dataclass(frozen=True)
class Pair:
    """Two arms at the objects both have met, ready for weights [R, episodes of both, object after object]."""

    a: str
    b: str
    objects: tuple[_Object, ...]
    grid_ns: Ints
    tau_ns: int
    horizon_ns: int
    moved: Floats
    seconds: Floats
    is_a: np.ndarray
    strata: tuple[Ints, ...]


def pair_of(a: Sequence[Cell], b: Sequence[Cell], tau_ns: int, *, observed: bool = False) -> Pair:
    """Pool two arms' cells, object by object in the same order; `observed` takes the paper's tails.

    Curves are compared up to the shorter of tau and the shortest budget stated, a horizon that no relabelling moves.
    Strata are block × object, or object where no block is named.
    """
    met = list(zip(a, b, strict=True))
    pooled = [_pool(x.observed, y.observed) if observed else _pool(x.spells, y.spells) for x, y in met]
    walks = [walk(s, s.event_times(tau_ns)) for s in pooled]
    grid = np.unique(np.concatenate([w.grid_ns for w in walks]))
    budgets = np.concatenate([c.budget_ns for c in (*a, *b)])
    stated = budgets[budgets != UNKNOWN]
    objects, strata, start = [], [], 0
    for x, y, steps in zip(a, b, walks, strict=True):
        both = x.episodes + y.episodes
        place = np.searchsorted(grid, steps.grid_ns)
        objects.append(_Object(steps, x.episodes, y.episodes, slice(start, start + both), place))
        strata += [start + s for s in _groups((*x.blocks, *y.blocks))]
        start += both
    ends = np.concatenate([np.concatenate((x.end_ns, y.end_ns)) for x, y in met])
    return Pair(
        a[0].arm,
        b[0].arm,
        tuple(objects),
        grid,
        tau_ns,
        min(tau_ns, int(stated.min())) if len(stated) else tau_ns,
        np.concatenate([np.concatenate((x.moved, y.moved)) for x, y in met]).astype(float),
        np.where(ends == UNKNOWN, np.nan, ends / 1e9),
        np.concatenate([np.repeat([True, False], [x.episodes, y.episodes]) for x, y in met]),
        tuple(strata),
    )


def signed(pair: Pair, weights_a: Floats, weights_b: Floats) -> dict[str, Floats]:
    """The four statistics [R] for episode multiplicities of either side [R, episodes].

    ks_macro = mean_o sup_t |F_a - F_b| (the paper's); ks_sup_mean = sup_t |mean_o (F_a - F_b)|;
    log_rmst_ratio = mean_o log(RMST_a / RMST_b); uph = mean_o of the difference in items per robot-hour.
    The last two keep their sign; they are NaN where undefined.
    """
    compared = pair.grid_ns <= pair.horizon_ns
    jumps = np.zeros((len(weights_a), len(pair.grid_ns)))
    sups, ratios, uphs = [], [], []
    with np.errstate(divide="ignore", invalid="ignore"):
        for o in pair.objects:
            wa, wb = weights_a[:, o.columns], weights_b[:, o.columns]
            sa, sb = survival(o.steps, wa), survival(o.steps, wb)
            gap = sb - sa
            jumps[:, o.place] += np.diff(gap, axis=1, prepend=0.0)
            sups.append(np.abs(gap[:, o.steps.grid_ns <= pair.horizon_ns]).max(axis=1, initial=0.0))
            means = [rmst(s, o.steps.grid_ns, pair.tau_ns) for s in (sa, sb)]
            ratios.append(np.log(means[0] / means[1]))
            moved, seconds = pair.moved[o.columns], pair.seconds[o.columns]
            uphs.append(_rate(wa, moved, seconds) - _rate(wb, moved, seconds))
    path = np.cumsum(jumps, axis=1)[:, compared] / len(pair.objects)
    return {
        "ks_macro": np.mean(sups, axis=0),
        "ks_sup_mean": np.abs(path).max(axis=1, initial=0.0),
        "log_rmst_ratio": np.mean(ratios, axis=0),
        "uph": np.mean(uphs, axis=0),
    }


def observed_statistics(pair: Pair) -> dict[str, float]:
    """The four statistics of the pair as it was."""
    as_was = pair.is_a[None, :].astype(float)
    return {name: float(v[0]) for name, v in signed(pair, as_was, 1.0 - as_was).items()}


def bootstrap_p(pair: Pair, seed: int, boot: int) -> float:
    """The paper's p for ks_macro: both arms redrawn from the pooled episodes of each object; share at or above.

    It over-rejects (.059-.074 at a nominal .05, facts §4.1); `permutation.py` is the test of the house.
    """
    found = observed_statistics(pair)["ks_macro"]
    names = [f"{pair.a}\x1f{pair.b}\x1f{i}" for i in range(len(pair.objects))]
    keys = [(stream_key(seed, "pool", n, "a"), stream_key(seed, "pool", n, "b")) for n in names]

    def redraw(part: range, side: int) -> Floats:
        counts = ((o.of_a, o.of_b)[side] for o in pair.objects)
        return np.concatenate(
            [
                multiplicities(k[side], part, o.of_a + o.of_b, n)
                for o, k, n in zip(pair.objects, keys, counts, strict=True)
            ],
            axis=1,
        )

    values = by_chunk(boot, lambda part: signed(pair, redraw(part, 0), redraw(part, 1))["ks_macro"])
    return float((values >= found * (1 - 1e-9)).mean())


def by_chunk(count: int, statistic: Callable[[range], Floats]) -> Floats:
    """Join the values [count] of `statistic` over consecutive ranges of replicates."""
    return np.concatenate([statistic(range(s, min(s + CHUNK, count))) for s in range(0, count, CHUNK)])


def auc_replicates(arm: Spells, reference: Spells, weights_arm: Floats, weights_reference: Floats, tau: int) -> Floats:
    """P(T_arm < T_reference) up to tau [R], the area under the P-P plot; equal times count one half.

    So do two times that are both beyond tau or infinite (two ghosts): nobody was faster.
    """
    grid = np.union1d(arm.event_times(tau), reference.event_times(tau))
    sa = survival(walk(arm, grid), weights_arm)
    sb = survival(walk(reference, grid), weights_reference)
    mass = np.diff(1.0 - sa, axis=1, prepend=0.0)
    before = np.concatenate((np.ones((len(sb), 1)), sb[:, :-1]), axis=1) if len(grid) else sb
    last = sa[:, -1] * sb[:, -1] if len(grid) else np.ones(len(sa))
    return (mass * (sb + before) / 2).sum(axis=1) + last / 2


def _rate(weights: Floats, moved: Floats, seconds: Floats) -> Floats:
    return 3600.0 * (weights * moved).sum(axis=1) / (weights * seconds).sum(axis=1)


def _pool(a: Spells, b: Spells) -> Spells:
    return Spells(
        np.concatenate((a.time_ns, b.time_ns)),
        np.concatenate((a.event, b.event)),
        np.concatenate((a.episode, b.episode + a.episodes)),
        a.episodes + b.episodes,
    )


def _groups(blocks: Sequence[str]) -> list[Ints]:
    return [np.flatnonzero([b == name for b in blocks]) for name in sorted(set(blocks))]
