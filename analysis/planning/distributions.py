"""How arms are thought to behave, for planning: item times from stated RMSTs or fitted to a pilot table.

May not: estimate anything for a report; what is fitted here is an assumption, printed as one beside every power.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from labctl.analysis.numerals import counted
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import NEVER_NS, Durations, Floats, rmst_with_error
from labctl.analysis.table import CENSORED, GHOST, NS, SUCCESS, UNKNOWN
from labctl.errors import QuestionError

_CAUSES = {SUCCESS: "", CENSORED: "budget", GHOST: "lost"}


@dataclass(frozen=True)
class Distribution:
    """How one arm works through one object's items.

    An item takes gamma(`shape`) seconds of mean `mean_s`, times `harder` for every item before it, times a factor of
    the episode, exp(N(0, `frailty`)), and one of its block, exp(N(0, `scene`)); it is lost instead of moved with
    probability `lost`. The episode ends when all `items` are moved or lost, or at `budget_s`.
    """

    mean_s: float
    shape: float = 1.0
    frailty: float = 0.55
    lost: float = 0.0
    items: int = 6
    budget_s: float = 360.0
    harder: float = 1.0
    scene: float = 0.0

    def slower(self, factor: float) -> Distribution:
        """The same distribution with every time multiplied."""
        return replace(self, mean_s=self.mean_s * factor)


def simulate(
    distribution: Distribution,
    episodes: int,
    rng: np.random.Generator,
    *,
    arm: str = "arm",
    obj: str = "all",
    blocks: Sequence[str] | None = None,
    scenes: np.ndarray | None = None,
) -> Cell:
    """A cell of `episodes` episodes; `scenes` [episodes] are standard normal scene effects shared within a block."""
    factor = np.exp(distribution.frailty * rng.standard_normal(episodes))
    if scenes is not None:
        factor *= np.exp(distribution.scene * scenes)
    taken = rng.gamma(distribution.shape, distribution.mean_s / distribution.shape, (episodes, distribution.items))
    taken *= factor[:, None] * distribution.harder ** np.arange(distribution.items)
    lost = rng.random((episodes, distribution.items)) < distribution.lost
    ended = np.maximum(np.round(np.cumsum(taken, axis=1) * NS), 1).astype(np.int64)
    budget = round(distribution.budget_s * NS)
    met = ended <= budget
    moved = met & ~lost
    latest = np.maximum.accumulate(np.where(moved, ended, 0), axis=1)
    since = ended - np.concatenate((np.zeros((episodes, 1), dtype=np.int64), latest[:, :-1]), axis=1)
    tail = ~met[:, -1]
    kind = np.concatenate((np.where(lost, GHOST, SUCCESS), np.full((episodes, 1), CENSORED)), axis=1).astype(np.int8)
    time = np.concatenate((since, (budget - latest[:, -1])[:, None]), axis=1)
    there = np.concatenate((met, tail[:, None]), axis=1)
    kind, time = kind[there], time[there]
    durations = Durations(
        np.where(kind == GHOST, NEVER_NS, time), kind != CENSORED, np.nonzero(there)[0].astype(np.int64), episodes
    )
    return Cell(
        arm,
        obj,
        durations,
        durations,
        kind,
        tuple(_CAUSES[k] for k in kind),
        np.where(kind == GHOST, time, UNKNOWN),
        tuple(blocks or [""] * episodes),
        moved.sum(axis=1),
        np.full(episodes, distribution.items),
        np.where(tail, budget, ended[:, -1]),
        np.full(episodes, budget),
        0,
        0,
        np.full(episodes, UNKNOWN),
    )


EPISODES = 2000
"""Simulated episodes behind a calibration: RMST then is known to about 1.5 %."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WIDEST = 2.0
"""Standard deviation of the logarithm of an episode's pace beyond which nothing is fitted."""
LEAST_LEFT = 0.25
FEWEST = 3
"""Ended items of an arm at an object below which nothing is fitted."""


@dataclass(frozen=True)
class Arm:
    """An arm as planned: its distribution at every object, the RMST requested or seen in a pilot, and its own."""

    name: str
    distributions: Mapping[str, Distribution]
    asked_s: float
    rmst_s: float

    def slower(self, factor: float) -> Arm:
        """The same arm with every item time multiplied; its RMST is not computed anew."""
        return replace(
            self, distributions={o: distribution.slower(factor) for o, distribution in self.distributions.items()}
        )


def stated(name: str, rmst_s: float, tau_s: float, distribution: Distribution, objects: Sequence[str]) -> Arm:
    """The arm whose analysed RMST(tau) comes out as `rmst_s`, the same at every object.

    `distribution` gives everything but the mean item time. The RMST meant is the one a report would print, pooled over
    the items of an episode. Raises QuestionError where no item time gives it.
    """
    found = replace(distribution, mean_s=_mean_for(rmst_s, tau_s, distribution))
    return Arm(name, dict.fromkeys(objects, found), rmst_s, distribution_rmst(found, tau_s))


@functools.cache
def distribution_rmst(distribution: Distribution, tau_s: float, episodes: int = EPISODES) -> float:
    """RMST(tau) in seconds that an analysis of many such episodes would print."""
    cell = simulate(distribution, episodes, np.random.default_rng(0))
    return rmst_with_error(cell.durations, round(tau_s * NS))[0]


def fitted(
    name: str,
    cells: Sequence[Cell],
    tau_s: float,
    items: int,
    budget_s: float,
    weights: Sequence[Floats] | None = None,
    start: Arm | None = None,
) -> Arm:
    """The arm fitted to a pilot's cells (one object each) by maximum likelihood.

    Item times are gamma with one shape, times exp(N(0, frailty)) shared by an episode's items and integrated out by
    quadrature; the mean differs by object. Likelihood gives too small a frailty, as each object's mean is fitted to the
    same episodes: its variance is divided by what that leaves, (n - 1) / n of n episodes at one object. An item that
    ends is lost with the share that was lost. Durations restart at a lost item; what follows one without a time is left
    out. `weights` says how much every episode of each cell counts, [episodes] of mean 1; `start` is an arm whose law
    the search begins at, and whose RMSTs are passed on, not computed anew. Raises QuestionError where too little ended.
    """
    counts = weights or [np.ones(cell.episodes) for cell in cells]
    data = [_item_times(cell, count) for cell, count in zip(cells, counts, strict=True)]
    for cell, d in zip(cells, data, strict=True):
        if d.ended.sum() < FEWEST:
            found = f"{name} ended {counted(int(d.ended.sum()), 'item')} at {cell.object}"
            raise QuestionError(
                f"{found}; a distribution needs {FEWEST} or more: run a larger pilot, or state --rmst instead"
            )
    rows = [(count[cell.durations.episode], cell.kind) for cell, count in zip(cells, counts, strict=True)]
    lost = math.fsum(count[kind == GHOST].sum() for count, kind in rows) / math.fsum(
        count[kind != CENSORED].sum() for count, kind in rows
    )
    result = optimize.minimize(
        _minus_log_likelihood,
        _start(cells, data, start),
        args=(data,),
        method="L-BFGS-B",
        bounds=[(-7.0, 14.0)] * len(data) + [(math.log(0.2), math.log(20.0)), (math.log(0.02), math.log(WIDEST))],
    )
    *means, shape, narrow = np.exp(result.x).tolist()
    frailty = min(narrow / math.sqrt(_left_of_spread(counts)), WIDEST)
    distributions = {
        cell.object: Distribution(mean, shape=shape, frailty=frailty, lost=lost, items=items, budget_s=budget_s)
        for cell, mean in zip(cells, means, strict=True)
    }
    if start is not None:
        return Arm(name, distributions, start.asked_s, start.rmst_s)
    seen = [rmst_with_error(cell.durations, round(tau_s * NS))[0] for cell in cells]
    back = [distribution_rmst(distribution, tau_s) for distribution in distributions.values()]
    return Arm(name, distributions, math.fsum(seen) / len(seen), math.fsum(back) / len(back))


@dataclass(frozen=True)
class _Items:
    """Items of one cell: seconds each took or had taken, whether it ended, where each episode begins, and how much it
    counts.
    """

    seconds: np.ndarray
    ended: np.ndarray
    first: np.ndarray
    weight: Floats


def _left_of_spread(counts: Sequence[Floats]) -> float:
    """What is left of a variance about means that are fitted too: 1 - sum of squared shares, a mean over cells."""
    total = math.fsum(float(count.sum()) for count in counts)
    left = [float(count.sum()) / total * (1 - float(((count / count.sum()) ** 2).sum())) for count in counts]
    return max(math.fsum(left), LEAST_LEFT)


def _start(cells: Sequence[Cell], data: Sequence[_Items], arm: Arm | None) -> np.ndarray:
    """Where the search for means, shape and frailty begins, as logarithms."""
    if arm is None:
        return np.array([*(math.log(d.seconds.sum() / d.ended.sum()) for d in data), 0.0, math.log(0.5)])
    laws = [arm.distributions[cell.object] for cell in cells]
    return np.log([*(distribution.mean_s for distribution in laws), laws[0].shape, laws[0].frailty])


def _item_times(cell: Cell, weight: Floats) -> _Items:
    ghost, ended = cell.kind == GHOST, cell.kind != CENSORED
    time = np.where(ghost, cell.ghost_ns, cell.durations.time_ns)
    same = np.append(False, np.diff(cell.durations.episode) == 0)
    after = np.append(False, ghost[:-1]) & same
    before = np.where(after, np.append(0, time[:-1]), 0)
    known = (time != UNKNOWN) & (before != UNKNOWN) & (time != NEVER_NS) & (time >= before)
    episode = cell.durations.episode[known]
    seconds = np.maximum((time - before)[known] / NS, 1e-3)
    first = np.flatnonzero(np.diff(episode, prepend=-1))
    return _Items(seconds, ended[known], first, weight[episode[first]])


def _minus_log_likelihood(theta: np.ndarray, data: Sequence[_Items]) -> float:
    shape, frailty = np.exp(theta[-2:])
    total = 0.0
    for log_mean, d in zip(theta[:-2], data, strict=True):
        rate = shape * np.exp(-(log_mean + frailty * NODES))  # [nodes]
        x = d.seconds[:, None] * rate
        density = special.xlogy(shape, x) - x - special.gammaln(shape) - np.log(d.seconds)[:, None]
        staying = np.log(np.maximum(special.gammaincc(shape, x), 1e-300))
        each = np.where(d.ended[:, None], density, staying)
        by_episode = np.add.reduceat(each, d.first, axis=0) + np.log(WEIGHTS / WEIGHTS.sum())
        total += float(d.weight @ np.logaddexp.reduce(by_episode, axis=1))
    return -total


@functools.cache
def _mean_for(rmst_s: float, tau_s: float, distribution: Distribution) -> float:
    if not 0 < rmst_s < tau_s:
        raise QuestionError(f"an RMST of {rmst_s:g} s cannot be; allowed is above 0 and below tau, {tau_s:g} s")

    def gap(log_mean: float) -> float:
        return distribution_rmst(replace(distribution, mean_s=math.exp(log_mean)), tau_s) - rmst_s

    low, high = math.log(rmst_s / 100), math.log(tau_s * 1000)
    if gap(low) > 0:
        least = gap(low) + rmst_s
        raise QuestionError(
            f"an RMST of {rmst_s:g} s cannot be with {distribution.lost:.0%} of items lost: at tau {tau_s:g} s those "
            f"alone cost {least:.1f} s; state fewer lost"
        )
    if gap(high) < 0:
        most = gap(high) + rmst_s
        raise QuestionError(
            f"an RMST of {rmst_s:g} s is out of reach; the slowest arm seen within its budget has {most:.1f} s"
        )
    return math.exp(float(optimize.root_scalar(gap, bracket=(low, high), xtol=2e-3).root))
