"""How often intervals over further evenings and teleoperators hold the truth: arms that do otherwise on every evening,
a reference that is driven by other people. Every run is a pure function of its number.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from labctl.analysis.episodes.random_factors import _Pair as Pair
from labctl.analysis.episodes.random_factors import of_pair
from labctl.analysis.operations_table.pair_rows import _silent
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import rmst_with_error
from labctl.analysis.table import NS
from support.statistics.calibration import Counts, _shares
from support.statistics.cohorts import OBJECTS

TAU_S = 240.0
LAW = Distribution(40.0, shape=1.5, frailty=0.4, lost=0.04, items=4, budget_s=240.0)
SLOWER = 1.3


@dataclass(frozen=True)
class Evenings:
    """`sessions` evenings of `each` blocks at every one of `objects` objects. `apart`: sd of the log of what each arm's
    times are multiplied by on each evening; with `people`, each drives the reference on the evenings of `turns`
    (evening i: people i, i + 1, … of so many) and has such a factor of its own, sd `persons`.
    """

    sessions: int
    each: int = 3
    objects: int = 2
    apart: float = 0.3
    people: int = 0
    turns: int = 2
    persons: float = 0.0


def coverage(how: Evenings, runs: range) -> dict[str, float]:
    """Share of `runs` campaigns in which the interval of the mean holds the true log RMST ratio of evenings and people
    without end, and, where nobody drives, that of a further evening what one more evening shows.
    """
    truth = true_ratio(how)

    def one(run: int) -> Counts:
        rng = np.random.default_rng([run, how.sessions, how.people])
        cells, labels = _campaign(how, rng, how.sessions)
        row = {**_silent(("a", "b")), "objects": [*OBJECTS[: how.objects]]}
        pair = Pair(cells, row, round(TAU_S * NS))
        told = of_pair(pair, labels, row)
        fresh = _campaign(how, rng, 1)[0]
        further = Pair(fresh, row, round(TAU_S * NS)).ratio()
        ci, more = told["ci"], told["factors"]["session"]["further_ci"]
        hits = {"mean": int(ci is not None and ci[0] <= truth <= ci[1])}
        if not how.people:
            hits["a further evening"] = int(more is not None and further is not None and more[0] <= further <= more[1])
        return hits

    return _shares(one, runs)


@functools.cache
def true_ratio(how: Evenings) -> float:
    """log(RMST_a / RMST_b) over 4,000 evenings, known to about .01."""
    cells, _ = _campaign(
        replace(how, each=6, objects=1, people=4000 if how.people else 0), np.random.default_rng(2**31), 4000
    )
    value = [rmst_with_error(cells[arm, OBJECTS[0]].durations, round(TAU_S * NS))[0] for arm in "ab"]
    return math.log(value[0] / value[1])


def _campaign(how: Evenings, rng: np.random.Generator, sessions: int):
    """Cells of arms a, which people drive where there are any, and b, and the evening and person of every episode."""
    apart = how.apart * rng.standard_normal((sessions, 2))
    persons = how.persons * rng.standard_normal(max(how.people, 1))
    evening = np.repeat(np.arange(sessions), how.each)
    driver = (evening + np.tile(np.arange(how.each), sessions) % how.turns) % max(how.people, 1)
    cells: dict[tuple[str, str], Cell] = {}
    names: dict[str, dict[tuple[str, str], list[str]]] = {"session": {}, **({"operator": {}} if how.people else {})}
    for obj in OBJECTS[: how.objects]:
        for i, arm in enumerate("ab"):
            law = LAW if arm == "a" else LAW.slower(SLOWER)
            factor = apart[evening, i] + (persons[driver] if arm == "a" else 0.0)
            cells[arm, obj] = _at(law, np.exp(factor), rng, arm, obj)
            names["session"][arm, obj] = [f"s{n}" for n in evening]
            if how.people and arm == "a":
                names["operator"][arm, obj] = [f"p{p}" for p in driver]
    return cells, names


def _at(law: Distribution, factor: np.ndarray, rng: np.random.Generator, arm: str, obj: str) -> Cell:
    """A cell of one episode for every factor of its times: scenes of sd 1 on the log scale are such factors."""
    return simulate(replace(law, scene=1.0), len(factor), rng, arm=arm, obj=obj, scenes=np.log(factor))
