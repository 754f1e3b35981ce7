"""Success along levels of a stress or a difficulty: the response with intervals, and where it breaks.

May not: order levels by their scores, or name a cliff that could be luck.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.blocks.means import mean_score
from labctl.analysis.monte_carlo import share_error
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.analysis.survival.spread import alike

PERM = 4999
REDRAWN = 999


@dataclass(frozen=True)
class Stressed:
    """One episode under a `level` of a `family`, as the table names them. `set`: of blocks that hold every level of a
    family once, "" for none.
    """

    arm: str
    family: str
    level: str
    score: float
    set: str = ""


@dataclass(frozen=True)
class Response(Result):
    """An arm's mean score at one level of a family."""

    family: str
    level: str
    arm: str
    score: float | None
    ci: Interval | None


@dataclass(frozen=True)
class Cliff(Result):
    """Where the success of an arm breaks along a family: between `holds` and `breaks`, with mean scores of all levels
    up to the one and from the other on.

    `p`, one-sided, that a break so clear would be found somewhere if no level mattered, `error` its Monte-Carlo error.
    `same`: share of campaigns drawn anew from the episodes of each level that break at the same place.
    """

    family: str
    arm: str
    holds: str
    breaks: str
    before: float
    after: float
    p: float
    error: float
    same: float


def level_order(levels: Sequence[str]) -> list[str]:
    """Levels by the numbers in them, then by name: v1, v2, v10; easy, medium, hard as they are known."""
    known = {"easy": 0, "medium": 1, "hard": 2}

    def key(level: str) -> tuple[int, list[float], str]:
        return known.get(level, -1), [float(x) for x in re.findall(r"\d+(?:\.\d+)?", level)], level

    return sorted(dict.fromkeys(levels), key=key)


def responses(rows: Sequence[Stressed], level: float = LEVEL) -> list[Response]:
    """Mean score by family, level and arm, levels in order."""
    found = []
    for family in dict.fromkeys(row.family for row in rows):
        own = [row for row in rows if row.family == family]
        for at in level_order([row.level for row in own]):
            for arm in dict.fromkeys(row.arm for row in own):
                mean = mean_score(np.array([r.score for r in own if r.level == at and r.arm == arm]), level)
                if mean.episodes:
                    found.append(Response(family, at, arm, mean.mean, mean.ci))
    return found


def cliffs(rows: Sequence[Stressed], perm: int = PERM, seed: int = 0) -> list[Cliff]:
    """The clearest break of every family and arm with two levels or more and some spread.

    The statistic is the largest two-sample t over the places between levels; levels are permuted over episodes, within
    sets where all have one, whose means are taken out first.
    """
    found = []
    for family, arm in dict.fromkeys((row.family, row.arm) for row in rows):
        own = [r for r in rows if (r.family, r.arm) == (family, arm) and not np.isnan(r.score)]
        levels = level_order([r.level for r in own])
        score, at = np.array([r.score for r in own]), np.array([levels.index(r.level) for r in own], dtype=np.int64)
        if len(levels) < 2 or alike(score):
            continue
        named = {name: i for i, name in enumerate(dict.fromkeys(r.set for r in own))}
        group = np.array([named[r.set] for r in own]) if all(r.set for r in own) else np.zeros(len(own), np.int64)
        centred = score - (np.bincount(group, score) / np.bincount(group))[group]
        rng = np.random.default_rng(seed)
        shuffled = _within(group, perm, rng)
        observed = _breaks(centred[None, :], at, len(levels))[0]
        drawn = _breaks(centred[shuffled], at, len(levels)).max(axis=1)
        split = int(observed.argmax())
        p = (1 + int((drawn >= observed[split] - 1e-9).sum())) / (perm + 1)
        before, after = float(score[at <= split].mean()), float(score[at > split].mean())
        again = _redrawn(at, rng)
        same = float((_breaks(centred[again], at, len(levels)).argmax(axis=1) == split).mean())
        found.append(
            Cliff(family, arm, levels[split], levels[split + 1], before, after, p, share_error(p, perm + 1), same)
        )
    return found


def _breaks(score: Floats, at: Ints, levels: int) -> Floats:
    """Two-sample t of the levels up to each place against those beyond, (R, levels - 1), for scores (R, n)."""
    n, squares = score.shape[1], (score**2).sum(axis=1)
    whole, out = score.sum(axis=1), np.empty((len(score), levels - 1))
    for split in range(levels - 1):
        first = at <= split
        k = int(first.sum())
        low = score[:, first].sum(axis=1)
        high = whole - low
        inside = np.maximum(squares - low**2 / k - high**2 / (n - k), 1e-12)
        out[:, split] = (low / k - high / (n - k)) / np.sqrt(inside / max(n - 2, 1) * (1 / k + 1 / (n - k)))
    return out


def _within(group: Ints, perm: int, rng: np.random.Generator) -> Ints:
    """Permutations within groups, (perm, n)."""
    place = np.argsort(group, kind="stable")
    drawn = np.argsort(group[None, :] + rng.random((perm, len(group))), axis=1)  # groups in order, shuffled inside
    out = np.empty_like(drawn)
    out[:, place] = drawn
    return out


def _redrawn(at: Ints, rng: np.random.Generator) -> Ints:
    """Episodes drawn anew within each level, (REDRAWN, n)."""
    out = np.empty((REDRAWN, len(at)), dtype=np.int64)
    for level in np.unique(at):
        own = np.flatnonzero(at == level)
        out[:, own] = own[rng.integers(0, len(own), (REDRAWN, len(own)))]
    return out
