"""Power for times by simulation: campaigns are drawn from stated distributions and tested as a report tests them.

May not: be read as data. Every number here rests on the distributions it was given, and carries its Monte-Carlo error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from scipy import special

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.planning.distributions import Arm, distribution_rmst, simulate, stated
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import clusters, rmst_replicates
from labctl.analysis.survival.hrt import Estimate, hrt
from labctl.analysis.survival.items_moved import moved_difference
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.permutation import permutation_p
from labctl.analysis.table import NS

MEASURES = ("moved", "log_rmst_ratio", "uph", "ks_sup_mean", "ks_macro", "family")
Pair = tuple[str, str]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What is simulated: arms that meet in every block, `runs` campaigns of each size, `perm` label swaps each."""

    arms: tuple[Arm, ...]
    tau_s: float
    runs: int = 200
    perm: int = 499
    seed: int = 0

    @property
    def objects(self) -> tuple[str, ...]:
        """The objects every arm meets."""
        return tuple(self.arms[0].distributions)


@dataclass(frozen=True)
class Power:
    """Share of campaigns of `episodes` per arm and object in which a measure's p is at or below `level`.

    `error` is its Monte-Carlo standard error.
    """

    a: str
    b: str
    episodes: int
    measure: str
    level: float
    power: float
    error: float


class Resolvable(TypedDict):
    """By one measure, the RMST in seconds of an arm just slower than another, and the ratio of the two; None where none
    is told apart. `low` and `high` are where the ratio would be if every power were off by 1.96 errors.
    """

    measure: str
    ratio: float | None
    rmst: float | None
    low: float | None
    high: float | None


class HrtPrecision(TypedDict):
    """A mean HRT and half the width of its 95 % interval, fractions."""

    hrt: float
    half_width: float


def powers(
    plan: Plan,
    sizes: Sequence[int],
    levels: Mapping[Pair, float],
    progress: Progress = lambda done, of: None,
    arms: Sequence[tuple[Arm, ...]] = (),
) -> list[Power]:
    """Power of every measure for every pair in `levels` (its two-sided level) at every size.

    The same campaigns serve all pairs and measures of a size; a pair that every campaign of a size told apart by every
    measure is not simulated at larger ones. A p that is undefined counts as not reached. `arms` [runs] are the arms of
    each campaign, named and in the order of the plan's, where they differ from one to the next: the share then is an
    assurance, the mean power over what the arms may be (A. O'Hagan, J. W. Stevens & M. J. Campbell, Pharm. Stat. 4
    (2005) 187).
    """
    out: list[Power] = []
    sure: set[Pair] = set()
    for i, size in enumerate(sorted(sizes)):
        reached = {pair: dict.fromkeys(MEASURES, 0) for pair in levels if pair not in sure}
        for run in range(plan.runs if reached else 0):
            own = replace(plan, arms=arms[run]) if arms else plan
            drawn = campaign(own, size, run, [arm for pair in reached for arm in pair])
            for (a, b), counts in reached.items():
                found = p_values(drawn[a], drawn[b], plan, run)
                for measure in MEASURES:
                    p = found[measure]
                    counts[measure] += p is not None and p <= levels[a, b] * (1 + 1e-12)
            progress(i * plan.runs + run + 1, len(sizes) * plan.runs)
        for (a, b), counts in reached.items():
            for measure, count in counts.items():
                share = count / plan.runs
                out.append(Power(a, b, size, measure, levels[a, b], share, share_error(share, plan.runs)))
            if min(counts.values()) == plan.runs:
                sure.add((a, b))
    progress(len(sizes) * plan.runs, len(sizes) * plan.runs)
    return out


def campaign(plan: Plan, size: int, run: int, only: Sequence[str] = ()) -> dict[str, list[Cell]]:
    """One simulated campaign: the cells of every arm (or of those in `only`), object by object, all met in every block.

    Random numbers depend on seed, run, arm's place and object alone, so another distribution is seen on the same ones.
    """
    drawn: dict[str, list[Cell]] = {arm.name: [] for arm in plan.arms if not only or arm.name in only}
    for o, obj in enumerate(plan.objects):
        blocks = [f"{obj}-{block}" for block in range(size)]
        scenes = np.random.default_rng([plan.seed, run, o]).standard_normal(size)
        for i, arm in enumerate(plan.arms):
            if arm.name not in drawn:
                continue
            rng = np.random.default_rng([plan.seed, run, o, i + 1])
            drawn[arm.name].append(
                simulate(arm.distributions[obj], size, rng, arm=arm.name, obj=obj, blocks=blocks, scenes=scenes)
            )
    return drawn


def p_values(a: Sequence[Cell], b: Sequence[Cell], plan: Plan, run: int) -> dict[str, float | None]:
    """Two-sided p of every measure, by the swaps within blocks that a report uses."""
    pair = pair_of(a, b, round(plan.tau_s * NS))
    moved = moved_difference(a, b, pair, plan.seed + run, plan.perm)
    return {"moved": moved and moved.p, **permutation_p(pair, plan.seed + run, plan.perm)}


def episodes_for(found: Sequence[Power], target: float) -> tuple[float | None, float | None, float | None]:
    """Episodes per arm and object at which one measure of one pair reaches `target`, and a 95 % Monte-Carlo range.

    Powers are read as a line of their probit over the root of the size between neighbours; None where the sizes do
    not reach so far.
    """
    rows = sorted(found, key=lambda row: row.episodes)
    bounds = [
        _crossing([(math.sqrt(r.episodes), r.power + shift * r.error) for r in rows], target)
        for shift in (0, 1.96, -1.96)
    ]
    best, low, high = (None if at is None else at**2 for at in bounds)
    return best, low, high


def resolvable(
    plan: Plan, base: str, size: int, level: float, target: float, progress: Progress = lambda done, of: None
) -> list[Resolvable]:
    """For every measure the RMST of an arm just slower than `base` that is told apart with power `target`.

    The slower arm has the distribution of `base` with longer items. Its RMST is raised until the least powerful
    measure reaches the target or tau is near; values between steps are read off the probit over log RMST.
    """
    own = next(arm for arm in plan.arms if arm.name == base)
    ratios = [r for r in (1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0) if own.rmst_s * r < 0.95 * plan.tau_s]
    seen: dict[str, list[tuple[float, float, float]]] = {measure: [] for measure in MEASURES}
    for i, ratio in enumerate(ratios):
        other = _slower(own, ratio, plan.tau_s)
        pair = replace(plan, arms=(replace(own, name="faster"), replace(other, name="slower")))
        rows = powers(pair, [size], {("faster", "slower"): level})
        for row in rows:
            seen[row.measure].append((math.log(other.rmst_s / own.rmst_s), row.power, row.error))
        progress(i + 1, len(ratios))
        if min(row.power for row in rows) >= max(target, 0.95):
            break
    out: list[Resolvable] = []
    for measure, points in seen.items():
        ratio, low, high = (
            None if (at := _crossing([(x, p + shift * e) for x, p, e in points], target)) is None else math.exp(at)
            for shift in (0, 1.96, -1.96)
        )
        rmst = None if ratio is None else ratio * own.rmst_s
        out.append({"measure": measure, "ratio": ratio, "rmst": rmst, "low": low, "high": high})
    return out


DRAWS = 199
"""Bootstrap draws of each simulated interval: five beyond either end of a 95 % interval."""


def hrt_precision(plan: Plan, reference: str, arm: str, size: int) -> HrtPrecision:
    """HRT and half the width of the 95 % interval that a report prints, both fractions, over the plan's campaigns.

    The mean HRT and the middle half-width: half of such campaigns have a wider interval. It is the report's own
    bootstrap-t, with blocks drawn whole; the log-t interval is 12 to 20 % narrower.
    """
    values, halves = [], []
    for run in range(min(plan.runs, 200)):
        drawn = campaign(plan, size, run, (reference, arm))
        found = _hrt(drawn[reference], drawn[arm], round(plan.tau_s * NS), plan.seed + run)
        values.append(found.value or 0.0)
        halves.append(math.inf if found.interval is None else (found.interval[1] - found.interval[0]) / 2)
    return {"hrt": float(np.mean(values)), "half_width": float(np.median(halves))}


def _hrt(reference: Sequence[Cell], arm: Sequence[Cell], tau_ns: int, seed: int) -> Estimate:
    cells = {(cell.arm, cell.object): cell for cell in (*reference, *arm)}
    found = rmst_replicates(clusters(cells, tau_ns, seed), DRAWS)
    return hrt(found, [(c.arm, c.object) for c in reference], [(c.arm, c.object) for c in arm], found.values)


def _slower(arm: Arm, ratio: float, tau_s: float) -> Arm:
    """The arm with item times stretched until its RMST is `ratio` times its own."""
    if ratio == 1.0:
        return arm
    distributions = {
        o: stated(
            arm.name, min(ratio * distribution_rmst(distribution, tau_s), 0.98 * tau_s), tau_s, distribution, [o]
        ).distributions[o]
        for o, distribution in arm.distributions.items()
    }
    means = [distribution_rmst(distribution, tau_s) for distribution in distributions.values()]
    return replace(arm, distributions=distributions, rmst_s=math.fsum(means) / len(means))


def _crossing(points: Sequence[tuple[float, float]], target: float) -> float | None:
    """Where a power that rises with x passes the target, by its probit between neighbours; None beyond all of them."""
    probit = float(special.ndtri(target))
    known = [(x, float(special.ndtri(min(max(p, 1e-4), 1 - 1e-4)))) for x, p in points]
    for (x, y), (later, above) in itertools.pairwise(known):
        if y < probit <= above:
            return x + (later - x) * (probit - y) / (above - y)
    return known[0][0] if known and known[0][1] >= probit else None
