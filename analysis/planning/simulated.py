"""Episodes drawn from a stated law: what calibration, planning and the counterexamples are computed on.

May not: be mistaken for data. Nothing here reads a campaign, and no number of a report of episodes comes from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import NEVER_NS, Spells
from labctl.analysis.table import CENSORED, GHOST, NS, SUCCESS, UNKNOWN

_CAUSES = {SUCCESS: "", CENSORED: "budget", GHOST: "lost"}


@dataclass(frozen=True)
class Law:
    """How one arm works through one object's items.

    An item takes gamma(`shape`) seconds of mean `mean_s`, times `harder` for every item before it, times a factor of
    the episode, exp(N(0, `frailty`)), and one of its block, exp(N(0, `scene`)); it is lost instead of moved with
    probability `lost`. The episode ends when all `items` are moved or lost, or at `budget_s`.
    """

    mean_s: float
    shape: float = 1.0
    frailty: float = 0.55
    lost: float = 0.0
    items: int = 6
    budget_s: float = 360.0
    harder: float = 1.0
    scene: float = 0.0

    def slower(self, factor: float) -> Law:
        """The same law with every time multiplied."""
        return replace(self, mean_s=self.mean_s * factor)


def simulate(
    law: Law,
    episodes: int,
    rng: np.random.Generator,
    *,
    arm: str = "arm",
    obj: str = "all",
    blocks: Sequence[str] | None = None,
    scenes: np.ndarray | None = None,
) -> Cell:
    """A cell of `episodes` episodes; `scenes` [episodes] are standard normal scene effects shared within a block."""
    factor = np.exp(law.frailty * rng.standard_normal(episodes))
    if scenes is not None:
        factor *= np.exp(law.scene * scenes)
    taken = rng.gamma(law.shape, law.mean_s / law.shape, (episodes, law.items))
    taken *= factor[:, None] * law.harder ** np.arange(law.items)
    lost = rng.random((episodes, law.items)) < law.lost
    ended = np.maximum(np.round(np.cumsum(taken, axis=1) * NS), 1).astype(np.int64)
    budget = round(law.budget_s * NS)
    met = ended <= budget
    moved = met & ~lost
    latest = np.maximum.accumulate(np.where(moved, ended, 0), axis=1)
    since = ended - np.concatenate((np.zeros((episodes, 1), dtype=np.int64), latest[:, :-1]), axis=1)
    tail = ~met[:, -1]
    kind = np.concatenate((np.where(lost, GHOST, SUCCESS), np.full((episodes, 1), CENSORED)), axis=1).astype(np.int8)
    time = np.concatenate((since, (budget - latest[:, -1])[:, None]), axis=1)
    there = np.concatenate((met, tail[:, None]), axis=1)
    kind, time = kind[there], time[there]
    spells = Spells(
        np.where(kind == GHOST, NEVER_NS, time), kind != CENSORED, np.nonzero(there)[0].astype(np.int64), episodes
    )
    return Cell(
        arm,
        obj,
        spells,
        spells,
        kind,
        tuple(_CAUSES[k] for k in kind),
        np.where(kind == GHOST, time, UNKNOWN),
        tuple(blocks or [""] * episodes),
        moved.sum(axis=1),
        np.full(episodes, law.items),
        np.where(tail, budget, ended[:, -1]),
        np.full(episodes, budget),
        0,
        0,
        np.full(episodes, UNKNOWN),
    )
