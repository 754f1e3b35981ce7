"""Tasks by arms: mean scores with intervals, tasks that are hard for all, and pairs that lead at different tasks.

May not: draw, or call two arms complementary because one of many cells happens to be high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from labctl.analysis.blocks.means import MeanScore, mean_score
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import LEVEL, Interval
from labctl.analysis.survival.verdicts import holm

HARD = 0.2
"""Mean score of the best arm at or below which a task is called hard for all."""


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
    depends on the task (analysis of variance of the paired differences, `p_holm` over pairs).

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
    p_holm at most alpha and tasks led by either side.
    """

    tasks: tuple[str, ...]
    arms: tuple[str, ...]
    cells: tuple[tuple[MeanScore, ...], ...]
    hard: tuple[HardTask, ...]
    complementary: tuple[Complementary, ...]


def heatmap(
    task: Sequence[str],
    block: Sequence[str],
    arm: Sequence[str],
    score: Floats,
    alpha: float = 0.05,
    level: float = LEVEL,
) -> Heatmap:
    """All (n,), one entry an episode, `block` the block it ran in; nan scores are left out."""
    tasks, arms = tuple(dict.fromkeys(task)), tuple(dict.fromkeys(arm))
    blocks = list(dict.fromkeys(zip(task, block, strict=True)))
    place, column = {b: i for i, b in enumerate(blocks)}, {a: i for i, a in enumerate(arms)}
    table = np.full((len(blocks), len(arms)), np.nan)
    for t, b, a, s in zip(task, block, arm, score, strict=True):
        table[place[t, b], column[a]] = s
    rows = {t: np.array([one == t for one, _ in blocks]) for t in tasks}
    cells = tuple(tuple(mean_score(table[rows[t], column[a]], level) for a in arms) for t in tasks)
    return Heatmap(
        tasks,
        arms,
        cells,
        tuple(one for t, own in zip(tasks, cells, strict=True) if (one := _hard(t, arms, own)) is not None),
        _complementary(table, rows, arms, alpha),
    )


def _hard(task: str, arms: Sequence[str], cells: Sequence[MeanScore]) -> HardTask | None:
    known = [(cell.mean, arm, cell.ci) for arm, cell in zip(arms, cells, strict=True) if cell.mean is not None]
    best = max(known, key=lambda one: one[0], default=None)
    return None if best is None or best[0] > HARD else HardTask(task, best[1], best[0], best[2])


def _complementary(
    table: Floats, of_task: Mapping[str, np.ndarray], arms: Sequence[str], alpha: float
) -> tuple[Complementary, ...]:
    tested: dict[tuple[str, str], tuple[dict[str, Floats], float]] = {}
    for i, a in enumerate(arms):
        for j in range(i + 1, len(arms)):
            both = ~np.isnan(table[:, i] + table[:, j])
            own = {t: table[rows & both][:, [i, j]] for t, rows in of_task.items() if (rows & both).any()}
            differences = [x[:, 0] - x[:, 1] for x in own.values()]
            if len(own) > 1 and both.sum() > len(own) and any(np.ptp(d) > 0 for d in differences):
                means = {t: x.mean(axis=0) for t, x in own.items()}
                tested[a, arms[j]] = means, float(stats.f_oneway(*differences).pvalue)
    adjusted = holm({pair: p for pair, (_, p) in tested.items()})
    out = []
    for (a, b), (means, _) in tested.items():
        leads = tuple(t for t, m in means.items() if m[0] > m[1]), tuple(t for t, m in means.items() if m[1] > m[0])
        if adjusted[a, b] <= alpha and all(leads):
            values = np.array(list(means.values()))
            together, single = float(values.max(axis=1).mean()), float(values.mean(axis=0).max())
            out.append(Complementary(a, b, *leads, together, single, adjusted[a, b]))
    return tuple(out)
