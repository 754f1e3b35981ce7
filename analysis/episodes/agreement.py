"""Do people agree: two assessors on the same episodes, and guesses of the arm against the truth.

May not: correct a label. It describes two lists of words or counts that stand side by side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from labctl.analysis.results import Result
from labctl.analysis.survival.intervals import LEVEL, Interval, kappa_all_alike
from labctl.analysis.survival.spread import beyond_rounding


@dataclass(frozen=True)
class Agreement(Result):
    """Two assessors of the same `n` episodes: share of identical labels and Cohen's kappa with its interval.

    `kappa` is None where both gave one and the same label throughout: chance alone explains it. Where all labels are
    alike `interval` begins at Clopper and Pearson's bound, and it is None where there is no other spread. `weighted`
    is kappa with quadratic weights for labels that are numbers (items counted), None for words. `disagreements` holds
    the places where they differ.
    """

    n: int
    same: float
    kappa: float | None
    interval: Interval | None
    weighted: float | None
    disagreements: tuple[int, ...]


@dataclass(frozen=True)
class BlindingIndex(Result):
    """Bang's index per arm: 0 is guessing at random, 1 is knowing, below 0 is guessing another; 95 % interval.

    `said` counts the answers given, `unknown` the answers "don't know", which count as neither right nor wrong.
    """

    arm: str
    said: int
    unknown: int
    right: int
    index: float
    interval: Interval | None


def cohens_kappa(first: Sequence[Hashable], second: Sequence[Hashable], level: float = LEVEL) -> Agreement:
    """Cohen (1960), standard error of Fleiss, Cohen & Everitt (1969). Raises ValueError for lists of unequal length."""
    if len(first) != len(second) or not first:
        found = f"{len(first)} and {len(second)} labels"
        raise ValueError(f"{found}; two assessors' labels of the same episodes are needed, at least one")
    labels = sorted(
        set(first) | set(second), key=lambda x: (str(type(x)), x if isinstance(x, (int, float)) else str(x))
    )
    place = {label: i for i, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, ([place[x] for x in first], [place[y] for y in second]), 1)
    n = len(first)
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    same, chance = float(np.trace(p)), float(rows @ columns)
    differing = tuple(i for i, (x, y) in enumerate(zip(first, second, strict=True)) if x != y)
    weighted = _weighted(labels, p, rows, columns)
    if chance >= 1.0:
        return Agreement(n, same, None, None, weighted, differing)
    if not differing:
        return Agreement(n, 1.0, 1.0, kappa_all_alike(n, chance, level), weighted, differing)
    kappa = (same - chance) / (1 - chance)
    diagonal = float((np.diag(p) * (1 - (rows + columns) * (1 - kappa)) ** 2).sum())
    across = (1 - kappa) ** 2 * (p * (columns[:, None] + rows[None, :]) ** 2)
    spread = beyond_rounding(diagonal + float(across.sum() - np.trace(across)) - (kappa - chance * (1 - kappa)) ** 2)
    if not spread:
        return Agreement(n, same, kappa, None, weighted, differing)
    reach = -float(special.ndtri((1 - level) / 2)) * math.sqrt(spread / n) / (1 - chance)
    return Agreement(n, same, kappa, (max(-1.0, kappa - reach), min(1.0, kappa + reach)), weighted, differing)


def bang_index(guesses: Sequence[tuple[str, str | None]], arms: Sequence[str]) -> dict[str, BlindingIndex]:
    """Bang, Ni & Davis (2004), for each arm; `guesses` are (true arm, guess), the guess None for "don't know".

    With k arms a wrong guess takes away 1 / (k - 1), so that guessing at random is 0 in expectation, as for two arms.
    Raises ValueError for a guess that is no arm, or fewer than two arms.
    """
    if len(arms) < 2:
        raise ValueError("one arm cannot be guessed; a blinding index needs two or more")
    strange = sorted({g for _, g in guesses if g is not None and g not in arms})
    if strange:
        raise ValueError(f"guess {strange[0]!r} is no arm; the arms are {', '.join(arms)}")
    out = {}
    for arm in arms:
        mine = Counter(
            "unknown" if g is None else "right" if g == arm else "wrong" for truth, g in guesses if truth == arm
        )
        n = sum(mine.values())
        if not n:
            continue
        worth = {"right": 1.0, "wrong": -1.0 / (len(arms) - 1), "unknown": 0.0}
        index = sum(worth[k] * c for k, c in mine.items()) / n
        spread = beyond_rounding(sum(worth[k] ** 2 * c for k, c in mine.items()) / n - index**2)
        reach = -float(special.ndtri((1 - LEVEL) / 2)) * math.sqrt(spread / n)
        interval = (max(-1.0, index - reach), min(1.0, index + reach)) if spread > 0 else None
        out[arm] = BlindingIndex(arm, n, mine["unknown"], mine["right"], index, interval)
    return out


def _weighted(labels: Sequence[Hashable], p: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> float | None:
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in labels) or len(labels) < 2:
        return None
    value = np.array(labels, dtype=float)
    apart = (value[:, None] - value[None, :]) ** 2
    expected = float((apart * np.outer(rows, columns)).sum())
    return 1.0 - float((apart * p).sum()) / expected if expected > 0 else None
