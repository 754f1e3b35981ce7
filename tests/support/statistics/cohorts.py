"""Operations for the tests of the statistics: from plain lists, R's kidney data, and the synthetic cohort.

The cohort is tuned to the one of facts/statistics.md section 3: RMST(240) of 10.5, 77, 76, 99 and 165 s, some 4.4 % of
a policy's operations lost, 55, 54, 76 and 99 % of its episodes out of time; six items, a pool of 360 s.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import NEVER_NS, Durations

NS = 1_000_000_000
TAU_NS = 240 * NS
KIDNEY = Path(__file__).parents[2] / "unit" / "analysis" / "data" / "kidney.csv"
OBJECTS = ("batteries", "scissors", "spoons", "towels")
DISTRIBUTIONS = {
    "human": Distribution(9.0, shape=3.0),
    "m1": Distribution(70.0, lost=0.05),
    "m2": Distribution(69.0, lost=0.05),
    "m3": Distribution(108.0, lost=0.05),
    "m4": Distribution(330.0, lost=0.07),
}
POLICIES = ("m1", "m2", "m3", "m4")
HUMAN_EPISODES = 99


def durations(times: list[float], events: list[int], episode: list[int] | None = None) -> Durations:
    """Rows in seconds, infinity for a ghost; an episode each unless told."""
    time = np.array([NEVER_NS if np.isinf(t) else round(t * NS) for t in times])
    cluster = np.arange(len(times)) if episode is None else np.array(episode)
    return Durations(time, np.array(events, dtype=bool), cluster, int(cluster.max()) + 1)


def kidney(sex: str | None = None) -> Durations:
    """R's `kidney`: 38 patients, two catheters each (McGilchrist & Aisbett 1991)."""
    with KIDNEY.open() as f:
        rows = [r for r in csv.DictReader(f) if sex in (None, r["sex"])]
    patients = np.unique([int(r["patient"]) for r in rows], return_inverse=True)[1]
    return durations([float(r["time"]) for r in rows], [int(r["status"]) for r in rows], patients.tolist())


def cohort(rng: np.random.Generator, episodes: int, *, human: int = HUMAN_EPISODES) -> dict[tuple[str, str], Cell]:
    """Every arm on every object: `episodes` per policy cell, `human` per human cell."""
    sizes = {arm: human if arm == "human" else episodes for arm in DISTRIBUTIONS}
    return {
        (arm, obj): simulate(distribution, sizes[arm], rng, arm=arm, obj=obj)
        for arm, distribution in DISTRIBUTIONS.items()
        for obj in OBJECTS
    }


def random_durations(rng: np.random.Generator, episodes: int, *, rounded: bool = False) -> Durations:
    """A cell with frailty, ghosts and censoring; `rounded` makes many ties, also of events with censored rows."""
    cell = simulate(Distribution(60.0, lost=0.1), episodes, rng).durations
    if not rounded:
        return cell
    coarse = np.where(cell.time_ns == NEVER_NS, NEVER_NS, cell.time_ns // (20 * NS) * (20 * NS))
    return Durations(coarse, cell.event, cell.episode, cell.episodes)
