"""What an interim look may know: whether pairs of arms are told apart at its level, by the test that a report makes.

May not: give out a p, an estimate or which pair it was; whoever looks before the end learns one yes or no.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labctl.analysis.operations_table.cautions import unequal_budgets
from labctl.analysis.operations_table.cohort import Plan, exchanges_by_pair
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_test
from labctl.analysis.survival.verdicts import holm_by_family, pairs_of
from labctl.analysis.table import Table

Two = tuple[str, str]


def told_apart(table: Table, plan: Plan, pairs: Sequence[Two], level: float) -> bool:
    """Whether the family's p of each of `pairs`, either way round and without any of every pair of arms, is at most
    `level` after Holm's correction over all pairs that were met, as `analyze` makes it by the same plan.

    A pair without a p (an arm not met, unequal budgets) is not told apart. Raises TableError as `cells_of`.
    """
    with np.errstate(all="ignore"):
        adjusted = _adjusted(cells_of(table, plan.estimator), plan)
    wanted = [frozenset(pair) for pair in pairs] or [frozenset(pair) for pair in adjusted]
    p_of = {frozenset(pair): p for pair, p in adjusted.items()}
    return bool(wanted) and all(p_of.get(pair, 1.0) <= level for pair in wanted)


def _adjusted(cells: dict[Two, Cell], plan: Plan) -> dict[Two, float]:
    refused, exchanges = unequal_budgets(cells), exchanges_by_pair(cells, plan)
    found: dict[Two, float] = {}
    for a, b in pairs_of(sorted({arm for arm, _ in cells}), plan.reference):
        shared = sorted({o for arm, o in cells if arm == a} & {o for arm, o in cells if arm == b})
        if (a, b) in refused or not shared:
            continue
        of_a, of_b = ([cells[arm, o] for o in shared] for arm in (a, b))
        pair = pair_of(of_a, of_b, plan.tau_ns, exchanges=exchanges[a, b])
        p = permutation_test(pair, plan.seed, plan.perm, plan.family).family
        if p is not None:
            found[a, b] = p
    return holm_by_family(found, plan.reference)
