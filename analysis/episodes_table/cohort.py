"""What is compared: the measure, the grids of blocks and arms, and which blocks belong together.

May not: estimate anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labctl.analysis.blocks.means import Draws
from labctl.analysis.episodes_table.table import EpisodesTable
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.verdicts import ALPHA

Pair = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What is requested. reference: the arm that HRT is relative to and whose pairs are a family of their own; tau_s:
    the horizon of RMST, None: the shortest budget, or the longest time where there is none; boot, perm: how many
    resamples and exchanges of labels at most; alpha: the level of intervals and verdicts.
    """

    reference: str | None = None
    tau_s: float | None = None
    boot: int = 9999
    perm: int = 9999
    seed: int = 0
    alpha: float = ALPHA

    @property
    def draws(self) -> Draws:
        """How means are resampled."""
        return Draws(self.seed, self.boot)

    @property
    def level(self) -> float:
        """Of one interval."""
        return 1 - self.alpha


@dataclass(frozen=True)
class Cohort:
    """Grids [blocks, arms], NaN where there is nothing; `measure` is the score if the table has one, else success.

    `unit` [blocks] numbers the independent units: what `set` names together, else each block by itself.
    """

    table: EpisodesTable
    score: Floats
    success: Floats
    measure: Floats
    position: Floats
    unit: Ints

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which blocks have a value of the measure for every arm [blocks]."""
        return np.all(np.isfinite(self.measure), axis=1)

    @property
    def single(self) -> bool:
        """Whether every block is a unit by itself."""
        return len(np.unique(self.unit)) == len(self.unit)

    def difference(self, grid: Floats, pair: Pair) -> Floats:
        """The first arm's value less the second's in every block [blocks], NaN where one is missing."""
        a, b = (self.table.arms.index(arm) for arm in pair)
        return grid[:, a] - grid[:, b]


def cohort_of(table: EpisodesTable) -> Cohort:
    """The grids of a table."""
    score, success = table.grid("score"), table.grid("success")
    named = table.of_block("set")
    place: dict[str, int] = {}
    unit = [place.setdefault(f"set {name}" if name else f"block {i}", len(place)) for i, name in enumerate(named)]
    measure = score if table.has("score") else success
    return Cohort(table, score, success, measure, table.grid("position"), np.array(unit, dtype=np.int64))
