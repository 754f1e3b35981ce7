"""How arms are thought to behave, for planning: laws of item times from stated RMSTs or fitted to a pilot table.

May not: estimate anything for a report; what is fitted here is an assumption, printed as one beside every power.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from labctl.analysis.planning.simulated import Law, simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import NEVER_NS, rmst_with_error
from labctl.analysis.table import CENSORED, GHOST, UNKNOWN
from scipy import optimize, special

from labctl.errors import QuestionError

NS = 1e9
EPISODES = 2000
"""Simulated episodes behind a calibration: RMST then is known to about 1.5 %."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
FEWEST = 3
"""Ended items of an arm at an object below which nothing is fitted."""


@dataclass(frozen=True)
class Arm:
    """An arm as planned: its law at every object, the RMST asked for or seen in a pilot, and the one of its law."""

    name: str
    laws: Mapping[str, Law]
    asked_s: float
    rmst_s: float

    def slower(self, factor: float) -> Arm:
        """The same arm with every item time multiplied; its RMST is not computed anew."""
        return replace(self, laws={o: law.slower(factor) for o, law in self.laws.items()})


def stated(name: str, rmst_s: float, tau_s: float, law: Law, objects: Sequence[str]) -> Arm:
    """The arm whose analysed RMST(tau) comes out as `rmst_s`, the same at every object.

    `law` gives everything but the mean item time. The RMST meant is the one a report would print, pooled over the
    items of an episode. Raises QuestionError where no item time gives it.
    """
    found = replace(law, mean_s=_mean_for(rmst_s, tau_s, law))
    return Arm(name, dict.fromkeys(objects, found), rmst_s, law_rmst(found, tau_s))


@functools.cache
def law_rmst(law: Law, tau_s: float, episodes: int = EPISODES) -> float:
    """RMST(tau) in seconds that an analysis of many such episodes would print."""
    cell = simulate(law, episodes, np.random.default_rng(0))
    return rmst_with_error(cell.spells, round(tau_s * NS))[0]


def fitted(name: str, cells: Sequence[Cell], tau_s: float, items: int, budget_s: float) -> Arm:
    """The arm fitted to a pilot's cells (one object each) by maximum likelihood.

    Item times are gamma with one shape, times exp(N(0, frailty)) shared by an episode's items and integrated out by
    quadrature; the mean differs by object. An item that ends is lost with the share that was lost. Durations restart
    at a lost item; what follows one without a time is left out. Raises QuestionError where too little ended.
    """
    data = [_durations(cell) for cell in cells]
    ended = sum(int((cell.kind != CENSORED).sum()) for cell in cells)
    for cell, d in zip(cells, data, strict=True):
        if d.ended.sum() < FEWEST:
            found = f"{name} ended {int(d.ended.sum())} items at {cell.object}"
            raise QuestionError(f"{found}; a law needs {FEWEST} or more: run a larger pilot, or state --rmst instead")
    lost = sum(int((cell.kind == GHOST).sum()) for cell in cells) / ended
    start = [math.log(d.seconds.sum() / d.ended.sum()) for d in data]
    result = optimize.minimize(
        _minus_log_likelihood,
        np.array([*start, 0.0, math.log(0.5)]),
        args=(data,),
        method="L-BFGS-B",
        bounds=[(-7.0, 14.0)] * len(data) + [(math.log(0.2), math.log(20.0)), (math.log(0.02), math.log(2.0))],
    )
    *means, shape, frailty = np.exp(result.x).tolist()
    laws = {
        cell.object: Law(mean, shape=shape, frailty=frailty, lost=lost, items=items, budget_s=budget_s)
        for cell, mean in zip(cells, means, strict=True)
    }
    seen = [rmst_with_error(cell.spells, round(tau_s * NS))[0] for cell in cells]
    back = [law_rmst(law, tau_s) for law in laws.values()]
    return Arm(name, laws, math.fsum(seen) / len(seen), math.fsum(back) / len(back))


@dataclass(frozen=True)
class _Durations:
    """Items of one cell: seconds each took or had taken, whether it ended, and where each episode begins."""

    seconds: np.ndarray
    ended: np.ndarray
    first: np.ndarray


def _durations(cell: Cell) -> _Durations:
    ghost, ended = cell.kind == GHOST, cell.kind != CENSORED
    time = np.where(ghost, cell.ghost_ns, cell.spells.time_ns)
    same = np.append(False, np.diff(cell.spells.episode) == 0)
    after = np.append(False, ghost[:-1]) & same
    before = np.where(after, np.append(0, time[:-1]), 0)
    known = (time != UNKNOWN) & (before != UNKNOWN) & (time != NEVER_NS) & (time >= before)
    episode = cell.spells.episode[known]
    seconds = np.maximum((time - before)[known] / NS, 1e-3)
    return _Durations(seconds, ended[known], np.flatnonzero(np.diff(episode, prepend=-1)))


def _minus_log_likelihood(theta: np.ndarray, data: Sequence[_Durations]) -> float:
    shape, frailty = np.exp(theta[-2:])
    total = 0.0
    for log_mean, d in zip(theta[:-2], data, strict=True):
        rate = shape * np.exp(-(log_mean + frailty * NODES))  # [nodes]
        x = d.seconds[:, None] * rate
        density = special.xlogy(shape, x) - x - special.gammaln(shape) - np.log(d.seconds)[:, None]
        staying = np.log(np.maximum(special.gammaincc(shape, x), 1e-300))
        each = np.where(d.ended[:, None], density, staying)
        by_episode = np.add.reduceat(each, d.first, axis=0) + np.log(WEIGHTS / WEIGHTS.sum())
        total += float(np.logaddexp.reduce(by_episode, axis=1).sum())
    return -total


@functools.cache
def _mean_for(rmst_s: float, tau_s: float, law: Law) -> float:
    if not 0 < rmst_s < tau_s:
        raise QuestionError(f"an RMST of {rmst_s:g} s cannot be; allowed is above 0 and below tau, {tau_s:g} s")

    def gap(log_mean: float) -> float:
        return law_rmst(replace(law, mean_s=math.exp(log_mean)), tau_s) - rmst_s

    low, high = math.log(rmst_s / 100), math.log(tau_s * 1000)
    if gap(low) > 0:
        least = gap(low) + rmst_s
        raise QuestionError(
            f"an RMST of {rmst_s:g} s cannot be with {law.lost:.0%} of items lost: at tau {tau_s:g} s those alone "
            f"cost {least:.1f} s; state fewer lost"
        )
    if gap(high) < 0:
        most = gap(high) + rmst_s
        raise QuestionError(
            f"an RMST of {rmst_s:g} s is out of reach; the slowest arm seen within its budget has {most:.1f} s"
        )
    return math.exp(float(optimize.root_scalar(gap, bracket=(low, high), xtol=2e-3).root))
