"""How often what is said of a campaign in several robots' cells is true: cells slow or quick for all arms, and arms
that do otherwise in every cell. Every run is a pure function of its number.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from labctl.analysis.operations_table.cohort import Cohort, Plan
from labctl.analysis.operations_table.over_cells import over_cells
from labctl.analysis.operations_table.pair_effects import ratio_interval, rmst_ratio
from labctl.analysis.operations_table.pair_rows import _silent
from labctl.analysis.planning.distributions import Distribution, distribution_rmst, simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import clusters, rmst_replicates
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_test, relabellings
from labctl.analysis.table import NS, in_cell
from support.statistics.calibration import Counts, _shares
from support.statistics.cohorts import OBJECTS

TAU_S, BOOT, PERM = 240.0, 199, 199
LAW = Distribution(40.0, shape=1.5, frailty=0.4, lost=0.04, items=4, budget_s=240.0)
GRID = np.linspace(-1.6, 1.9, 15)


@dataclass(frozen=True)
class Joint:
    """`cells` cells of `blocks` blocks at each of `objects` objects. rig: sd of the log of what every time in a cell is
    multiplied by; apart: sd of the log of what each arm's are besides; slower: the second arm's times over the first's;
    test: whether the permutation test is run.
    """

    cells: int
    blocks: int = 6
    objects: int = 2
    rig: float = 0.4
    apart: float = 0.0
    slower: float = 1.0
    test: bool = True


def held(how: Joint, runs: range) -> dict[str, float]:
    """Share of `runs` campaigns whose interval over these cells holds their true log ratio, that the test tells apart,
    whose cells are called unlike; from five cells on whose interval over cells like these holds the truth of cells
    without end, and that of a further cell what one more cell's mean shows.
    """
    return _shares(functools.partial(_one, how), runs)


def _one(how: Joint, run: int) -> Counts:
    rng = np.random.default_rng([run, how.cells, how.blocks, how.objects, round(100 * how.apart)])
    rig = how.rig * rng.standard_normal(how.cells + 1)
    own = how.apart * rng.standard_normal((how.cells + 1, 2)) + rig[:, None] + np.array([0.0, np.log(how.slower)])
    names = [f"rig{c}" for c in range(how.cells)]
    cells = _cells(how, own[:-1], names, rng)
    tau_ns = round(TAU_S * NS)
    found = rmst_replicates(clusters(cells, tau_ns, run), BOOT)
    things = [in_cell(o, name) for name in names for o in OBJECTS[: how.objects]]
    ratio = rmst_ratio(found, [("a", o) for o in things], [("b", o) for o in things])
    of_these = ratio_interval(ratio)
    logs = _log_rmst(own)
    truth = float((logs[:-1, 0] - logs[:-1, 1]).mean())
    hits = {"these cells": int(of_these is not None and of_these[0] <= truth <= of_these[1])}
    if how.test:
        sides = [[cells[arm, o] for o in things] for arm in "ab"]
        pair = pair_of(*sides, tau_ns)
        test = permutation_test(pair, run, PERM, made=relabellings(pair, run, PERM))
        hits["told apart"] = int(test.family is not None and test.family <= 0.05)
    plan = Plan(tau_ns, None, BOOT, PERM, run)
    row = {**_silent(("a", "b")), "objects": things}
    by = over_cells(names, Cohort(cells, found, {k: found.values[k] for k in cells}, False), plan, [row])
    pair_by = by["pairs"][0]
    p = pair_by["p_alike"]
    hits["cells called unlike"] = int(p is not None and p <= 0.05)
    if by["sample"]:
        ci, ahead = pair_by["ci"], pair_by["prediction"]
        endless = _endless(how)
        hits["cells like these"] = int(ci is not None and ci[0] <= endless <= ci[1])
        fresh = _cells(how, own[-1:], ["new"], rng)
        more = rmst_replicates(clusters(fresh, tau_ns, run), 1)
        shown = rmst_ratio(more, *([(arm, in_cell(o, "new")) for o in OBJECTS[: how.objects]] for arm in "ab"))
        hits["a further cell"] = int(ahead is not None and shown is not None and ahead[0] <= shown.value <= ahead[1])
    return hits


def _cells(how: Joint, own: np.ndarray, names: list[str], rng: np.random.Generator) -> dict[tuple[str, str], Cell]:
    made: dict[tuple[str, str], Cell] = {}
    for c, name in enumerate(names):
        for obj in OBJECTS[: how.objects]:
            scene = rng.standard_normal(how.blocks)
            for i, arm in enumerate("ab"):
                law = replace(LAW.slower(float(np.exp(own[c, i]))), scene=0.3)
                blocks = [f"{name}-{obj}-{n}" for n in range(how.blocks)]
                at = in_cell(obj, name)
                made[arm, at] = simulate(law, how.blocks, rng, arm=arm, obj=at, blocks=blocks, scenes=scene)
    return made


@functools.cache
def _known() -> np.ndarray:
    """log RMST of the law made slower by exp(GRID), each known to about 1 %."""
    return np.log([distribution_rmst(replace(LAW.slower(float(np.exp(g))), scene=0.3), TAU_S, 20_000) for g in GRID])


def _log_rmst(own: np.ndarray) -> np.ndarray:
    return np.interp(own, GRID, _known())


@functools.cache
def _endless(how: Joint) -> float:
    """The log ratio over cells without end."""
    rng = np.random.default_rng(2**31)
    rig = how.rig * rng.standard_normal((200_000, 1))
    own = how.apart * rng.standard_normal((200_000, 2)) + rig + np.array([0.0, np.log(how.slower)])
    logs = _log_rmst(own)
    return float((logs[:, 0] - logs[:, 1]).mean())
