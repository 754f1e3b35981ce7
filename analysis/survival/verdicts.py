"""The verdict on a pair of arms, and many pairs at once: Holm's step-down, families, compact letters, smallest p.

May not: test. It takes p-values, counts and the signs of scalars; the sign of a KS statistic is never among them, since
it can go round in a circle (PhAIL, arXiv 2605.29710, appendix).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from labctl.analysis.results import Result

BETTER = "better"
CROSSING = "different, crossing"
DEPENDS = "depends on object"
OPEN = "not resolved at this N"
ALPHA = 0.05


@dataclass(frozen=True)
class Verdict(Result):
    """`kind` is one of the four; `leads` names the arm only where `kind` is "better"."""

    a: str
    b: str
    kind: str
    leads: str | None
    p_holm: float


def verdict(
    arms: tuple[str, str],
    p_holm: float | None,
    favours_a: Sequence[float | None],
    *,
    opposed: bool = False,
    alpha: float = ALPHA,
) -> Verdict | None:
    """Judge a pair. Each of `favours_a` is above 0 where the first arm did better, None where it is unknown.

    Resolved means p_holm <= alpha. Then: depends on object if the arms lead at different objects, each by a p of its
    own (`opposed`); better if every scalar favours the same arm; else different, crossing. None without a p or a
    scalar: such a pair was not tested.
    """
    known = [s for s in favours_a if s is not None]
    if p_holm is None or not known:
        return None
    if p_holm > alpha:
        return Verdict(*arms, OPEN, None, p_holm)
    if opposed:
        return Verdict(*arms, DEPENDS, None, p_holm)
    if all(s > 0 for s in known) or all(s < 0 for s in known):
        return Verdict(*arms, BETTER, arms[0] if known[0] > 0 else arms[1], p_holm)
    return Verdict(*arms, CROSSING, None, p_holm)


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


def holm_by_family(p: Mapping[Two, float], reference: str | None) -> dict[Two, float]:
    """Holm among the pairs of policies and, as a family of their own, among the pairs with the reference."""
    families: Sequence[dict[Two, float]] = (
        {pair: value for pair, value in p.items() if reference in pair},
        {pair: value for pair, value in p.items() if reference not in pair},
    )
    return {pair: value for family in families for pair, value in holm(family).items()}


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
