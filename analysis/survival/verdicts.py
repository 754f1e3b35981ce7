"""The verdict on a pair of arms, and many pairs at once: Holm's step-down, families, compact letters, smallest p.

May not: test. It takes p-values, counts and the signs of scalars; the sign of a KS statistic is never among them, since
it can go round in a circle (PhAIL, arXiv 2605.29710, appendix).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

BETTER = "better"
CROSSING = "different, crossing"
UNRANKED = "different, not ranked"
DEPENDS = "depends on object"
OPEN = "not resolved at this N"
ALPHA = 0.05


@dataclass(frozen=True)
class Verdict:
    """`kind` is one of the five; `leads` names the arm only where `kind` is "better"."""

    kind: str
    leads: str | None = None


@dataclass(frozen=True)
class InView:
    """What a direction rests on and what must not speak against it, each turned so that above 0 favours the first arm.

    `time` is the interval of -log(RMST_a / RMST_b), adjusted over the pairs of its family: what the sentence states.
    `values` are the other measures' values, `intervals` theirs and those against the reference; None where unknown.
    """

    time: tuple[float, float] | None
    values: Sequence[float | None] = ()
    intervals: Sequence[tuple[float, float] | None] = ()


def verdict(
    arms: tuple[str, str], p_holm: float | None, seen: InView, *, opposed: bool = False, alpha: float = ALPHA
) -> Verdict | None:
    """Judge a pair: the family's p says whether it differs, an interval of time per item which arm leads.

    Different means p_holm <= alpha. Then: depends on object if the arms lead at different objects, each by a p of its
    own (`opposed`); crossing if two measures' intervals exclude no difference on opposite sides, or the time's excludes
    it and another measure points the other way; better if the time's interval excludes no difference and no measure
    points the other way; else not ranked. None without a p: such a pair was not tested.
    """
    if p_holm is None:
        return None
    if p_holm > alpha:
        return Verdict(OPEN)
    if opposed:
        return Verdict(DEPENDS)
    ahead = _side(seen.time)
    sides = {side for side in (ahead, *map(_side, seen.intervals)) if side}
    against = any(value is not None and ahead * value < 0 for value in seen.values)
    if len(sides) > 1 or against:
        return Verdict(CROSSING)
    if ahead:
        return Verdict(BETTER, arms[0] if ahead > 0 else arms[1])
    return Verdict(UNRANKED)


def _side(interval: tuple[float, float] | None) -> int:
    """1 or -1 where an interval lies wholly above or below 0, else 0."""
    if interval is None:
        return 0
    return (interval[0] > 0) - (interval[1] < 0)


K = TypeVar("K", bound=Hashable)
Two = tuple[str, str]


def holm(p: Mapping[K, float]) -> dict[K, float]:
    """Holm's step-down adjusted p-values (Holm 1979)."""
    order = sorted(p, key=lambda k: (p[k], str(k)))
    out: dict[K, float] = {}
    running = 0.0
    for rank, k in enumerate(order):
        running = max(running, min(1.0, (len(order) - rank) * p[k]))
        out[k] = running
    return out


def holm_errors(p: Mapping[K, float], error: Mapping[K, float]) -> dict[K, float]:
    """Monte-Carlo errors of Holm's adjusted p-values: that of the p which decides each, times how many are left at its
    step; of one that is 1, only how far below it may be.
    """
    order = sorted(p, key=lambda k: (p[k], str(k)))
    out: dict[K, float] = {}
    highest, by = 0.0, 0.0
    for rank, k in enumerate(order):
        left = len(order) - rank
        if left * p[k] >= highest:
            highest, by = left * p[k], left * error[k]
        out[k] = min(by, max(0.0, 1.0 - highest + by))
    return out


def holm_levels(p: Mapping[K, float], alpha: float) -> dict[K, float]:
    """The level that Holm's step-down holds each p to: alpha over how many are left at its step; from the first that it
    does not reject on, that step's. A p is at most its level exactly where its adjusted p is at most alpha.
    """
    adjusted, out = holm(p), dict[K, float]()
    rejected = sum(value <= alpha for value in adjusted.values())
    for rank, k in enumerate(sorted(p, key=lambda k: (p[k], str(k)))):
        out[k] = alpha / (len(p) - min(rank, rejected))
    return out


def holm_by_family(p: Mapping[Two, float], reference: str | None) -> dict[Two, float]:
    """Holm among the pairs of policies and, as a family of their own, among the pairs with the reference."""
    families = {pair: {o: v for o, v in p.items() if of_one_family(pair, o, reference)} for pair in p}
    return {pair: holm(family)[pair] for pair, family in families.items()}


def holm_errors_by_family(
    p: Mapping[Two, float], error: Mapping[Two, float], reference: str | None
) -> dict[Two, float]:
    """Monte-Carlo errors of what `holm_by_family` gives."""
    families = {pair: {o: v for o, v in p.items() if of_one_family(pair, o, reference)} for pair in p}
    return {pair: holm_errors(family, error)[pair] for pair, family in families.items()}


def of_one_family(pair: Two, other: Two, reference: str | None) -> bool:
    """Whether two pairs are adjusted together: pairs with the reference are a family, the others another."""
    return (reference in pair) == (reference in other)


def pairs_of(arms: Sequence[str], reference: str | None) -> list[Two]:
    """Every pair of arms once, the reference first."""
    return list(itertools.combinations(sorted(arms, key=lambda a: (a != reference, a)), 2))


def compact_letters(order: Sequence[str], resolved: Collection[Two]) -> dict[str, str]:
    """Letters such that two arms share one exactly if they are not resolved (Piepho 2004, insert and absorb).

    `order` names the arms, best first; `resolved` holds the pairs, either way round, that differ.
    """
    groups = [set(order)]
    for a, b in sorted(resolved):
        split: list[set[str]] = []
        for group in groups:
            split += [group - {a}, group - {b}] if a in group and b in group else [group]
        groups = [g for i, g in enumerate(split) if not any(g < h or (g == h and j < i) for j, h in enumerate(split))]
    place = {arm: i for i, arm in enumerate(order)}
    groups.sort(key=lambda g: sorted(place[arm] for arm in g))
    names = [chr(ord("a") + i) if i < 26 else f"({i + 1})" for i in range(len(groups))]
    return {arm: "".join(n for n, g in zip(names, groups, strict=True) if arm in g) for arm in order}


def smallest_p(blocks: Sequence[tuple[int, int]], perm: int | None = None) -> float:
    """The smallest two-sided permutation p one pair can reach.

    `blocks` holds (episodes of a, episodes of b) for every block × object. Two relabellings are always as extreme as
    the most extreme one where every block is balanced: itself and its mirror image. With `perm` random swaps, p
    cannot be below 1 / (perm + 1).
    """
    ways = math.prod(math.comb(a + b, a) for a, b in blocks)
    mirrored = 2 if ways > 1 and all(a == b for a, b in blocks) else 1
    exact = mirrored / ways
    return exact if perm is None or ways <= perm else max(exact, 1 / (perm + 1))
