"""How often a campaign that is looked at as planned tells arms apart that do not differ: p of paired differences by
exchanging labels within blocks, held to the level of each look, stopped at the first that reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from labctl.analysis.planning.spending import looks

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
