"""How often campaigns tell two arms apart, beside what a pilot of the same arms promised: power at its best fit, and
assurance. Truths come from a known prior; every run is a pure function of its number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from labctl.analysis.planning.distributions import Arm, Distribution, fitted, simulate
from labctl.analysis.planning.pilot import Pilot
from labctl.analysis.planning.simulation import Plan, campaign, p_values
from labctl.analysis.survival.curves import rmst_with_error
from labctl.analysis.table import NS

LAW = Distribution(60.0, shape=1.5, frailty=0.55, lost=0.04, items=5, budget_s=300.0)
TAU_S, LEVEL = 240.0, 0.05
EDGES = (0.2, 0.4, 0.7)
"""Where |log RMST ratio| of a pilot parts one row of the table from the next."""
Row = dict[str, float]


def promises(
    runs: range, *, pilot: int = 10, episodes: int = 20, widest: float = 1.6, sd: float | None = None, draws: int = 2
) -> list[Row]:
    """Of every run: the pilot's |log RMST ratio|, and the share of `draws` campaigns that tell the arms apart by their
    RMST ratio where the arms are as the truth has them, as the pilot's best fit has them, and as drawn from the pilot.

    The log ratio of the arms' item times is uniform within +- `widest`, or normal about 0 with standard deviation `sd`.
    """
    return [_one(run, pilot, episodes, widest, sd, draws) for run in runs]


def by_row(found: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Means of all runs and of each row of pilots, with the standard error of the truth's less each promise."""
    edges = (0.0, *EDGES, math.inf)
    rows = {
        f"{low:g}–{high:g}": [f for f in found if low <= f["pilot"] < high] for low, high in itertools.pairwise(edges)
    }
    return {name: _means(part) for name, part in {"all": list(found), **rows}.items() if part}


def _means(part: Sequence[Row]) -> dict[str, float]:
    columns = {key: np.array([f[key] for f in part]) for key in ("truth", "power", "assurance")}
    errors = {
        f"error of {key}": float((columns["truth"] - columns[key]).std() / math.sqrt(len(part)))
        for key in ("power", "assurance")
    }
    return {"pilots": float(len(part)), **{key: float(v.mean()) for key, v in columns.items()}, **errors}


def _one(run: int, pilot: int, episodes: int, widest: float, sd: float | None, draws: int) -> Row:
    rng = np.random.default_rng([run, 77])
    apart = rng.uniform(-widest, widest) if sd is None else rng.normal(0.0, sd)
    truth = tuple(_arm(name, LAW.slower(math.exp(side * apart / 2))) for name, side in (("a", 1), ("b", -1)))
    cells = {
        (arm.name, "all"): simulate(arm.distributions["all"], pilot, rng, arm=arm.name, obj="all") for arm in truth
    }
    best = tuple(fitted(arm, [cell], TAU_S, LAW.items, LAW.budget_s) for (arm, _), cell in cells.items())
    seen = Pilot(cells, best, TAU_S, LAW.items, LAW.budget_s)
    ratio = [math.log(rmst_with_error(cell.durations, round(TAU_S * NS))[0]) for cell in cells.values()]
    share = {"truth": 0.0, "power": 0.0, "assurance": 0.0}
    for draw in range(draws):
        for i, (name, arms) in enumerate((("truth", truth), ("power", best), ("assurance", seen.drawn(run, draw)))):
            plan = Plan(arms, TAU_S, 1, 99, run * 10 + i)
            drawn = campaign(replace(plan, seed=plan.seed + 1), episodes, draw)
            p = p_values(drawn["a"], drawn["b"], plan, draw)["log_rmst_ratio"]
            share[name] += (p is not None and p <= LEVEL) / draws
    return {"pilot": abs(ratio[0] - ratio[1]), **share}


def _arm(name: str, law: Distribution) -> Arm:
    return Arm(name, {"all": law}, math.nan, math.nan)
