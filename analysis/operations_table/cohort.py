"""What is asked of a table of operations, the cells it is asked of, and which pairs of arms there are.

May not: estimate anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import Replicates
from labctl.analysis.survival.curves import KAPLAN_MEIER, Floats
from labctl.analysis.survival.ks import STATISTICS
from labctl.analysis.survival.resample import Design, Exchange, exchanges_of
from labctl.analysis.survival.result import Margin
from labctl.analysis.survival.verdicts import ALPHA, of_one_family
from labctl.errors import TableError

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


def check_request(
    where: str, arms: Sequence[str], *, reference: str | None, alpha: float, counts: Mapping[str, int]
) -> None:
    """Raises `TableError` for a reference, a level or a count of replicates (by name) that makes no sense."""
    if reference is not None and reference not in arms:
        raise TableError(where, f"no arm {reference!r} to refer to; the arms are {', '.join(arms)}")
    if not 0 < alpha < 1:
        raise TableError(where, f"alpha is {alpha:g}; allowed is a level between 0 and 1, such as 0.05")
    for name, count in counts.items():
        if count < 1:
            raise TableError(where, f"{name} is {count}; allowed is a whole number, 1 or more")


def pairs_of(arms: Sequence[str], reference: str | None) -> list[Key]:
    """Every pair of arms once, the reference first."""
    return list(itertools.combinations(sorted(arms, key=lambda a: (a != reference, a)), 2))


def exchanges_by_pair(cells: Mapping[Key, Cell], plan: Plan) -> dict[Key, tuple[Exchange, ...]]:
    """What the schedule allows for every pair whose test is to draw from it; nothing for the others."""
    pairs = pairs_of(sorted({a for a, _ in cells}), plan.reference)
    blocks = {arm: {b for (a, _), c in cells.items() if a == arm for b in c.blocks} for arm, _ in cells}
    family = {p: sum(of_one_family(p, other, plan.reference) for other in pairs) for p in pairs}
    return {p: exchanges_of(plan.design, *p, blocks[p[0]] | blocks[p[1]], family[p], plan.alpha) for p in pairs}
