"""How sure a sum is of what units bring to it, by object, where objects are unlike or blocks go over several of them.

May not: know what the parts are of: their linearisation is the caller's, as is the quantile that the degrees of freedom
are for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.survival.clusters import connected
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.spread import NOTHING


@dataclass(frozen=True)
class Summed:
    """The variance that groups which share no unit with others bring to a sum.

    `df` are its degrees of freedom: of one group as stated, of several after Satterthwaite and at most their units less
    one; `most` are the same without regard to which group carries the variance.
    """

    variance: float
    df: float
    most: int


def drawn_whole(blocks: Sequence[str], objects: Ints, cells: Ints, otherwise: Ints) -> Ints:
    """The unit of every episode: its block where that name goes over several objects, else the number `otherwise`.

    The only block of a cell says nothing of how its episodes vary, and so is not taken whole there.
    """
    names, of = np.unique(np.array(blocks), return_inverse=True)
    whole = ((_met(of, objects) > 1) & (names != ""))[of] & (_met(cells, of) > 1)[cells]
    return np.unique(np.where(whole, of, len(names) + otherwise), return_inverse=True)[1]


def for_a_mean(count: Ints) -> Floats:
    """What parts about a mean of so many are multiplied by for the mean that was estimated."""
    return np.sqrt(count / np.maximum(count - 1, 1))


def summed(parts: Floats, group: Ints, freedom: Ints, unit: Ints, size: Floats) -> list[Summed]:
    """The variance of the sum of `parts` [episodes], each about its group's mean, for every set of joined groups.

    Parts of one unit are added, over the groups too, before they are squared. `freedom` [groups] are the degrees of
    freedom of each group's own; what is rounding beside the square of its `size` [groups] is none.
    """
    groups = len(freedom)
    cells, cell = np.unique(group * (int(unit.max()) + 1) + unit, return_inverse=True)
    at, of = np.divmod(cells, int(unit.max()) + 1)
    held = np.bincount(cell, parts)
    own = np.bincount(at, held**2, minlength=groups)
    own = np.where(own > NOTHING * size**2, own, 0.0)
    out = []
    for joined in _joined(at, of, groups):
        here = np.isin(at, joined) & (own[at] > 0)
        added = np.bincount(of[here], held[here])
        found, pooled = float((added**2).sum()), int(freedom[joined].sum())
        if len(joined) == 1:
            out.append(Summed(found, pooled, pooled))
            continue
        most = len(np.unique(of[np.isin(at, joined)])) - 1
        df = satterthwaite(zip(own[joined].tolist(), freedom[joined].tolist(), strict=True))
        out.append(Summed(found if found > NOTHING * own[joined].sum() else 0.0, min(df, most), min(pooled, most)))
    return out


def satterthwaite(parts: Iterable[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of independent variances, each with its own: (sum v)^2 / sum(v^2 / df).

    F. E. Satterthwaite, Biometrics Bull. 2 (1946) 110; of two means B. L. Welch's (Biometrika 34 (1947) 28). A variance
    without a degree of freedom counts as one of one; 0 where none has any, or there is no variance.
    """
    known = [(v, df) for v, df in parts if v > 0]
    if not any(df > 0 for _, df in known):
        return 0.0
    return math.fsum(v for v, _ in known) ** 2 / math.fsum(v**2 / max(df, 1.0) for v, df in known)


def _met(one: Ints, other: Ints) -> Ints:
    """With how many of `other` each of `one` stands in a row."""
    count = int(other.max()) + 1
    return np.bincount(np.unique(one * count + other) // count, minlength=int(one.max()) + 1)


def _joined(at: Ints, of: Ints, groups: int) -> list[list[int]]:
    """Sets of groups that share units, directly or through others."""
    if len(np.unique(of)) == len(of):
        return [[g] for g in range(groups)]
    units = {("", str(g)): {str(u) for u in of[at == g].tolist()} for g in range(groups)}
    return [[int(g) for _, g in members] for members in connected(units)]
