"""How near Wang & Chang's estimator comes to the mean time of an operation where episodes differ, and how often its
intervals hold it: gamma frailty, for which the truth is a formula. Every run is a pure function of its number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from labctl.analysis.operations_table.describe import cell_row
from labctl.analysis.operations_table.pair_effects import ratio_interval, rmst_ratio
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import clusters, rmst_replicates
from labctl.analysis.survival.curves import ESTIMATORS, WANG_CHANG, rmst_with_error
from labctl.analysis.survival.hrt import hrt, rmst
from labctl.analysis.survival.kernel import spread
from support.statistics.cohorts import NS, OBJECTS, TAU_NS

BOOT = 999
TAU_S = TAU_NS / NS
VARIANCE = 0.5
"""Of an episode's pace, which is gamma with mean 1: the issue's."""


@dataclass(frozen=True)
class Paced:
    """An arm whose item times are exponential at a rate of pace / mean_s."""

    mean_s: float
    items: int = 6
    budget_s: float = 360.0
    lost: float = 0.0

    @property
    def rmst_s(self) -> float:
        """∫_0^tau (1 + v t / m)^(-1/v) dt, of an operation that is never lost or cut short."""
        reach = 1 + VARIANCE * TAU_S / self.mean_s
        return self.mean_s / (1 - VARIANCE) * (1 - reach ** (1 - 1 / VARIANCE))

    def cell(self, episodes: int, rng: np.random.Generator, arm: str = "a", obj: str = "all") -> Cell:
        law = Distribution(
            self.mean_s, frailty=0.0, lost=self.lost, items=self.items, budget_s=self.budget_s, scene=1.0
        )
        pace = rng.gamma(1 / VARIANCE, VARIANCE, episodes)
        return replace(simulate(law, episodes, rng, arm=arm, obj=obj, scenes=-np.log(pace)), estimator=WANG_CHANG)


def biases(arm: Paced, episodes: int, runs: int, truth_s: float | None = None) -> dict[str, tuple[float, float]]:
    """Bias of a cell's RMST over its truth, and its Monte-Carlo error, by estimator, over `runs` cells."""
    truth = truth_s or arm.rmst_s

    def some(part: range) -> list[list[float]]:
        out = []
        for run in part:
            cell = arm.cell(episodes, np.random.default_rng([run, episodes]))
            out.append([rmst_with_error(replace(cell, estimator=e).timed, TAU_NS)[0] for e in ESTIMATORS])
        return out

    found = np.concatenate(spread(some, [range(s, min(s + 100, runs)) for s in range(0, runs, 100)]), axis=0)
    mean, error = found.mean(axis=0) / truth - 1, found.std(axis=0, ddof=1) / math.sqrt(runs) / truth
    return {e: (float(mean[i]), float(error[i])) for i, e in enumerate(ESTIMATORS)}


def coverage(arms: Sequence[Paced], episodes: int, runs: range) -> dict[str, float]:
    """Share of `runs` campaigns in which intervals of Wang & Chang's estimator hold the truth, of the first of two arms
    (of a cell, its interval without draws, mean over four objects), of the ratio of both over those objects, and of
    HRT, the first the reference.
    """
    true_ratio = math.log(arms[0].rmst_s / arms[1].rmst_s)

    def one(run: int) -> list[bool]:
        rng = np.random.default_rng([run, episodes, len(arms)])
        cells = {
            (name, obj): law.cell(episodes, rng, name, obj)
            for name, law in zip("ab", arms, strict=True)
            for obj in OBJECTS
        }
        found = rmst_replicates(clusters(cells, TAU_NS, run), BOOT)
        a, b = ([(name, obj) for obj in OBJECTS] for name in "ab")
        one_cell, mean = (rmst(found, keys, found.values, TAU_S) for keys in (a[:1], a))
        undrawn = cell_row(cells[a[0]], one_cell, TAU_NS)["rmst_wang_chang_ci"]
        told = [(ci, arms[0].rmst_s) for ci in (one_cell.interval, undrawn, mean.interval)]
        told.append((ratio_interval(rmst_ratio(found, a, b)), true_ratio))
        told.append((hrt(found, a, b, found.values).interval, math.exp(true_ratio)))
        return [ci is not None and ci[0] <= truth <= ci[1] for ci, truth in told]

    parts = [range(s, min(s + 25, runs.stop)) for s in range(runs.start, runs.stop, 25)]
    hits = np.concatenate([np.array(p) for p in spread(lambda part: [one(run) for run in part], parts)])
    names = ("RMST of a cell", "RMST of a cell, t", "RMST over four objects", "ratio over four objects", "HRT")
    return dict(zip(names, hits.mean(axis=0).tolist(), strict=True))
