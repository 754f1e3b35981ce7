"""The default test: exchange two arms' labels as the schedule could have, one set of them for all statistics.

May not: compute an estimator: `ks.py` and `studentised.py` name the statistics, the kernel computes them under any
relabelling, and `resample.py` says which there are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labctl.analysis.family import STATISTICS
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.kernel import (
    LANES,
    Given,
    Moments,
    PairValues,
    Request,
    Swap,
    moments,
    pair_values,
    together,
)
from labctl.analysis.survival.ks import BROUGHT, TIE, TINY, Pair, statistics
from labctl.analysis.survival.resample import (
    BY_BLOCK,
    BY_DESIGN,
    BY_EPISODE,
    all_swaps,
    design_labels,
    stream_key,
    ways_of,
)
from labctl.analysis.survival.studentised import (
    both_roles,
    hourly_difference,
    in_errors,
    log_ratio_errors,
    log_ratios_of,
    two_roles,
)
from labctl.analysis.survival.verdicts import holm, holm_errors

Labels = Callable[[range], NDArray[np.bool_]]
"""The labels of these replicates [replicates, units]: whether each unit is the first arm's."""
FITTING, FEWEST = 1 << 20, 1024
"""Labels that are laid out at once (8 bytes each, in several arrays), and the replicates that are so at least."""


@dataclass(frozen=True)
class PairTest(Result):
    """A pair's observed statistics and two-sided p-values; None where a statistic is undefined.

    `family` is the min-P combination of those of the family that are defined, None if none is. `object_ratio` and
    `object_p` are log(RMST_a / RMST_b) and its p per object, Holm-adjusted over objects: whether it depends on the
    object who leads. p-values of signed statistics are of the statistic in units of its standard error.
    `relabelled_by` says where the relabellings come from (`resample.py`). `error` and each `_error` is the Monte-Carlo
    error of a p, 0 where every relabelling was listed.
    """

    a: str
    b: str
    value: Mapping[str, float | None]
    p: Mapping[str, float | None]
    family: float | None
    relabellings: int
    relabelled_by: str
    object_ratio: Mapping[str, float | None]
    object_p: Mapping[str, float | None]
    error: Mapping[str, float | None]
    family_error: float | None
    object_error: Mapping[str, float | None]

    def opposed(self, alpha: float) -> bool:
        """Whether a leads at one object and b at another, each by a p at or below alpha."""
        signs = {
            np.sign(ratio)
            for o, ratio in self.object_ratio.items()
            if ratio and (p := self.object_p[o]) is not None and p <= alpha
        }
        return len(signs) > 1


@dataclass(frozen=True)
class Relabelled:
    """Values of both arms, and moments of the two roles, under every relabelling; the observed one first."""

    walks: list[PairValues]
    roles: list[Moments]

    @property
    def sums(self) -> tuple[Floats, Floats]:
        """Over each arm and object, of what episodes bring besides what a pair's do [R, objects, columns]."""
        of_a, of_b = (
            [v[:, :, BROUGHT:] for v in side] for side in zip(*((w.sum_a, w.sum_b) for w in self.walks), strict=True)
        )
        return np.concatenate(of_a), np.concatenate(of_b)


def relabellings(pair: Pair, seed: int, perm: int, worth: Floats | None = None) -> Relabelled:
    """One set of relabellings for all that a pair is tested by; `worth` [units, columns] is summed by arm as well."""
    doubled, request = two_roles(pair), pair.request
    if worth is not None:
        request = replace(request, brought=np.column_stack((request.brought, worth)))
    walks, roles = [], []
    for draw, replicates in _draws(pair, seed, perm):
        of_walk, of_roles = [], []
        for labels, part, threads in _pieces(draw, replicates, len(pair.is_a)):
            of_walk.append(pair_values(pair.walk, labels, part, request, threads=threads))
            of_roles.append(moments(doubled, both_roles(labels), part, threads=threads))
        walks.append(together(of_walk))
        roles.append(together(of_roles))
    return Relabelled(walks, roles)


def permutation_test(
    pair: Pair, seed: int, perm: int, family: Sequence[str] = STATISTICS, made: Relabelled | None = None
) -> PairTest:
    """(b + 1) / (B + 1) over `perm` random relabellings, or b / B over all of them where there are no more.

    Values within 1e-9 relative count as ties. The same relabellings serve every statistic, so that the family's p, the
    share of them whose smallest p is as small, is one exact test (Westfall & Young 1993, single step). `family` names
    the statistics that are in it; `made` are `relabellings` of the pair by that seed, where something else needs them.
    """
    made = made or relabellings(pair, seed, perm)
    walks, roles = made.walks, made.roles
    found = [statistics(w) for w in walks]
    ratios = log_ratios_of(roles[0])[0]
    value = {k: _finite(found[0][k][0]) for k in STATISTICS} | {"log_rmst_ratio": _finite(ratios.mean())}
    errors = [log_ratio_errors(pair, m) for m in roles]
    hourly = [in_errors(*hourly_difference(pair, w.sum_a, w.sum_b)) for w in walks]
    tested = {k: np.concatenate([f[k] for f in found]) for k in ("ks_macro", "ks_sup_mean")}
    tested["log_rmst_ratio"] = np.concatenate([macro for macro, _ in errors])
    tested["uph"] = np.concatenate(hourly)
    shares = {k: _shares(np.abs(tested[k])) for k in STATISTICS if value[k] is not None}
    members = [shares[k] for k in family if k in shares]
    least = np.min(members, axis=0) if members else None
    by_object = np.concatenate([objects for _, objects in errors])
    known = [i for i in range(len(pair.objects)) if np.isfinite(ratios[i])]
    each = {pair.objects[i]: share_at_least(by_object[:, i]) for i in known}
    adjusted, off = holm(each), holm_errors(each, {o: p_error(pair, perm, p) for o, p in each.items()})
    p = {k: float(shares[k][0]) if k in shares else None for k in STATISTICS}
    combined = None if least is None else float((least <= least[0] * (1 + TIE)).mean())
    return PairTest(
        pair.a,
        pair.b,
        value,
        p,
        combined,
        len(tested["uph"]),
        relabelled_by(pair),
        {o: _finite(ratio) for o, ratio in zip(pair.objects, ratios, strict=True)},
        {o: adjusted.get(o) for o in pair.objects},
        {k: None if v is None else p_error(pair, perm, v) for k, v in p.items()},
        None if combined is None else p_error(pair, perm, combined),
        {o: off.get(o) for o in pair.objects},
    )


def permutation_p(pair: Pair, seed: int, perm: int) -> dict[str, float | None]:
    """The p-values of `permutation_test` alone, the family's among them."""
    found = permutation_test(pair, seed, perm)
    return {**found.p, "family": found.family}


def swap_of(pair: Pair, seed: int) -> Swap:
    """The random free swaps of a pair: the same for every statistic, linear in the labels or not."""
    return Swap(stream_key(seed, "swap", pair.a, pair.b), pair.strata, tuple(_of_a(pair)))


def _of_a(pair: Pair) -> list[int]:
    """How many units of every stratum are the first arm's."""
    starts = np.cumsum([0, *(len(s) for s in pair.strata)])[:-1]
    return np.add.reduceat(pair.is_a[np.concatenate(pair.strata)].astype(int), starts).tolist()


def relabelled(pair: Pair, worth: Floats, seed: int, perm: int) -> tuple[Floats, Floats]:
    """Sums of `worth` [units, columns] over each arm and object, [R, objects, columns], for every relabelling.

    The observed labels come first, and the relabellings are those of `permutation_test`, carried by the same walk.
    """
    request = Request(0, (), worth)
    walks = [
        pair_values(pair.walk, labels, part, request, threads=threads)
        for draw, replicates in _draws(pair, seed, perm)
        for labels, part, threads in _pieces(draw, replicates, len(pair.is_a))
    ]
    return np.concatenate([w.sum_a for w in walks]), np.concatenate([w.sum_b for w in walks])


def relabelled_by(pair: Pair) -> str:
    """Where a pair's relabellings come from: its schedule, or free swaps within blocks or among all episodes."""
    return BY_DESIGN if pair.exchanges else BY_BLOCK if any(pair.blocks) else BY_EPISODE


def share_at_least(values: Floats) -> float:
    """Two-sided p of signed values [R], the observed first."""
    comparable = _comparable(np.abs(values))
    return float((comparable >= comparable[0] * (1 - TIE) - TINY).mean())


def p_error(pair: Pair, perm: int, p: float) -> float:
    """Monte-Carlo error of a p of the pair from `perm` random relabellings, 0 where they are all listed."""
    return 0.0 if _enumerable(pair, perm) else share_error(p, perm + 1)


def _enumerable(pair: Pair, perm: int) -> bool:
    if pair.exchanges:
        return ways_of(pair.exchanges) <= perm
    ways = 1
    for count, size in zip(_of_a(pair), map(len, pair.strata), strict=True):
        ways *= math.comb(size, count)
        if ways > perm:
            return False
    return True


def _draws(pair: Pair, seed: int, perm: int) -> list[tuple[Labels | Swap, range]]:
    """The labels of every relabelling, the observed ones first."""
    if _enumerable(pair, perm):
        if pair.exchanges:
            labels = design_labels(pair.exchanges, pair.blocks, pair.is_a, np.uint64(0))
        else:
            labels = all_swaps(pair.strata, pair.is_a)
            labels = labels[np.argsort((labels != pair.is_a).any(axis=1), kind="stable")]
        return [(lambda part: labels[part.start : part.stop], range(len(labels)))]
    observed = (lambda part: pair.is_a[None, :], range(1))
    if not pair.exchanges:
        return [observed, (swap_of(pair, seed), range(perm))]
    key = stream_key(seed, "schedule", pair.a, pair.b)
    return [observed, (lambda part: design_labels(pair.exchanges, pair.blocks, pair.is_a, key, part), range(perm))]


def _pieces(draw: Labels | Swap, replicates: range, units: int) -> Iterator[tuple[Given | Swap, range, int | None]]:
    """Labels of these replicates, which of them those are, and on how many threads they are worth walking (None: as the
    kernel has it). So many at a time that they fit in memory, however many units there are; what is drawn in the walk
    needs no room.
    """
    if isinstance(draw, Swap):
        yield draw, replicates, None
        return
    size = max(FEWEST, FITTING // max(units, 1) // LANES * LANES)
    threads = None if len(replicates) <= size else os.cpu_count() or 1
    for start in range(replicates.start, replicates.stop, size):
        part = range(start, min(start + size, replicates.stop))
        yield _given(draw(part)), range(len(part)), threads


def _given(labels: NDArray[np.bool_]) -> Given:
    first = labels.astype(np.float64)
    return Given(first, np.subtract(1.0, first, dtype=np.float64))


def _shares(values: Floats) -> Floats:
    """For every replicate, the share of replicates at least as extreme (itself included; undefined ones count)."""
    comparable = _comparable(values)
    order = np.argsort(comparable)
    ordered = comparable[order]
    out = np.empty(len(values))
    # sorted needles are found many times as fast as any others
    out[order] = len(values) - np.searchsorted(ordered, ordered * (1 - TIE) - TINY, side="left")
    return out / len(values)


def _comparable(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.inf)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
