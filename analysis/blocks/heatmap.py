"""Tasks by arms: mean scores with intervals, tasks that are hard for all, and pairs that lead at different tasks.

May not: draw, or call two arms complementary because one of many cells happens to be high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.blocks.means import Draws, MeanScore, mean_over_units, mean_score
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.analysis.survival.verdicts import holm

HARD = 0.2
"""Mean score of the best arm at or below which a task is called hard for all."""
PERM = 9999
DRAWS = Draws(seed=0, boot=999)
_CHUNK = 1000  # permutations that are drawn at once


@dataclass(frozen=True)
class HardTask(Result):
    """A task at which the best arm's mean is at most `HARD`; `ci` is that arm's."""

    task: str
    best_arm: str
    best: float
    ci: Interval | None


@dataclass(frozen=True)
class Complementary(Result):
    """Two arms over the tasks both ran in the same blocks: where each has the higher mean, and whether the difference
    depends on the task (analysis of variance of the paired differences, its p by permuting tasks over units, `p_holm`
    over pairs).

    `together`: mean over tasks of the better arm's score there, what a choice by task would reach on the same episodes
    (too high, as the choice was made on them); `single`: that of the better arm overall.
    """

    a: str
    b: str
    a_leads: tuple[str, ...]
    b_leads: tuple[str, ...]
    together: float
    single: float
    p_holm: float


@dataclass(frozen=True)
class Heatmap(Result):
    """`cells` by (task, arm), in the order of `tasks` and `arms`; `hard` tasks; `complementary` pairs, those with
    p_holm at most alpha and tasks led by either side. least_p: the smallest p_holm that so many permutations can give
    over the pairs that were compared; above alpha no pair can be found.
    """

    tasks: tuple[str, ...]
    arms: tuple[str, ...]
    cells: tuple[tuple[MeanScore, ...], ...]
    hard: tuple[HardTask, ...]
    complementary: tuple[Complementary, ...]
    least_p: float


def heatmap(
    task: Sequence[str],
    block: Sequence[str],
    arm: Sequence[str],
    score: Floats,
    alpha: float = 0.05,
    level: float = LEVEL,
    unit: Sequence[str] | None = None,
    draws: Draws = DRAWS,
    perm: int = PERM,
) -> Heatmap:
    """All (n,), one entry an episode, `block` the block it ran in, `unit` the set of blocks that it belongs to (each
    block by itself where not given); nan scores are left out. perm: permutations of tasks at most.
    """
    tasks, arms = tuple(dict.fromkeys(task)), tuple(dict.fromkeys(arm))
    blocks = list(dict.fromkeys(zip(task, block, strict=True)))
    place, column = {b: i for i, b in enumerate(blocks)}, {a: i for i, a in enumerate(arms)}
    table = np.full((len(blocks), len(arms)), np.nan)
    units = np.arange(len(blocks))
    names = {name: i for i, name in enumerate(dict.fromkeys(unit or ()))}
    for t, b, a, s, u in zip(task, block, arm, score, unit or block, strict=True):
        table[place[t, b], column[a]] = s
        units[place[t, b]] = names[u] if unit else place[t, b]
    rows = {t: np.array([one == t for one, _ in blocks]) for t in tasks}
    single = len(np.unique(units)) == len(units)

    def cell(t: str, a: str) -> MeanScore:
        values = table[rows[t], column[a]]
        if single:
            return mean_score(values, level)
        found = mean_over_units(values, units[rows[t]], 0.0, 1.0, draws, level)
        return MeanScore(found.n, found.value, found.interval)

    cells = tuple(tuple(cell(t, a) for a in arms) for t in tasks)
    pairs, compared = _complementary(table, rows, arms, alpha, units, perm, draws.seed)
    return Heatmap(
        tasks,
        arms,
        cells,
        tuple(one for t, own in zip(tasks, cells, strict=True) if (one := _hard(t, arms, own)) is not None),
        pairs,
        compared / (1 + perm),
    )


def _hard(task: str, arms: Sequence[str], cells: Sequence[MeanScore]) -> HardTask | None:
    known = [(cell.mean, arm, cell.ci) for arm, cell in zip(arms, cells, strict=True) if cell.mean is not None]
    best = max(known, key=lambda one: one[0], default=None)
    return None if best is None or best[0] > HARD else HardTask(task, best[1], best[0], best[2])


def _complementary(
    table: Floats,
    of_task: Mapping[str, np.ndarray],
    arms: Sequence[str],
    alpha: float,
    units: np.ndarray,
    perm: int,
    seed: int,
) -> tuple[tuple[Complementary, ...], int]:
    """The pairs found, and over how many."""
    tested: dict[tuple[str, str], tuple[dict[str, Floats], float]] = {}
    for i, a in enumerate(arms):
        for j in range(i + 1, len(arms)):
            both = ~np.isnan(table[:, i] + table[:, j])
            own = {t: table[rows & both][:, [i, j]] for t, rows in of_task.items() if (rows & both).any()}
            if len(own) > 1:
                means = {t: x.mean(axis=0) for t, x in own.items()}
                at = [units[rows & both] for rows in of_task.values() if (rows & both).any()]
                differences = [x[:, 0] - x[:, 1] for x in own.values()]
                tested[a, arms[j]] = means, depends(differences, at, alpha, perm, seed)
    adjusted = holm({pair: p for pair, (_, p) in tested.items()})
    out = []
    for (a, b), (means, _) in tested.items():
        leads = tuple(t for t, m in means.items() if m[0] > m[1]), tuple(t for t, m in means.items() if m[1] > m[0])
        if adjusted[a, b] <= alpha and all(leads):
            values = np.array(list(means.values()))
            together, single = float(values.max(axis=1).mean()), float(values.mean(axis=0).max())
            out.append(Complementary(a, b, *leads, together, single, adjusted[a, b]))
    return tuple(out), len(tested)


def depends(
    differences: Sequence[Floats], units: Sequence[np.ndarray], alpha: float, perm: int = PERM, seed: int = 0
) -> float:
    """Whether the differences depend on the task, one array a task, with the unit of each: p of the F of their means
    over units, against that of tasks permuted over the units of one task, and within each unit of several.

    Permutations end early where p is far above alpha.
    """
    values, place, unit = [], [], []
    for task, (own, at) in enumerate(zip(differences, units, strict=True)):
        names, index = np.unique(at, return_inverse=True)
        values += (np.bincount(index, own) / np.bincount(index)).tolist()
        place += [task] * len(names)
        unit += names.tolist()
    d, starts = np.array(values), np.flatnonzero(np.diff(place, prepend=-1))
    sizes = np.diff(np.append(starts, len(d)))
    _, at, count = np.unique(unit, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(count[at] == 1)
    strata = [alone, *(np.flatnonzero(at == one) for one in np.flatnonzero(count > 1))]

    def between(drawn: Floats) -> Floats:
        """Of each row the sum of squares between tasks: for the same values F goes with it."""
        return (np.add.reduceat(drawn, starts, axis=1) ** 2 / sizes).sum(axis=1)

    seen, rng = float(between(d[None, :])[0]), np.random.default_rng(seed)
    beyond = done = 0
    while done < perm and not (done and beyond > 3 * alpha * done):
        drawn = np.repeat(d[None, :], min(_CHUNK, perm - done), axis=0)
        for own in strata:
            drawn[:, own] = rng.permuted(drawn[:, own], axis=1)
        beyond += int((between(drawn) >= seen * (1 - 1e-9) - 1e-12).sum())
        done += len(drawn)
    return (1 + beyond) / (1 + done)
