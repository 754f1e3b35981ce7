"""How often tests reject nothing and intervals hold the truth, on the synthetic cohort: small in tests, in full as a
benchmark. Every run is a pure function of its number, so runs can be added up from any number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.bands import simultaneous_band
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import Key, Replicates, clusters, rmst_replicates
from labctl.analysis.survival.curves import curve, joined, rmst_with_error
from labctl.analysis.survival.event_order import event_order
from labctl.analysis.survival.hrt import Estimate, hrt, rmst
from labctl.analysis.survival.items_moved import moved_difference, moved_share
from labctl.analysis.survival.kernel import Given, order_probability, spread
from labctl.analysis.survival.ks import bootstrap_p, pair_of
from labctl.analysis.survival.logrank import logrank, logrank_permutation, stratified
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.survival.permutation import permutation_p
from labctl.analysis.survival.resample import stream_key
from support.statistics.cohorts import DISTRIBUTIONS, HUMAN_EPISODES, NS, OBJECTS, TAU_NS

ALPHA = 0.05
PERM, BOOT = 499, 999
TRUTH_EPISODES = 300_000
BAND_GRID_NS = np.arange(1, 240) * NS
Counts = dict[str, int]


def rejections(
    n_a: int, n_b: int, distribution: Distribution, runs: range, *, blocks: bool = False, paper: bool = True
) -> dict[str, float]:
    """Share of `runs` pairs of like arms, n_a and n_b episodes per object, that each test tells apart at .05.

    With `blocks` episode i of both arms stands in block i and shares its scene. `paper` adds the paper's bootstrap.
    """

    distribution = replace(distribution, scene=0.8) if blocks else distribution

    def one(run: int) -> Counts:
        rng = np.random.default_rng([run, n_a, n_b])
        names = [f"b{i}" for i in range(n_a)] if blocks else None
        sides: list[list[Cell]] = [[], []]
        for obj in OBJECTS:
            scenes = rng.standard_normal(n_a) if blocks else None
            for side, arm, n in zip(sides, "ab", (n_a, n_b), strict=True):
                side.append(simulate(distribution, n, rng, arm=arm, obj=obj, blocks=names, scenes=scenes))
        pair = pair_of(*sides, TAU_NS)
        found: dict[str, float | None] = dict(permutation_p(pair, run, PERM))
        moved = moved_difference(*sides, pair, run, PERM)
        found["moved"] = moved and moved.p
        found["logrank, permutation"] = logrank_permutation(pair, run, PERM)
        pooled = [joined(*(c.durations for c in side)) for side in sides]
        plain = logrank(*pooled)
        found["logrank, robust"] = plain.p_cluster
        found["logrank, robust, stratified"] = stratified(
            [(a.durations, b.durations) for a, b in zip(*sides, strict=True)]
        ).p_cluster
        found["logrank, ordinary"] = plain.p
        if paper:
            found["ks_macro, paper"] = bootstrap_p(pair, run, PERM + 1)
        return {name: int(p is not None and p <= ALPHA + 1e-12) for name, p in found.items()}

    return _shares(one, runs)


def coverage(arms: Sequence[str], episodes: int, runs: range) -> dict[str, float]:
    """Share of `runs` cohorts in which each interval holds the truth, every arm run `episodes` times per object.

    Names are "arm: interval"; the human has 99 episodes per object.
    """
    true = truths()

    def one(run: int) -> Counts:
        rng = np.random.default_rng([run, episodes])
        cells = {
            (arm, obj): simulate(
                DISTRIBUTIONS[arm], HUMAN_EPISODES if arm == "human" else episodes, rng, arm=arm, obj=obj
            )
            for arm in ("human", *arms)
            for obj in OBJECTS
        }
        found = rmst_replicates(clusters(cells, TAU_NS, run), BOOT)
        them = [("human", obj) for obj in OBJECTS]
        told = {"human: rmst of a cell": (_rmst(found, them[:1]).interval, true["rmst", "human"])}
        hits: Counts = {}
        for arm in arms:
            us = [(arm, obj) for obj in OBJECTS]
            ratio, macro, cell = hrt(found, them, us, found.values), _rmst(found, us), _rmst(found, us[:1])
            area = auc([cells[k] for k in us], [cells[k] for k in them], TAU_NS, run, BOOT)
            share = moved_share([cells[k] for k in us])[1]
            worth = {"hrt": true["rmst", "human"] / true["rmst", arm]}
            worth |= {"rmst": true["rmst", arm], "auc": true["auc", arm], "moved": true["moved", arm]}
            told |= {
                f"{arm}: hrt": (ratio.interval, worth["hrt"]),
                f"{arm}: hrt, log-t": (ratio.twin, worth["hrt"]),
                f"{arm}: hrt, percentile": (ratio.percentile, worth["hrt"]),
                f"{arm}: rmst of the arm": (macro.interval, worth["rmst"]),
                f"{arm}: rmst of the arm, percentile": (macro.percentile, worth["rmst"]),
                f"{arm}: rmst of a cell": (cell.interval, worth["rmst"]),
                f"{arm}: rmst of a cell, percentile": (cell.percentile, worth["rmst"]),
                f"{arm}: auc": (area.interval, worth["auc"]),
                f"{arm}: auc, logit-t": (area.twin, worth["auc"]),
                f"{arm}: moved": (share, worth["moved"]),
            }
            band = simultaneous_band(cells[us[0]].durations, TAU_NS, stream_key(run, "band"), BOOT)
            hits[f"{arm}: band"] = int(band is not None and _inside(band, arm))
        return {**{k: int(ci is not None and ci[0] <= truth <= ci[1]) for k, (ci, truth) in told.items()}, **hits}

    return _shares(one, runs)


def _rmst(found: Replicates, keys: Sequence[Key]) -> Estimate:
    return rmst(found, keys, found.values, TAU_NS / NS)


@functools.cache
def truths() -> Mapping[tuple[str, str], float]:
    """RMST, share of items moved and P(T < T_human) of every distribution, from 300,000 episodes each."""
    rng = np.random.default_rng(2**31)
    out: dict[tuple[str, str], float] = {}
    human = simulate(DISTRIBUTIONS["human"], TRUTH_EPISODES // 6, rng).durations
    for arm, distribution in DISTRIBUTIONS.items():
        cell = simulate(distribution, TRUTH_EPISODES, rng)
        out["rmst", arm] = rmst_with_error(cell.durations, TAU_NS)[0]
        out["moved", arm] = float(cell.moved.sum() / cell.staged.sum())
        part = simulate(distribution, TRUTH_EPISODES // 6, rng).durations
        walk = event_order([part, human], TAU_NS)
        out["auc", arm] = float(order_probability(walk, Given(np.ones((1, walk.units))), range(1)).value[0])
    return out


@functools.cache
def true_curve(arm: str) -> np.ndarray:
    """F at every whole second up to 239."""
    cell = simulate(DISTRIBUTIONS[arm], TRUTH_EPISODES, np.random.default_rng(2**31 + 1))
    grid, surviving = curve(cell.durations, TAU_NS)
    return 1.0 - np.append(1.0, surviving)[np.searchsorted(grid, BAND_GRID_NS, side="right")]


def _inside(band, arm: str) -> bool:
    """Whether the true curve lies in the band at every whole second."""
    at = np.searchsorted(band.t[:-1], BAND_GRID_NS / NS, side="right") - 1
    truth = true_curve(arm)
    return bool(((band.low[at] <= truth + 1e-9) & (truth <= band.high[at] + 1e-9)).all())


def _shares(one: Callable[[int], Counts], runs: range) -> dict[str, float]:
    parts = [range(s, min(s + 25, runs.stop)) for s in range(runs.start, runs.stop, 25)]

    def some(part: range) -> Counts:
        total: Counts = {}
        for run in part:
            for name, hit in one(run).items():
                total[name] = total.get(name, 0) + hit
        return total

    out: Counts = {}
    for counts in spread(some, parts):
        for name, hit in counts.items():
            out[name] = out.get(name, 0) + hit
    return {name: hit / len(runs) for name, hit in out.items()}
