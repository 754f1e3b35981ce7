"""Which numbers of a model of preferences the comparisons leave without bound, of all of them and of those drawn anew.

May not: estimate a strength. What a direction along which the likelihood never falls can move has no value that is
likeliest: it goes on without bound, or nothing tells it from another (A. Albert & J. A. Anderson, Biometrika 71
(1984) 1, for models of this form).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import Interval, percentile

Moves = tuple[bool, bool]
"""Whether something can go down, and up, without the likelihood ever falling."""
FAR = 300.0
"""Stands for a logarithm without bound."""
_FLAT = 1e-3  # information, as of comparisons, below which a replicate does not say how far a direction goes
_CLEAR = 2.0  # how far the fit goes in such a direction where it has a side


class Directions:
    """The directions of all parameters along which no outcome that was seen gets less likely, against any other of its
    cell: design (cells, 3, p), seen (cells, 3).
    """

    def __init__(self, design: Floats, seen: np.ndarray) -> None:
        others = [(one, other) for one in range(3) for other in range(3) if one != other]
        gaps = [design[seen[:, one], one] - design[seen[:, one], other] for one, other in others]
        self._gaps = np.unique(np.concatenate(gaps), axis=0)

    def moves(self, contrast: Floats) -> Moves:
        """Which way such a direction can move a sum of parameters, weighed by `contrast` (p,)."""
        down, up = (self._furthest(sign * contrast) for sign in (-1.0, 1.0))
        return down, up

    def _furthest(self, contrast: Floats) -> bool:
        found = linprog(-contrast, A_ub=-self._gaps, b_ub=np.zeros(len(self._gaps)), bounds=(-1, 1), method="highs")
        return bool(-found.fun > 1e-6)

    def groups(self, arms: list[int], p: int) -> list[list[int]]:
        """The arms by groups within which each strength has its ratio to each other."""
        found: list[list[int]] = []
        for arm in arms:
            own = next((group for group in found if self.apart(arm, group[0], p) == (False, False)), None)
            if own is None:
                found.append([arm])
            else:
                own.append(arm)
        return found

    def apart(self, one: int, other: int, p: int) -> Moves:
        """Which way the strength of one arm can go against that of another."""
        contrast = np.zeros(p)
        contrast[one], contrast[other] = 1.0, -1.0
        return self.moves(contrast)


def ends_of_replicates(found: Floats, information: Floats, worth: Floats) -> tuple[Floats, Floats]:
    """The least and the most that each replicate's comparisons leave: worths (B, k), then the logarithms of both other
    parameters, of which `FAR` and -`FAR` have no bound: (B, k + 2) each.

    found (B, p): fits held by a tiny penalty; information (B, p, p): of the likelihood alone, there; worth (B, k).
    """
    k = worth.shape[1]
    low, high = (np.concatenate([worth, found[:, k:]], axis=1) for _ in range(2))
    values, vectors = np.linalg.eigh(information)
    flat = values < _FLAT  # all worths times the same are one and the same: one such direction says nothing
    rows = np.flatnonzero(flat.sum(axis=1) > 1)
    kept = vectors[rows] * flat[rows][:, None, :]
    onto = kept @ kept.transpose(0, 2, 1)
    gone = np.einsum("bij,bj->bi", onto, found[rows])
    for place in (k, k + 1):
        moved, at = onto[:, place, place] > _FLAT, gone[:, place]
        low[rows, place] = np.where(moved, np.where(at > _CLEAR, FAR, -FAR), found[rows, place])
        high[rows, place] = np.where(moved, np.where(at < -_CLEAR, -FAR, FAR), found[rows, place])
    own = np.diagonal(onto, axis1=1, axis2=2)[:, :k]
    moved = own[:, :, None] + own[:, None, :] - 2 * onto[:, :k, :k] > _FLAT
    ahead = gone[:, :k, None] - gone[:, None, :k]
    unknown = moved & (np.abs(ahead) <= _CLEAR)
    behind = (moved & (ahead < -_CLEAR)).any(axis=2)
    low[rows[:, None], np.arange(k)] = np.where((unknown & ~behind[:, None, :]).any(axis=2), 0.0, worth[rows])
    high[rows[:, None], np.arange(k)] = np.where(unknown.any(axis=2) & ~behind, 1.0, worth[rows])
    return low, high


def interval(low: Floats, high: Floats, level: float) -> Interval | None:
    """The percentile interval of what lies between `low` and `high` in each replicate; None without any spread."""
    if (low == high).all():
        return percentile(low, level)
    return float(np.quantile(low, 0.5 - level / 2)), float(np.quantile(high, 0.5 + level / 2))


def of_logarithms(low: Floats, high: Floats, level: float) -> Interval | None:
    """The same of numbers whose logarithms these are; None where an end has no bound."""
    found = interval(np.exp(low), np.exp(high), level)
    return None if found is None or not np.exp(-FAR / 2) < found[0] <= found[1] < np.exp(FAR / 2) else found
