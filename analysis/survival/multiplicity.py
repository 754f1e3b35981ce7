"""Many pairs at once: Holm's step-down, families, compact letters, and the smallest p a design can reach.

May not: test anything; it takes p-values and counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

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


def bonferroni(p: Mapping[K, float]) -> dict[K, float]:
    """The paper's adjustment of its logrank tests."""
    return {k: min(1.0, len(p) * v) for k, v in p.items()}


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
