"""Every arm of a block against every other at once: Friedman's and Cochran's tests, ranks with their intervals.

May not: choose which blocks or values; it takes complete blocks as a grid [blocks, arms].
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from scipy import stats

from labctl.analysis.survival.curves import Floats

Test = tuple[float | None, float | None]
"""A chi-square and its p; None for both where nothing is left to test."""


def friedman(grid: Floats) -> Test:
    """Friedman's test with mid-ranks and its correction for ties (Conover 1999, 5.8); chi-square on columns - 1.

    Of no blocks, or fewer than two columns, or where every block ties throughout: None.
    """
    if len(grid) < 1 or grid.shape[1] < 2:
        return None, None
    blocks, columns = grid.shape
    ranks = stats.rankdata(grid, axis=1)
    spread = float((ranks**2).sum()) - blocks * columns * (columns + 1) ** 2 / 4
    if spread <= 0:
        return None, None
    between = float(((ranks.sum(axis=0) - blocks * (columns + 1) / 2) ** 2).sum())
    return _judged((columns - 1) * between / spread, columns - 1)


def cochran(grid: Floats) -> Test:
    """Cochran's Q of successes 0 or 1 (Cochran, Biometrika 37 (1950) 256); chi-square on columns - 1.

    None where every block succeeds, or fails, with every arm.
    """
    if len(grid) < 1 or grid.shape[1] < 2:
        return None, None
    columns = grid.shape[1]
    of_arm, of_block, total = grid.sum(axis=0), grid.sum(axis=1), float(grid.sum())
    spread = columns * total - float((of_block**2).sum())
    if spread <= 0:
        return None, None
    between = columns * float((of_arm**2).sum()) - total**2
    return _judged((columns - 1) * between / spread, columns - 1)


def by_position(grid: Floats, position: Floats) -> Floats:
    """The values in the order they ran [blocks, columns], of the blocks whose positions are 1 to the number of arms."""
    columns = grid.shape[1]
    whole = (np.sort(position, axis=1) == np.arange(1, columns + 1)).all(axis=1)
    return np.take_along_axis(grid[whole], np.argsort(position[whole], axis=1), axis=1)


def ranked(value: Mapping[str, float | None]) -> dict[str, int | None]:
    """1 for the highest, and so on; equals share the better rank."""
    known = [v for v in value.values() if v is not None]
    return {arm: None if v is None else 1 + sum(other > v for other in known) for arm, v in value.items()}


def rank_intervals(arms: Sequence[str], better: Collection[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Ranks that hold at once for all arms, from the pairs (better, worse) that were told apart at once.

    An arm is behind all that are better and before all that are worse (Mogstad, Romano, Shaikh & Wilhelm, Rev. Econ.
    Stud. 91 (2024) 476): where no pair is wrongly told apart, no rank is outside.
    """
    return {
        arm: (1 + sum(worse == arm for _, worse in better), len(arms) - sum(first == arm for first, _ in better))
        for arm in arms
    }


def _judged(chi2: float, df: int) -> Test:
    return chi2, float(stats.chi2.sf(chi2, df))
