"""Pairs of campaigns that do not differ, and how often the linked comparison says they do."""

from __future__ import annotations

import math

import numpy as np

from labctl.analysis.episodes.linked import Campaign, compare_linked
from labctl.analysis.planning.distributions import Distribution, simulate
from support.statistics.cohorts import TAU_NS

NEW_S = 50.0
ANCHORS = {"human": 10.0, "frozen": 60.0, "third": 35.0, "fourth": 90.0}


def campaign(
    name: str, rng: np.random.Generator, new: str, sizes: tuple[int, int], anchors: int = 2, apart: float = 0.0
) -> Campaign:
    """Cells of a new arm and of anchors on two objects, 360 s pools; sizes: episodes per cell of an anchor, of the new
    arm. apart: standard deviation of the logarithm of what each arm's times are multiplied by in this campaign.
    """
    means = {**dict(list(ANCHORS.items())[:anchors]), new: NEW_S}
    cells = {}
    for arm, mean in means.items():
        paced = Distribution(mean * math.exp(apart * rng.standard_normal()), budget_s=360.0)
        for obj in ("cup", "pan"):
            cells[arm, obj] = simulate(paced, sizes[arm == new], rng, arm=arm, obj=obj)
    return Campaign(name, cells)


def told_apart(sizes: tuple[int, int], runs: range, *, anchors: int = 2, apart: float = 0.0) -> dict[str, float]:
    """Share of `runs` pairs of like campaigns: p at most .05, the interval holding 1, and the same of anchors' drift.

    With `apart` an anchor's change is real, and its drift not counted.
    """
    rejected, held, drifted = [], [], []
    for run in runs:
        rng = np.random.default_rng([run, *sizes, anchors, round(1000 * apart)])
        may, june = (campaign(name, rng, new, sizes, anchors, apart) for name, new in (("may", "a"), ("june", "b")))
        found = compare_linked(may, "a", june, "b", tau_ns=TAU_NS)
        assert found.p is not None and found.interval is not None
        rejected.append(found.p <= 0.05)
        held.append(found.interval[0] <= 1 <= found.interval[1])
        drifted += [drift.p is not None and drift.p <= 0.05 for drift in found.drift]
    found = {"p ≤ .05": float(np.mean(rejected)), "95 % interval holds 1": float(np.mean(held))}
    return found if apart else {**found, "an anchor's drift, p ≤ .05": float(np.mean(drifted))}
