"""What tests say of like arms whose episodes had other time budgets: why such a pair is refused and not tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labctl.analysis.operations_table.cautions import unequal_budgets
from labctl.analysis.planning.distributions import simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import joined
from labctl.analysis.survival.kernel import spread
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_p
from support.statistics.cohorts import DISTRIBUTIONS, TAU_NS

ALPHA, PERM = 0.05, 499
SHORT_S, LONG_S = 120.0, 360.0


def told_apart(short_a: int, short_b: int, episodes: int, runs: range) -> dict[str, float]:
    """Share of `runs` pairs of like arms (m1, one object) that each test, unasked, tells apart at .05, and share that
    `labctl analyze` refuses: so many of each arm's `episodes` episodes had 120 s, the others 360.
    """

    def one(run: int) -> dict[str, bool]:
        rng = np.random.default_rng([run, short_a, short_b, episodes])
        cells = {arm: _mixed(arm, short, episodes, rng) for arm, short in (("a", short_a), ("b", short_b))}
        found = permutation_p(pair_of([cells["a"]], [cells["b"]], TAU_NS), run, PERM)
        hits = {name: p is not None and p <= ALPHA + 1e-12 for name, p in found.items()}
        return {**hits, "refused": bool(unequal_budgets({(arm, "all"): cell for arm, cell in cells.items()}))}

    parts = [range(s, min(s + 25, runs.stop)) for s in range(runs.start, runs.stop, 25)]
    hits = [hit for part in spread(lambda part: [one(run) for run in part], parts) for hit in part]
    return {name: float(np.mean([hit[name] for hit in hits])) for name in hits[0]}


def _mixed(arm: str, short: int, episodes: int, rng: np.random.Generator) -> Cell:
    one, two = (
        simulate(replace(DISTRIBUTIONS["m1"], budget_s=budget), n, rng, arm=arm, obj="all")
        for budget, n in ((SHORT_S, short), (LONG_S, episodes - short))
    )
    arrays = ("kind", "ghost_ns", "moved", "staged", "charged_ns", "budget_ns", "interventions")
    return replace(
        one,
        durations=joined(one.durations, two.durations),
        observed=joined(one.observed, two.observed),
        cause=one.cause + two.cause,
        blocks=one.blocks + two.blocks,
        **{name: np.concatenate((getattr(one, name), getattr(two, name))) for name in arrays},
    )
