"""A request for the analysis of an operations table, the cells that it is about, and the exchanges of its pairs.

May not: estimate anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labctl.analysis.family import STATISTICS
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import Replicates
from labctl.analysis.survival.curves import KAPLAN_MEIER, Floats
from labctl.analysis.survival.resample import Design, Exchange, exchanges_of
from labctl.analysis.survival.result import Margin
from labctl.analysis.survival.verdicts import ALPHA, of_one_family, pairs_of

Key = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What was requested: horizon, reference, replicates, seed, level, family, schedule, margin, estimator."""

    tau_ns: int
    reference: str | None
    boot: int
    perm: int
    seed: int
    alpha: float = ALPHA
    family: tuple[str, ...] = STATISTICS
    design: Design | None = None
    margin: Margin | None = None
    estimator: str = KAPLAN_MEIER
    say: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Cohort:
    """Every cell with its RMST replicates and the paper's, keyed by (arm, object)."""

    cells: Mapping[Key, Cell]
    replicates: Replicates
    paper: Mapping[Key, Floats]
    named_causes: bool

    def objects(self, *arms: str) -> list[str]:
        """Objects that every one of these arms has met, sorted."""
        return sorted(set.intersection(*({o for a, o in self.cells if a == arm} for arm in arms)))

    def arms(self) -> list[str]:
        """Arms with at least one episode, sorted."""
        return sorted({a for a, _ in self.cells})


def exchanges_by_pair(cells: Mapping[Key, Cell], plan: Plan) -> dict[Key, tuple[Exchange, ...]]:
    """What the schedule allows for every pair whose test is to draw from it; nothing for the others."""
    pairs = pairs_of(sorted({a for a, _ in cells}), plan.reference)
    blocks = {arm: {b for (a, _), c in cells.items() if a == arm for b in c.blocks} for arm, _ in cells}
    family = {p: sum(of_one_family(p, other, plan.reference) for other in pairs) for p in pairs}
    return {p: exchanges_of(plan.design, *p, blocks[p[0]] | blocks[p[1]], family[p], plan.alpha) for p in pairs}
