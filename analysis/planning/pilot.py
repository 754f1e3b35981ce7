"""A pilot's table as what is known of the arms: the laws that fit it best, and those that it goes with as well.

May not: simulate a campaign, or estimate anything for a report. What the pilot did not see is in none of its laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from labctl.analysis.planning.distributions import Arm, fitted
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import blocks_of
from labctl.analysis.survival.curves import Floats
from labctl.analysis.table import NS, UNKNOWN, Table
from labctl.errors import QuestionError

FEWEST_UNITS = 4
"""Episodes of an arm at an object, or blocks, below which their spread says next to nothing of what else could be."""


@dataclass(frozen=True)
class Pilot:
    """A pilot's cells, {(arm, object): cell}, every arm at the same objects; `arms` are the laws that fit them best."""

    cells: Mapping[tuple[str, str], Cell]
    arms: tuple[Arm, ...]
    tau_s: float
    items: int
    budget_s: float

    def drawn(self, seed: int, run: int) -> tuple[Arm, ...]:
        """The arms fitted to a Bayesian bootstrap of the pilot (D. B. Rubin, Ann. Statist. 9 (1981) 130).

        Every unit counts an amount that is drawn anew, and the laws are fitted to the pilot so weighed. A unit is an
        episode, or a block of an object where each of its arms has them: then its episodes count alike. Amounts are
        Dirichlet((n - 2) / n) of n units, of which a weighted mean has just the usual variance of a mean, s^2 / n;
        Rubin's Dirichlet(1) has (n - 1) / (n + 1) of it.
        """
        counts = self._counts(seed, run)
        return tuple(
            fitted(
                arm.name,
                [self.cells[arm.name, o] for o in arm.distributions],
                self.tau_s,
                self.items,
                self.budget_s,
                [counts[arm.name, o] for o in arm.distributions],
                arm,
            )
            for arm in self.arms
        )

    def too_small(self) -> str | None:
        """Why nothing can be drawn from this pilot; None where something can."""
        for (arm, obj), cell in self.cells.items():
            units = len(blocks_of(cell)) if self._by_block(obj) else cell.episodes
            if units < FEWEST_UNITS:
                what = "blocks" if self._by_block(obj) else "episodes"
                found = f"the pilot has {units} {what} of {arm} at {obj}"
                return f"{found}, and fewer than {FEWEST_UNITS} do not say how far off they are"
        return None

    def _by_block(self, obj: str) -> bool:
        return all(blocks_of(cell) for (_, o), cell in self.cells.items() if o == obj)

    def _counts(self, seed: int, run: int) -> dict[tuple[str, str], Floats]:
        """How much every episode counts, [episodes] of mean 1 for each cell."""
        found: dict[tuple[str, str], Floats] = {}
        for i, obj in enumerate(self.arms[0].distributions):
            here = [key for key in self.cells if key[1] == obj]
            blocks = sorted(set().union(*(blocks_of(self.cells[key]) for key in here))) if self._by_block(obj) else []
            shared = _amounts(len(blocks), np.random.default_rng([seed, run, i, 0])) if blocks else np.empty(0)
            for j, key in enumerate(here):
                cell = self.cells[key]
                own = (
                    shared[np.searchsorted(blocks, cell.blocks)]
                    if blocks
                    else _amounts(cell.episodes, np.random.default_rng([seed, run, i, j + 1]))
                )
                found[key] = own / own.mean()
        return found


def shortest_budget(table: Table) -> float:
    """The shortest budget of an episode that counts, s: the horizon where none is given. Raises QuestionError."""
    budgets = [e.budget_ns for e in table.episodes if e.budget_ns > 0 and not e.void]
    if not budgets:
        raise QuestionError("the pilot has no budget_s to take tau from; give --tau SECONDS, in Python tau=SECONDS")
    return min(budgets) / NS


def pilot_of(table: Table, tau_s: float, items: int | None, budget_s: float | None) -> Pilot:
    """A pilot's operations table, every arm at the objects that all of them have met.

    Items and budget are the table's where they are not given. Raises QuestionError where the table has no single value.
    """
    cells = cells_of(table)
    names = sorted({arm for arm, _ in cells})
    shared = [o for o in sorted({o for _, o in cells}) if all((arm, o) in cells for arm in names)]
    if len(names) < 2 or not shared:
        raise QuestionError("a pilot needs two arms or more that have met the same object")
    staged = {int(n) for c in cells.values() for n in c.staged}
    budgets = {int(n) for c in cells.values() for n in c.budget_ns}
    if items is None:
        if len(staged) > 1 or UNKNOWN in staged:
            raise QuestionError("the pilot's items_staged is not one number; give --items")
        items = staged.pop()
    if budget_s is None:
        if len(budgets) > 1 or UNKNOWN in budgets:
            raise QuestionError("the pilot's budget_s is not one number; give --budget-s")
        budget_s = budgets.pop() / NS
    arms = tuple(fitted(arm, [cells[arm, o] for o in shared], tau_s, items, budget_s) for arm in names)
    return Pilot({key: cell for key, cell in cells.items() if key[1] in shared}, arms, tau_s, items, budget_s)


def _amounts(units: int, rng: np.random.Generator) -> Floats:
    """Amounts of n units, gamma((n - 2) / n); their shares are Dirichlet."""
    found = rng.standard_gamma((units - 2) / units, units)
    return np.maximum(found, math.ulp(0.0) ** 0.5)
