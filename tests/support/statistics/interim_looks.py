"""How often a campaign that is looked at as planned tells arms apart that do not differ: p of paired differences by
exchanging labels within blocks, held to the level of each look, stopped at the first that reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labctl.analysis.operations_table.cohort import Plan
from labctl.analysis.planning.interim_test import told_apart
from labctl.analysis.planning.spending import looks
from labctl.analysis.table import NS, table_from_rows

FLIPS = 999
DRAWN = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "heavy": lambda rng, size: rng.standard_t(2.5, size),
    "few values": lambda rng, size: rng.integers(-3, 4, size).astype(float),
}
"""Differences of two arms in a block, symmetrical about nothing, as those of like arms are."""


def stopped(after: Sequence[int], law: str, runs: range, alpha: float = 0.05) -> dict[str, float]:
    """Share of `runs` campaigns that any look stops, and that peeking at `alpha` each time would have."""
    planned, held, peeked = looks(after, alpha), 0, 0
    for run in runs:
        rng = np.random.default_rng([run, after[-1]])
        gap = DRAWN[law](rng, after[-1])
        flips = rng.integers(0, 2, (FLIPS, after[-1])) * 2.0 - 1.0
        sums = np.abs(np.cumsum(flips * gap, axis=1)[:, [look.blocks - 1 for look in planned]])
        found = np.abs(np.cumsum(gap)[[look.blocks - 1 for look in planned]])
        p = (1 + (sums >= found * (1 - 1e-9)).sum(axis=0)) / (FLIPS + 1)
        held += bool((p <= [look.level for look in planned]).any())
        peeked += bool((p <= alpha).any())
    return {"held to the plan": held / len(runs), "peeking": peeked / len(runs)}


def stopped_by_the_test(after: Sequence[int], runs: range, *, slower: float = 1.0, alpha: float = 0.05) -> float:
    """Share of `runs` campaigns of two arms in blocks, four items an episode in a pool of 90 s, that any look stops by
    the test of `labctl look`. slower: what the second arm's item times are multiplied by.
    """
    planned = looks(after, alpha)
    stops = 0
    for run in runs:
        rng = np.random.default_rng([run, after[-1], 7])
        rows = [row for block in range(after[-1]) for row in _block(rng, block, slower)]
        stops += any(_apart(rows, look.blocks, look.level) for look in planned)
    return stops / len(runs)


def _apart(rows: Sequence[dict[str, Any]], blocks: int, level: float) -> bool:
    table = table_from_rows([row for row in rows if row["block"] < blocks])
    return told_apart(table, Plan(90 * NS, None, 1, FLIPS, 0, level), [("a", "b")], level)


def _block(rng: np.random.Generator, block: int, slower: float) -> list[dict[str, Any]]:
    """Gamma times of items (shape 2, mean 16 s) times lognormal factors, of the episode (sd .5) and its block (.3)."""
    rows: list[dict[str, Any]] = []
    shared = rng.normal(0, 0.3)
    for arm, factor in (("a", 1.0), ("b", slower)):
        times = rng.gamma(2, 8.0, 4) * factor * np.exp(rng.normal(0, 0.5) + shared)
        whole = {"episode": f"{arm}{block}", "arm": arm, "object": "o", "block": block, "items_staged": 4}
        ends = np.cumsum(times)
        moved = times[ends <= 90.0]
        whole |= {"budget_s": 90.0, "end_s": float(min(ends[-1], 90.0))}
        rows += [{**whole, "kind": "success", "time_s": float(t)} for t in moved]
        if len(moved) < 4:
            rows.append({**whole, "kind": "censored", "time_s": float(90.0 - moved.sum())})
    return rows
